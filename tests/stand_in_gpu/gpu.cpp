#include "gpu.h"

#include <algorithm>
#include <chrono>

#include <sys/mman.h>
#include <unistd.h>

namespace lowtide::gpu {

namespace {

// The range that begins at or before an address.
bool within(const std::map<std::uintptr_t, std::size_t>& ranges, const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto after = ranges.upper_bound(at);
  return after != ranges.begin() && at < std::prev(after)->first + std::prev(after)->second;
}

}  // namespace

Gpu& gpu() {
  static Gpu* const made = new Gpu;  // outlives the libraries that call it when a process ends
  return *made;
}

Stream& Gpu::stream(cudaStream_t handle) {
  const bool is_null = reinterpret_cast<std::uintptr_t>(handle) <=
                       2;  // also cudaStreamLegacy and cudaStreamPerThread
  return is_null ? null_stream : *reinterpret_cast<Stream*>(handle);
}

bool Gpu::on_device(const void* address) const { return within(device, address); }

bool Gpu::is_pinned(const void* address) const { return within(host, address); }

bool Gpu::forbidden() const {
  return std::ranges::any_of(captures, [](const Capture* capture) { return !capture->relaxed; });
}

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(since).count();
}

void sleep_until(double time) {
  for (double left = time - now(); left > 0; left = time - now())
    if (left > 100e3) usleep(static_cast<useconds_t>((left - 50e3) / 1e3));
}

void queue(cudaStream_t handle, double nanoseconds) {
  const std::lock_guard lock(gpu().lock);
  Stream& stream = gpu().stream(handle);
  if (stream.capture != nullptr) {
    stream.capture->duration += nanoseconds;
    ++stream.capture->nodes;
    return;
  }
  stream.busy_until = std::max(stream.busy_until, now()) + nanoseconds;
}

void* reserve(std::size_t bytes) {
  static auto at =
      reinterpret_cast<std::uintptr_t>(mmap(nullptr, std::size_t{1} << 45, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  const std::uintptr_t begin = (at + kSegment - 1) / kSegment * kSegment;
  at = begin + (bytes + kSegment - 1) / kSegment * kSegment;
  return reinterpret_cast<void*>(begin);
}

int attribute(int which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 49152;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 232448;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 233472;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
    case cudaDevAttrClockRate: return 1980000;
    case cudaDevAttrMemoryClockRate: return 2619000;
    case cudaDevAttrGlobalMemoryBusWidth: return 5120;
    case cudaDevAttrMultiProcessorCount: return 132;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrL2CacheSize: return 50 << 20;
    case cudaDevAttrComputeCapabilityMajor: return 9;
    case cudaDevAttrComputeCapabilityMinor: return 0;
    default: return 1;
  }
}

double product(double m, double n, double k, double count, int type) {
  const bool half = type == CUDA_R_16F || type == CUDA_R_16BF;
  const double operations = 2 * std::max(m, 16.0) * std::max(n, 16.0) * k * count;
  const double bytes = (m * k + k * n + m * n) * count * (half ? 2 : 4);
  return kLaunch + operations / (half ? kHalf : kSingle) + bytes / kBandwidth;
}

}  // namespace lowtide::gpu
