// cuDNN: descriptors that keep what they are told, and one engine for each convolution.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <cudnn.h>

#include "gpu.h"

using namespace lowtide::gpu;

namespace {

struct Handle {
  cudaStream_t stream = nullptr;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<char>> attributes = {};
  const Descriptor* origin = nullptr;  // of which a query has made it
};

using Pointer = Descriptor*;

constexpr double kOfNorm = 20e3;            // nanoseconds
constexpr std::size_t kScratch = 64 << 10;  // bytes

Handle& of(cudnnHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }
Descriptor& of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Pointer>(descriptor); }

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    case CUDNN_TYPE_FRACTION: return 16;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    default: return 4;
  }
}

template <typename Value>
std::vector<Value> values(const Descriptor* descriptor, int attribute) {
  if (descriptor == nullptr) return {};
  const auto found = descriptor->attributes.find(attribute);
  if (found == descriptor->attributes.end()) return {};
  std::vector<Value> made(found->second.size() / sizeof(Value));
  std::memcpy(made.data(), found->second.data(), made.size() * sizeof(Value));
  return made;
}

const Descriptor* first(const Descriptor* descriptor, int attribute) {
  const std::vector<Pointer> found = values<Pointer>(descriptor, attribute);
  return found.empty() ? nullptr : found.front();
}

// The graph of operations behind a plan, an engine's configuration, an engine or a heuristic.
const Descriptor* graph_of(const Descriptor* descriptor) {
  while (descriptor != nullptr) {
    for (const int way : {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH})
      if (const Descriptor* graph = first(descriptor, way)) return graph;
    const Descriptor* next = descriptor->origin;
    for (const int way : {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_ENGINECFG_ENGINE})
      if (next == nullptr) next = first(descriptor, way);
    descriptor = next;
  }
  return nullptr;
}

struct Work {
  double operations = 0;
  double elements = 0;  // of results
  bool half = false;
};

Work work_of(const Descriptor* graph) {
  constexpr std::pair<int, int> kWays[] = {
      // filter, and what lies at the convolution's output
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  Work made;
  for (const Pointer operation : values<Pointer>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    for (const auto& [of_filter, of_output] : kWays) {
      const Descriptor *filter = first(operation, of_filter), *output = first(operation, of_output);
      if (filter == nullptr || output == nullptr) continue;
      const auto product = [](const std::vector<std::int64_t>& extents) {
        return std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>());
      };
      const std::vector<std::int64_t> shape =
          values<std::int64_t>(filter, CUDNN_ATTR_TENSOR_DIMENSIONS);
      const double elements = product(values<std::int64_t>(output, CUDNN_ATTR_TENSOR_DIMENSIONS));
      made.elements += elements;
      made.operations +=
          2 * elements * product(shape) / static_cast<double>(shape.empty() ? 1 : shape.front());
      const std::vector<int> types = values<int>(output, CUDNN_ATTR_TENSOR_DATA_TYPE);
      made.half |= !types.empty() && types.front() != CUDNN_DATA_FLOAT;
    }
  }
  return made;
}

template <typename Made>
cudnnStatus_t make(Made** made) {
  *made = reinterpret_cast<Made*>(new char[1024]());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t of_scratch(std::size_t* bytes) {
  *bytes = kScratch;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t norm(cudnnHandle_t handle) {
  queue(of(handle).stream, kOfNorm);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

LOWTIDE_CALL cudnnStatus_t cudnnCreate(cudnnHandle_t* made) {
  *made = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  of(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = of(handle).stream;
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
LOWTIDE_CALL std::size_t cudnnGetCudartVersion() { return 13000; }

LOWTIDE_CALL cudnnStatus_t cudnnGetProperty(libraryPropertyType which, int* value) {
  *value = which == MAJOR_VERSION   ? CUDNN_MAJOR
           : which == MINOR_VERSION ? CUDNN_MINOR
                                    : CUDNN_PATCHLEVEL;
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of the stand-in"; }

LOWTIDE_CALL void cudnnGetLastErrorString(char* text, std::size_t size) {
  if (size != 0) *text = 0;
}

LOWTIDE_CALL cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  return make(made);
}
LOWTIDE_CALL cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  return make(made);
}
LOWTIDE_CALL cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  return make(made);
}
LOWTIDE_CALL cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* made) {
  return make(made);
}
LOWTIDE_CALL cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* made) {
  return make(made);
}
LOWTIDE_CALL cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* made) {
  return make(made);
}
LOWTIDE_CALL cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* made) {
  return make(made);
}

// ---- batch norms

LOWTIDE_CALL cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnActivationDescriptor_t, std::size_t* bytes) {
  return of_scratch(bytes);
}

LOWTIDE_CALL cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnActivationDescriptor_t,
    std::size_t* bytes) {
  return of_scratch(bytes);
}

LOWTIDE_CALL cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnActivationDescriptor_t,
    cudnnTensorDescriptor_t, std::size_t* bytes) {
  return of_scratch(bytes);
}

LOWTIDE_CALL cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
    cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t, const void*, const void*, double,
    void*, void*, double, void*, void*, cudnnActivationDescriptor_t, void*, std::size_t, void*,
    std::size_t) {
  return norm(handle);
}

LOWTIDE_CALL cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void*, const void*,
    const void*, const void*, cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t,
    const void*, cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, void*,
    cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t, const void*, const void*, void*, void*,
    double, const void*, const void*, cudnnActivationDescriptor_t, void*, std::size_t, void*,
    std::size_t) {
  return norm(handle);
}

// ---- the graph of operations

LOWTIDE_CALL cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                        cudnnBackendDescriptor_t* made) {
  *made = new Descriptor{type};
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                    cudnnBackendAttributeName_t name,
                                                    cudnnBackendAttributeType_t type,
                                                    std::int64_t count, const void* from) {
  const auto* const begin = static_cast<const char*>(from);
  of(descriptor)
      .attributes[name]
      .assign(begin, begin + static_cast<std::size_t>(count) * bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle,
                                                    cudnnBackendAttributeName_t name,
                                                    cudnnBackendAttributeType_t type,
                                                    std::int64_t wanted, std::int64_t* count,
                                                    void* to) {
  Descriptor& descriptor = of(handle);
  std::int64_t ignored = 0;
  std::int64_t& found = count != nullptr ? *count : ignored;
  const bool gives = to != nullptr && wanted > 0;
  found = 1;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      if (gives) (*static_cast<Pointer*>(to))->origin = &descriptor;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      if (gives) {
        const Descriptor* own = first(&descriptor, name);
        (*static_cast<Pointer*>(to))->origin = own != nullptr ? own : &descriptor;
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE: {
      const double elements = work_of(graph_of(&descriptor)).elements;
      if (gives)
        *static_cast<std::int64_t*>(to) =
            elements > (1 << 20) ? static_cast<std::int64_t>(elements) : 0;
      return CUDNN_STATUS_SUCCESS;
    }
    default: break;
  }
  const auto kept = descriptor.attributes.find(name);
  if (kept != descriptor.attributes.end()) {
    const std::size_t each = bytes_of(type), size = kept->second.size();
    found = static_cast<std::int64_t>(size / each);
    if (gives)
      std::memcpy(to, kept->second.data(), std::min(size, static_cast<std::size_t>(wanted) * each));
  } else if (gives && wanted == 1 && type == CUDNN_TYPE_INT64) {
    *static_cast<std::int64_t*>(to) = 0;
  } else {
    found = 0;
  }
  return CUDNN_STATUS_SUCCESS;
}

LOWTIDE_CALL cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                               cudnnBackendDescriptor_t) {
  const Work work = work_of(graph_of(&of(plan)));
  queue(of(handle).stream,
        kLaunch + work.operations / (work.half ? kHalf : kSingle) + 8 * work.elements / kBandwidth);
  return CUDNN_STATUS_SUCCESS;
}
