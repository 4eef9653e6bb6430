// The runtime's calls for streams, events, graphs and kernels.
#include <algorithm>

#include "gpu.h"

using namespace lowtide::gpu;

namespace {

Event& of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

double of_kernel(dim3 grid, dim3 block) {  // two times four numbers of four bytes a thread
  const double threads = double{1} * grid.x * grid.y * grid.z * block.x * block.y * block.z;
  return kLaunch + 32 * threads / kBandwidth;
}

cudaError_t launch(dim3 grid, dim3 block, cudaStream_t stream) {
  const unsigned threads = block.x * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0 || threads > 1024)
    return cudaErrorInvalidConfiguration;
  queue(stream, of_kernel(grid, block));
  return cudaSuccess;
}

cudaError_t launch(const void* kernel, dim3 grid, dim3 block, void** arguments,
                   cudaStream_t stream) {
  if (kernel != gpu().spin) return launch(grid, block, stream);
  queue(stream, static_cast<double>(*static_cast<std::int64_t*>(arguments[0])) / kClock);
  return cudaSuccess;
}

}  // namespace

LOWTIDE_CALL cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned, int priority) {
  const std::lock_guard lock(gpu().lock);
  auto* const stream = new Stream;
  stream->priority = priority;
  gpu().streams.insert(stream);
  *made = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamCreate(cudaStream_t* made) {
  return cudaStreamCreateWithPriority(made, 0, 0);
}
LOWTIDE_CALL cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  return cudaStreamCreate(made);
}

LOWTIDE_CALL cudaError_t cudaStreamDestroy(cudaStream_t handle) {  // events may still name it
  const std::lock_guard lock(gpu().lock);
  gpu().streams.erase(&gpu().stream(handle));
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  const std::lock_guard lock(gpu().lock);
  *priority = gpu().stream(handle).priority;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  double until = 0;
  {
    const std::lock_guard lock(gpu().lock);
    const Stream& stream = gpu().stream(handle);
    if (stream.capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    until = stream.busy_until;
  }
  sleep_until(until);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const std::lock_guard lock(gpu().lock);
  const Stream& stream = gpu().stream(handle);
  if (stream.capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  return stream.busy_until <= now() ? cudaSuccess : cudaErrorNotReady;
}

LOWTIDE_CALL cudaError_t cudaDeviceSynchronize() {
  double until = 0;
  {
    const std::lock_guard lock(gpu().lock);
    if (gpu().forbidden()) return cudaErrorStreamCaptureUnsupported;
    until = gpu().null_stream.busy_until;
    for (const Stream* stream : gpu().streams) until = std::max(until, stream->busy_until);
  }
  sleep_until(until);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle,
                                             unsigned) {
  const std::lock_guard lock(gpu().lock);
  Stream& stream = gpu().stream(handle);
  const Event& event = of(event_handle);
  if (event.capture != nullptr) {
    if (stream.capture != nullptr && stream.capture != event.capture)
      return cudaErrorStreamCaptureMerge;
    stream.capture = event.capture;
  } else if (stream.capture != nullptr) {
    return event.recorded ? cudaErrorStreamCaptureIsolation : cudaSuccess;
  } else {
    stream.busy_until = std::max(stream.busy_until, event.at);
  }
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) {
  *made = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaEventCreate(cudaEvent_t* made) {
  return cudaEventCreateWithFlags(made, 0);
}

LOWTIDE_CALL cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const std::lock_guard lock(gpu().lock);
  delete &of(handle);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle,
                                                  unsigned) {
  const std::lock_guard lock(gpu().lock);
  const Stream& stream = gpu().stream(stream_handle);
  of(handle) = {std::max(stream.busy_until, now()), true, stream.capture};
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

LOWTIDE_CALL cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const std::lock_guard lock(gpu().lock);
  if (of(handle).capture != nullptr) return cudaErrorCapturedEvent;
  if (gpu().forbidden()) return cudaErrorStreamCaptureUnsupported;
  return of(handle).at <= now() ? cudaSuccess : cudaErrorNotReady;
}

LOWTIDE_CALL cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  double until = 0;
  {
    const std::lock_guard lock(gpu().lock);
    if (of(handle).capture != nullptr) return cudaErrorCapturedEvent;
    until = of(handle).at;
  }
  sleep_until(until);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from,
                                              cudaEvent_t to) {
  const std::lock_guard lock(gpu().lock);
  if (!of(from).recorded || !of(to).recorded) return cudaErrorInvalidResourceHandle;
  if (std::max(of(from).at, of(to).at) > now()) return cudaErrorNotReady;
  *milliseconds = static_cast<float>((of(to).at - of(from).at) / 1e6);
  return cudaSuccess;
}

// ---- graphs

LOWTIDE_CALL cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(gpu().lock);
  Stream& stream = gpu().stream(handle);
  if (&stream == &gpu().null_stream) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture != nullptr) return cudaErrorIllegalState;
  stream.capture = new Capture{++gpu().captures_begun, mode == cudaStreamCaptureModeRelaxed};
  gpu().captures.push_back(stream.capture);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* made) {
  const std::lock_guard lock(gpu().lock);
  Capture* const capture = gpu().stream(handle).capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  std::erase(gpu().captures, capture);
  for (Stream* stream : gpu().streams)
    if (stream->capture == capture) stream->capture = nullptr;
  *made = reinterpret_cast<cudaGraph_t>(new Graph{capture->duration, capture->nodes});
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                               cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(gpu().lock);
  *status =
      gpu().stream(handle).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle,
                                                  cudaStreamCaptureStatus* status,
                                                  unsigned long long* id, cudaGraph_t* graph,
                                                  const cudaGraphNode_t** nodes,
                                                  const cudaGraphEdgeData** edges,
                                                  std::size_t* count) {
  const std::lock_guard lock(gpu().lock);
  Capture* const capture = gpu().stream(handle).capture;
  *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = capture ? capture->id : 0;
  if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(capture);
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
  const std::lock_guard lock(gpu().lock);
  std::swap(*mode, own);
  for (Capture* capture : gpu().captures) capture->relaxed = own == cudaStreamCaptureModeRelaxed;
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                       unsigned long long) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
  queue(stream, reinterpret_cast<Graph*>(handle)->duration);
  return cudaSuccess;
}

LOWTIDE_CALL cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*,
                                           std::size_t* count) {
  *count = reinterpret_cast<Graph*>(graph)->nodes;
  return cudaSuccess;
}

// ---- kernels

LOWTIDE_CALL cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block,
                                          void** arguments, std::size_t, cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, stream);
}

LOWTIDE_CALL cudaError_t cudaLaunchCooperativeKernel(const void*, dim3 grid, dim3 block, void**,
                                                     std::size_t, cudaStream_t stream) {
  return launch(grid, block, stream);
}

LOWTIDE_CALL cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                            void** arguments, std::size_t, cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), grid, block, arguments, stream);
}

LOWTIDE_CALL cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*,
                                             void**) {
  return launch(config->gridDim, config->blockDim, config->stream);
}

LOWTIDE_CALL CUresult cuLaunchKernel(CUfunction, unsigned x, unsigned y, unsigned z, unsigned of_x,
                                     unsigned of_y, unsigned of_z, unsigned, CUstream stream,
                                     void**, void**) {
  return static_cast<CUresult>(launch({x, y, z}, {of_x, of_y, of_z}, stream));
}

LOWTIDE_CALL CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction, void**, void**) {
  return static_cast<CUresult>(launch({config->gridDimX, config->gridDimY, config->gridDimZ},
                                      {config->blockDimX, config->blockDimY, config->blockDimZ},
                                      config->hStream));
}

LOWTIDE_CALL cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void* data) {
  cudaStreamSynchronize(stream);
  run(data);
  return cudaSuccess;
}
