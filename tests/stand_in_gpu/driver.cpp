// The driver's calls: those of PyTorch's expandable segments, and those of Triton's launcher.
#include "gpu.h"

using namespace lowtide::gpu;

namespace {

const CUcontext kContext = reinterpret_cast<CUcontext>(16);
const CUmodule kModule = reinterpret_cast<CUmodule>(24);
const CUfunction kFunction = reinterpret_cast<CUfunction>(32);

template <typename Value>
CUresult give(Value* to, Value value) {
  if (to != nullptr) *to = value;
  return CUDA_SUCCESS;
}

}  // namespace

LOWTIDE_CALL CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
LOWTIDE_CALL CUresult cuDriverGetVersion(int* version) { return give(version, 13000); }
LOWTIDE_CALL CUresult cuDeviceGet(CUdevice* device, int index) { return give(device, index); }
LOWTIDE_CALL CUresult cuDeviceGetCount(int* count) { return give(count, 1); }

LOWTIDE_CALL CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  return give(value, attribute(static_cast<int>(which)));
}

LOWTIDE_CALL CUresult cuCtxGetCurrent(CUcontext* context) { return give(context, kContext); }
LOWTIDE_CALL CUresult cuCtxGetDevice(CUdevice* device) { return give(device, 0); }
LOWTIDE_CALL CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  return give(context, kContext);
}

LOWTIDE_CALL CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  give(flags, 0U);
  return give(active, 1);
}

LOWTIDE_CALL CUresult cuGetErrorString(CUresult, const char** text) {
  return give(text, "an error of the stand-in");
}
LOWTIDE_CALL CUresult cuModuleLoad(CUmodule* module, const char*) { return give(module, kModule); }
LOWTIDE_CALL CUresult cuModuleLoadData(CUmodule* module, const void*) {
  return give(module, kModule);
}
LOWTIDE_CALL CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  return give(function, kFunction);
}

LOWTIDE_CALL CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction) {
  return give(value, which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
                     : which == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
                                                                      : 0);
}

LOWTIDE_CALL CUresult cuPointerGetAttribute(void* value, CUpointer_attribute which,
                                            CUdeviceptr address) {
  if (which == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
    return give(static_cast<CUdeviceptr*>(value), address);
  return give(static_cast<int*>(value), 0);
}

// ---- expandable segments

LOWTIDE_CALL CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                                    CUmemAllocationGranularity_flags) {
  return give(bytes, kSegment);
}

LOWTIDE_CALL CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t,
                                          CUdeviceptr, unsigned long long) {
  const std::lock_guard lock(gpu().lock);
  const auto begin = reinterpret_cast<std::uintptr_t>(reserve(bytes));
  gpu().device[begin] = bytes;
  return give(address, static_cast<CUdeviceptr>(begin));
}

LOWTIDE_CALL CUresult cuMemAddressFree(CUdeviceptr address, std::size_t) {
  const std::lock_guard lock(gpu().lock);
  gpu().device.erase(address);
  return CUDA_SUCCESS;
}

LOWTIDE_CALL CUresult cuMemCreate(CUmemGenericAllocationHandle* made, std::size_t bytes,
                                  const CUmemAllocationProp*, unsigned long long) {
  const std::lock_guard lock(gpu().lock);
  if (gpu().used + bytes > kMemory) return CUDA_ERROR_OUT_OF_MEMORY;
  gpu().used += bytes;
  return give(made, reinterpret_cast<CUmemGenericAllocationHandle>(new std::size_t(bytes)));
}

LOWTIDE_CALL CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(gpu().lock);
  auto* const bytes = reinterpret_cast<std::size_t*>(handle);
  gpu().used -= *bytes;
  delete bytes;
  return CUDA_SUCCESS;
}

// No other process gets a segment.
LOWTIDE_CALL CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle,
                                                   CUmemAllocationHandleType, unsigned long long) {
  return give(static_cast<int*>(file), -1);
}
