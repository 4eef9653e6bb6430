// By the formulas of PyTorch's counter (torch.utils.flop_counter), with what storages keep of
// shapes.
#include "lowtide/ops/operations.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

using Count = std::int64_t;
using Shape = std::vector<Count>;

// Namespaces of PyTorch's operators that compute on tensors, and our own of parts of such.
constexpr std::array<std::string_view, 15> kKnown = {"aten",
                                                     "prims",
                                                     "prim",
                                                     "inductor",
                                                     "inductor_prims",
                                                     "mkldnn",
                                                     "mkl",
                                                     "onednn",
                                                     "mkldnn_prepacked",
                                                     "quantized",
                                                     "rngprims",
                                                     "lowtide",
                                                     "torchvision",
                                                     "quantized_decomposed",
                                                     "torchaudio"};

Count product(Count a, Count b) {
  Count result = 0;
  if (__builtin_mul_overflow(a, b, &result)) detail::throw_overflow();
  return result;
}

Count numbers(const Shape& shape) {
  Count all = 1;
  for (const Count extent : shape) all = product(all, extent);
  return all;
}

// The source of shapes and names: the tensors of a graph's op, or a call.
class Seen {
 public:
  virtual ~Seen() = default;
  virtual std::string_view kind() const = 0;
  virtual std::string label() const = 0;
  virtual std::size_t inputs() const = 0;
  virtual std::size_t outputs() const = 0;
  virtual const Shape& input(std::size_t at) const = 0;
  virtual const Shape& output(std::size_t at) const = 0;

  [[noreturn]] void refuse(const std::string& reason) const {
    throw InputError(label(),
                     reason +
                         "; say it in the op: \"attributes\": {\"flops\": N}, 0 if it only "
                         "moves bytes");
  }
};

class SeenOp : public Seen {
 public:
  SeenOp(const Graph& graph, OpId op) : graph_(graph), op_(op) {}
  std::string_view kind() const override { return graph_.op(op_).kind; }
  std::string label() const override { return graph_.label(op_); }
  std::size_t inputs() const override { return graph_.inputs(op_).size(); }
  std::size_t outputs() const override { return graph_.outputs(op_).size(); }
  const Shape& input(std::size_t at) const override { return shape(graph_.inputs(op_)[at]); }
  const Shape& output(std::size_t at) const override { return shape(graph_.outputs(op_)[at]); }

 private:
  const Shape& shape(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.shape.empty()) refuse(graph_.label(id) + " has no \"shape\"");
    return tensor.shape;
  }

  const Graph& graph_;
  OpId op_;
};

class SeenCall : public Seen {
 public:
  SeenCall(const Call& call, const std::string& label) : call_(call), label_(label) {}
  std::string_view kind() const override { return call_.kind; }
  std::string label() const override { return label_; }
  std::size_t inputs() const override { return call_.operands.size(); }
  std::size_t outputs() const override { return call_.results.size(); }
  const Shape& input(std::size_t at) const override { return call_.operands[at].shape; }
  const Shape& output(std::size_t at) const override { return call_.results[at].shape; }

 private:
  const Call& call_;
  const std::string& label_;
};

class Counter {
 public:
  explicit Counter(const Seen& seen) : seen_(seen) {}

  Count count() const {
    const std::string_view kind = seen_.kind();
    if (kind.empty()) refuse("has no \"kind\", so its operations are unknown");
    const auto point = kind.find('.');
    const std::string_view space = kind.substr(0, point);
    if (point == std::string_view::npos || std::ranges::find(kKnown, space) == kKnown.end())
      refuse("its kind \"" + std::string(kind) + "\" is none whose operations can be counted");
    std::string_view name = kind.substr(point + 1);
    name = name.substr(0, name.find('.'));  // without the overload
    if (space != "aten") return 0;
    if (name == "mm" || name == "bmm" || name == "matmul") return matrices(0);
    if (name == "addmm" || name == "baddbmm") return matrices(1);
    if (name == "linear") return linear();
    if (name == "convolution") return convolution();
    if (name == "convolution_backward") return convolution_backward();
    if (name.find("scaled_dot_product") != std::string_view::npos)
      return attention(name.ends_with("_backward"));
    return 0;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { seen_.refuse(reason); }
  [[noreturn]] void refuse_shapes() const {
    refuse("the shapes of its tensors do not say how many operations \"" +
           std::string(seen_.kind()) + "\" does");
  }

  std::size_t input_count() const { return seen_.inputs(); }
  const Shape& input(std::size_t at) const {
    if (at >= input_count()) refuse_shapes();
    return seen_.input(at);
  }
  const Shape& output() const {
    if (seen_.outputs() == 0) refuse_shapes();
    return seen_.output(0);
  }

  // 2 x numbers of the result x length of the sums; the factors are the inputs from `first` on, one
  // of them if both are the same.
  Count matrices(std::size_t first) const {
    const Shape& out = output();
    const Count made = numbers(out);
    if (made == 0) return 0;
    if (out.size() < 2) refuse_shapes();
    const Count columns = out.back(), batches = made / columns / out[out.size() - 2];
    const Shape& left = input(first);
    const Shape& right = input(std::min(first + 1, input_count() - 1));
    std::optional<Count> length = quotient(numbers(left), made / columns);
    const Count of_right = right.size() > 2 ? product(batches, columns) : columns;
    if (const auto other = quotient(numbers(right), of_right);
        other && (!length || *other < *length))
      length = other;
    if (!length) refuse_shapes();
    return product(2, product(made, *length));
  }
  static std::optional<Count> quotient(Count all, Count part) {
    if (part == 0 || all % part != 0) return std::nullopt;
    return all / part;
  }

  Count linear() const {
    const Shape& weight = input(1);
    if (weight.size() != 2) refuse_shapes();
    return product(2, product(numbers(output()), weight[1]));
  }

  // Of one of the three convolutions of a layer: each number of the side on which the kernel is
  // applied once, without its channels, meets every weight.
  Count convolved(const Shape& in, const Shape& weight, const Shape& out) const {
    if (in.size() < 3 || weight.size() != in.size() || out.size() != in.size()) refuse_shapes();
    const bool straight = weight[0] == out[1], transposed = weight[0] == in[1];
    if (!straight && !transposed) refuse_shapes();
    // With as many channels on both sides either may be meant; the smaller side is the coarser
    // grid.
    Shape applied = straight && (!transposed || numbers(out) <= numbers(in)) ? out : in;
    applied[1] = 1;
    return product(2, product(numbers(applied), numbers(weight)));
  }
  Count convolution() const { return convolved(input(0), input(1), output()); }
  Count convolution_backward() const {
    const Shape &gradient = input(0), &in = input(1), &weight = input(2);
    const Count once = convolved(in, weight, gradient);
    Count all = 0;
    for (std::size_t i = 0; i < seen_.outputs(); ++i)
      if (seen_.output(i) == in || seen_.output(i) == weight)
        all = checked_add(Ticks(all), Ticks(once)).count();
    return all;
  }

  // Batch, heads, positions, extent: two products forward, five backward (scores are made again).
  Count attention(bool backward) const {
    const std::size_t first = backward ? 1 : 0;
    const Shape &query = input(first), &key = input(first + 1);
    const bool fits = query.size() == 4 && key.size() == 4 && query[0] == key[0] &&
                      query[3] == key[3] && input_count() >= first + 3;
    if (!fits) refuse_shapes();
    const Count scores = product(product(query[0], query[1]), product(query[2], key[2]));
    return product(backward ? 10 : 4, product(scores, query[3]));
  }

  const Seen& seen_;
};

}  // namespace

std::int64_t counted_operations(const Graph& graph, OpId op) {
  return Counter(SeenOp(graph, op)).count();
}

std::int64_t counted_operations(const Call& call, const std::string& label) {
  const std::int64_t full = Counter(SeenCall(call, label)).count();
  const auto causal = std::ranges::find(call.arguments, "is_causal", &Argument::name);
  if (causal == call.arguments.end()) return full;
  const bool* half = std::get_if<bool>(&causal->value.value);
  return half && *half ? full / 2 : full;
}

}  // namespace lowtide
