// The runtime's calls about the device, errors and the code of kernels.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include <dlfcn.h>

#include "gpu.h"

using namespace lowtide::gpu;

namespace {

constexpr int kVersion = 13000;

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

thread_local std::vector<Configuration> configurations;

}  // namespace

LOWTIDE_CALL cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

LOWTIDE_CALL cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaRuntimeGetVersion(int* version) {
  return cudaDriverGetVersion(version);
}

LOWTIDE_CALL cudaError_t cudaGetDeviceProperties(cudaDeviceProp* made, int) {
  *made = {};
  std::strcpy(made->name, "Stand-in GPU");
  made->totalGlobalMem = kMemory;
  made->major = attribute(cudaDevAttrComputeCapabilityMajor);
  made->minor = attribute(cudaDevAttrComputeCapabilityMinor);
  made->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  made->warpSize = attribute(cudaDevAttrWarpSize);
  made->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  made->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  made->sharedMemPerBlock = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
  made->sharedMemPerBlockOptin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  made->sharedMemPerMultiprocessor = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  made->regsPerBlock = made->regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerBlock);
  made->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  made->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  made->maxThreadsDim[0] = made->maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimX);
  made->maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ);
  made->maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
  made->maxGridSize[1] = made->maxGridSize[2] = attribute(cudaDevAttrMaxGridDimY);
  made->totalConstMem = 65536;
  made->textureAlignment = 512;
  made->asyncEngineCount = 2;
  made->canMapHostMemory = made->concurrentKernels = made->unifiedAddressing =
      made->cooperativeLaunch = 1;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = attribute(which);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:01:00.0");
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static int only;
  *pool = reinterpret_cast<cudaMemPool_t>(&only);
  return cudaSuccess;
}

// Calls give their errors back, and none stays.
LOWTIDE_CALL cudaError_t cudaGetLastError() { return cudaSuccess; }
LOWTIDE_CALL cudaError_t cudaPeekAtLastError() { return cudaSuccess; }

LOWTIDE_CALL const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                            : "an error of the stand-in";
}

LOWTIDE_CALL const char* cudaGetErrorString(cudaError_t error) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "error %d of cudaError_t", static_cast<int>(error));
  return error == cudaErrorMemoryAllocation ? "out of memory" : text;
}

LOWTIDE_CALL cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                                          unsigned long long,
                                                          cudaDriverEntryPointQueryResult* result) {
  *found = dlsym(RTLD_DEFAULT, name);
  if (result != nullptr)
    *result = *found != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* made, const void*) {
  *made = {};
  made->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  made->maxDynamicSharedSizeBytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  made->numRegs = 32;
  made->ptxVersion = made->binaryVersion = 90;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int size, std::size_t, unsigned) {
  *blocks = std::max(1, attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / std::max(size, 64));
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                       const void* kernel, int size,
                                                                       std::size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, size, shared, 0);
}

// ---- what nvcc's code calls around a launch

LOWTIDE_CALL unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                                  cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}

LOWTIDE_CALL cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared,
                                                    void* stream) {
  const Configuration latest = configurations.back();
  configurations.pop_back();
  *grid = latest.grid;
  *block = latest.block;
  *shared = latest.shared;
  *static_cast<cudaStream_t*>(stream) = latest.stream;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

LOWTIDE_CALL void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int,
                                         uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(gpu().lock);
  if (name != nullptr && std::strstr(name, "spin_kernel") != nullptr) gpu().spin = function;
}

LOWTIDE_CALL char __cudaInitModule(void**) { return 1; }

LOWTIDE_CALL void** __cudaRegisterFatBinary(void*) {
  static void* binary[2];
  return binary;
}
