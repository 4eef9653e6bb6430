// The runtime's calls for memory and copies.
#include <algorithm>
#include <cstring>
#include <memory>

#include <sys/mman.h>

#include "gpu.h"

using namespace lowtide::gpu;

namespace {

constexpr std::size_t kBlock = 512;      // in which the device's memory is given out
constexpr std::size_t kRead = 64 << 10;  // pinned memory that somebody may read

cudaError_t take(void** made, std::size_t bytes) {
  const std::lock_guard lock(gpu().lock);
  bytes = std::max(kBlock, (bytes + kBlock - 1) / kBlock * kBlock);
  if (gpu().forbidden()) return cudaErrorStreamCaptureUnsupported;
  if (gpu().used + bytes > kMemory) return cudaErrorMemoryAllocation;
  *made = reserve(bytes);
  gpu().device[reinterpret_cast<std::uintptr_t>(*made)] = bytes;
  gpu().used += bytes;
  return cudaSuccess;
}

cudaError_t give_back(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const std::lock_guard lock(gpu().lock);
  const auto found = gpu().device.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == gpu().device.end()) return cudaErrorInvalidValue;
  gpu().used -= found->second;
  gpu().device.erase(found);
  return cudaSuccess;
}

// The device's memory reads as zero, and what is written to it is lost.  Large pinned memory is
// left as it is: a transfer would take the host the time that it takes the link, and nobody reads
// it but transfers.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t handle, bool waits) {
  if (bytes == 0) return cudaSuccess;
  double done = 0;
  {
    const std::lock_guard lock(gpu().lock);
    const bool in = gpu().on_device(to), out = gpu().on_device(from);
    Stream& stream = gpu().stream(handle);
    waits |= !(in && out) && !gpu().is_pinned(in ? from : to);
    if (stream.capture != nullptr && waits) return cudaErrorStreamCaptureUnsupported;
    const bool left = out && bytes > kRead && gpu().is_pinned(to);
    if (!in && !left) out ? std::memset(to, 0, bytes) : std::memmove(to, from, bytes);
    if (in == out || stream.capture != nullptr) {
      queue(handle, kLaunch + 2 * static_cast<double>(bytes) / kBandwidth);
    } else {
      double& link = gpu().busy_until[in ? 0 : 1];
      link =
          std::max({stream.busy_until, link, now()}) + kLaunch + static_cast<double>(bytes) / kLink;
      stream.busy_until = link;
    }
    done = stream.busy_until;
  }
  if (waits) sleep_until(done);
  return cudaSuccess;
}

cudaError_t fill(std::size_t bytes, cudaStream_t stream) {
  queue(stream, kLaunch + static_cast<double>(bytes) / kBandwidth);
  return cudaSuccess;
}

}  // namespace

LOWTIDE_CALL cudaError_t cudaMalloc(void** made, std::size_t bytes) { return take(made, bytes); }
LOWTIDE_CALL cudaError_t cudaFree(void* memory) { return give_back(memory); }
LOWTIDE_CALL cudaError_t cudaMallocAsync(void** made, std::size_t bytes, cudaStream_t) {
  return take(made, bytes);
}
LOWTIDE_CALL cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return give_back(memory); }

LOWTIDE_CALL cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(gpu().lock);
  *free = kMemory - gpu().used;
  *total = kMemory;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  const std::lock_guard lock(gpu().lock);
  *static_cast<std::uint64_t*>(value) = gpu().used;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  const std::lock_guard lock(gpu().lock);
  gpu().host[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaHostUnregister(void* memory) {
  const std::lock_guard lock(gpu().lock);
  const bool was = gpu().host.erase(reinterpret_cast<std::uintptr_t>(memory)) != 0;
  return was ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

LOWTIDE_CALL cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned flags) {
  *made = ::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{4096});
  return cudaHostRegister(*made, bytes, flags);
}

LOWTIDE_CALL cudaError_t cudaFreeHost(void* memory) {
  if (memory != nullptr && cudaHostUnregister(memory) == cudaSuccess)
    ::operator delete(memory, std::align_val_t{4096});
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found,
                                                  const void* address) {
  const std::lock_guard lock(gpu().lock);
  *found = {};
  const bool device = gpu().on_device(address), pinned = gpu().is_pinned(address);
  found->type = device   ? cudaMemoryTypeDevice
                : pinned ? cudaMemoryTypeHost
                         : cudaMemoryTypeUnregistered;
  found->devicePointer = device || pinned ? const_cast<void*>(address) : nullptr;
  found->hostPointer = device ? nullptr : const_cast<void*>(address);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return copy(to, from, bytes, nullptr, true);
}

LOWTIDE_CALL cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                         cudaMemcpyKind, cudaStream_t stream) {
  return copy(to, from, bytes, stream, false);
}

LOWTIDE_CALL cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int,
                                             std::size_t bytes, cudaStream_t stream) {
  return copy(to, from, bytes, stream, false);
}

LOWTIDE_CALL cudaError_t cudaMemcpy2DAsync(void*, std::size_t, const void*, std::size_t,
                                           std::size_t width, std::size_t height, cudaMemcpyKind,
                                           cudaStream_t stream) {
  return fill(2 * width * height, stream);
}

LOWTIDE_CALL cudaError_t cudaMemset(void*, int, std::size_t bytes) { return fill(bytes, nullptr); }
LOWTIDE_CALL cudaError_t cudaMemsetAsync(void*, int, std::size_t bytes, cudaStream_t stream) {
  return fill(bytes, stream);
}

// Symbols of kernels: 64 KiB of memory for each.
LOWTIDE_CALL cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  static std::map<const void*, void*> known;
  const std::lock_guard lock(gpu().lock);
  void*& found = known[symbol];
  if (found == nullptr)
    if (const cudaError_t error = take(&found, 1 << 16); error != cudaSuccess) return error;
  *address = found;
  return cudaSuccess;
}
