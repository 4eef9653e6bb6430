// A GPU that computes nothing, for PyTorch's own code above it: memory that reads as zero, and
// streams, events and graphs that know the order and the times of what they are given.
//
// Times are in nanoseconds of a clock that both sides share: a stream is busy until a time, and who
// waits for it sleeps until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <library_types.h>

#define LOWTIDE_CALL extern "C" __attribute__((visibility("default")))

namespace lowtide::gpu {

inline constexpr std::size_t kMemory = std::size_t{80} << 30;
inline constexpr double kBandwidth = 2400;  // bytes a nanosecond
inline constexpr double kLink = 55;         // the same of each direction of the link to the host
inline constexpr double kSingle = 35e3;     // operations a nanosecond, in f32
inline constexpr double kHalf = 450e3;      // in f16 and bf16
inline constexpr double kClock = 1.98;      // cycles a nanosecond
inline constexpr double kLaunch = 1500;     // of a kernel that does nothing
inline constexpr std::size_t kSegment = 2 << 20;  // to which addresses are aligned

// What a stream records in the place of running it.
struct Capture {
  unsigned long long id = 0;
  bool relaxed = false;  // may calls that allocate or wait run beside it?
  double duration = 0;
  std::size_t nodes = 0;
};

struct Stream {
  double busy_until = 0;
  int priority = 0;
  Capture* capture = nullptr;
};

struct Event {
  double at = 0;
  bool recorded = false;
  Capture* capture = nullptr;
};

struct Graph {
  double duration = 0;
  std::size_t nodes = 0;
};

// The state of the GPU; callers hold the lock.
struct Gpu {
  std::recursive_mutex lock;
  Stream null_stream;
  std::set<Stream*> streams;
  std::vector<Capture*> captures;
  unsigned long long captures_begun = 0;
  std::map<std::uintptr_t, std::size_t> device, host;  // address -> bytes; of pinned memory
  std::size_t used = 0;
  const void* spin = nullptr;     // the kernel of torch.cuda._sleep, which takes a number of cycles
  double busy_until[2] = {0, 0};  // the directions of the link: to the device, to the host

  Stream& stream(cudaStream_t handle);
  bool on_device(const void* address) const;
  bool is_pinned(const void* address) const;
  // May a call that a capture forbids run now?
  bool forbidden() const;
};

Gpu& gpu();

double now();
void sleep_until(double time);

// Queues what takes so long, or records it.
void queue(cudaStream_t stream, double nanoseconds);

// Addresses rise, as those of a GPU's allocations do.
void* reserve(std::size_t bytes);

int attribute(int which);

// 2 m n k operations, `count` times, and the bytes of its operands.  type: a cudaDataType.
double product(double m, double n, double k, double count, int type);

}  // namespace lowtide::gpu
