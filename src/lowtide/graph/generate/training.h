// A training step, built from its forward. Each call adds an op and records its backward; `finish`
// adds the loss, the barrier and the backward. The ops and their names are those of graphs captured
// from PyTorch. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lowtide/graph/builder.h"

namespace lowtide::networks {

using Shape = std::vector<std::int64_t>;

struct Dtype {
  std::string_view name;
  std::int64_t bytes;
};
inline constexpr Dtype kF32{"f32", 4}, kBf16{"bf16", 2}, kI64{"i64", 8}, kBool{"bool", 1};

// Optional properties of an op and its output.
struct Made {
  Shape shape;
  Dtype dtype;
  std::string gradient_of = {};  // the parameter whose gradient the output is
};
struct Extra {
  double flops = 0;
  Bytes workspace = Bytes(0);
  bool once = false;
  std::vector<OpId> after = {};
  std::vector<TensorId> mutates = {};
};

class Training {
 public:
  // The values of the forward, in the order in which they were made.
  struct Value {
    std::size_t index;
  };

  // `seed` changes the times of ops by up to a tenth; ops of one kind and size take the same time.
  Training(std::string name, Dtype dtype, std::uint64_t seed);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // `at` is the origin of the op: "layer3.block2.conv1". Images are N, C, H, W; the last dimension
  // of everything else is its features.
  Value data(const std::string& name, Shape shape, Dtype dtype);  // without a gradient
  Value linear(const std::string& at, Value x, std::int64_t features, bool bias = true);
  Value linear_relu(const std::string& at, Value x, std::int64_t features);  // fused, no bias
  Value convolution(const std::string& at, Value x, std::int64_t channels, std::int64_t kernel,
                    std::int64_t stride = 1);
  Value up_convolution(const std::string& at, Value x, std::int64_t channels);  // doubles H and W
  Value batch_norm(const std::string& at, Value x);
  Value layer_norm(const std::string& at, Value x);
  Value relu(const std::string& at, Value x);
  Value gelu(const std::string& at, Value x);
  Value max_pool(const std::string& at, Value x);  // halves H and W
  Value mean(const std::string& at, Value x);      // over H and W
  Value add(const std::string& at, Value a, Value b);
  Value concatenate(const std::string& at, Value a, Value b);  // along the channels
  Value dropout(const std::string& at, Value x);
  Value attention(const std::string& at, Value queries_keys_values, std::int64_t heads);
  Value embedding(const std::string& at, Value ids, std::int64_t rows, std::int64_t features);
  Value add_positions(const std::string& at, Value x);

  const Shape& shape(Value value) const { return values_[value.index].shape; }

  // Cross-entropy over `dimension` of the logits, then the whole backward.
  Graph finish(Value logits, std::size_t dimension);

 private:
  struct Info {
    TensorId tensor;
    Shape shape;
    bool differentiable = true;
    TensorId gradient;  // the sum so far, while the backward is built
  };
  struct Emitted {
    OpId op;
    std::vector<TensorId> outputs;
  };

  Emitted emit(std::string_view kind, const std::string& at, std::initializer_list<TensorId> inputs,
               const std::vector<Made>& outputs, const Extra& extra = {});
  TensorId emit_one(std::string_view kind, const std::string& at,
                    std::initializer_list<TensorId> inputs, Made output, const Extra& extra = {}) {
    return emit(kind, at, inputs, {std::move(output)}, extra).outputs.front();
  }
  // Parameters and states are inputs of the graph.
  TensorId stored(std::string name, Shape shape, Role role);
  Made like(Value value) const { return {values_[value.index].shape, dtype_}; }
  Value made(TensorId tensor, Shape shape);
  TensorId tensor(Value value) const { return values_[value.index].tensor; }
  bool differentiable(Value value) const { return values_[value.index].differentiable; }
  // Registers the backward of y: `step(dy)` is called if y has a gradient dy when the backward
  // reaches it.
  void backward(Value y, std::function<void(TensorId)> step);
  void give(const std::string& at, Value value, TensorId gradient);
  Value elementwise(std::string_view kind, std::string_view backward_kind, const std::string& at,
                    Value x, bool keeps_output);
  Value convolve(const std::string& at, Value x, Shape out, Shape weight, double flops,
                 Bytes workspace);
  std::string unique(std::string_view kind);

  Dtype dtype_;
  std::uint64_t seed_;
  GraphBuilder builder_;
  std::string_view phase_ = "forward";
  std::vector<Info> values_;
  std::vector<std::function<void()>> backward_;
  std::vector<std::int64_t> bytes_;  // by tensor
  std::vector<OpId> effects_;        // ops of the forward that must run before its end
  OpId last_draw_;                   // the last random draw
  std::unordered_map<std::string, std::size_t> names_;
};

}  // namespace lowtide::networks
