// Emits ops with their times, passes gradients back, and ends the step.
#include "lowtide/graph/generate/training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lowtide/graph/generate/work.h"

namespace lowtide::networks {

namespace {

// A hash of all arguments, mapped to [0, 1).
double scatter(std::uint64_t seed, std::string_view kind, std::int64_t bytes, double flops) {
  std::uint64_t hash = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
  const auto mix = [&](std::uint64_t word) {
    hash ^= word;
    hash *= 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 31;
  };
  for (char c : kind) mix(static_cast<unsigned char>(c));
  mix(static_cast<std::uint64_t>(bytes));
  mix(static_cast<std::uint64_t>(flops));
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

// Dense rates and bandwidth of an A100 80GB by its data sheet, scaled to what large kernels reach.
Ticks roofline(Dtype dtype, double flops, std::int64_t bytes, double factor) {
  const double rate = 0.6 * (dtype.bytes == 2 ? 312e12 : 156e12);
  constexpr double kBandwidth = 0.8 * 2039e9, kLaunch = 2000;
  const double seconds = std::max(flops / rate, static_cast<double>(bytes) / kBandwidth);
  return Ticks(std::llround(kLaunch + 1e9 * seconds * factor));
}

}  // namespace

std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (std::int64_t size : shape) product *= size;
  return product;
}

Training::Training(std::string name, Dtype dtype, std::uint64_t seed) : dtype_(dtype), seed_(seed) {
  builder_.set_name(std::move(name));
  builder_.set_tick(TickUnit::ns);
}

std::string Training::unique(std::string_view kind) {
  const std::string name(kind.substr(kind.find('.') + 1));
  const std::size_t number = names_[name]++;
  return number == 0 ? name : name + "_" + std::to_string(number);
}

Training::Emitted Training::emit(std::string_view kind, const std::string& at,
                                 std::initializer_list<TensorId> inputs,
                                 const std::vector<Made>& outputs, const Extra& extra) {
  Op op;
  op.name = unique(kind);
  op.kind = kind;
  op.origin = at;
  op.phase = phase_;
  op.workspace = extra.workspace;
  op.recomputable = !extra.once;

  Emitted emitted;
  OpLinks links;
  std::int64_t moved = 0;
  for (TensorId input : inputs) {
    links.inputs.push_back(static_cast<std::int64_t>(input.index()));
    moved += bytes_[input.index()];
  }
  for (const Made& output : outputs) {
    Tensor tensor;
    const std::size_t k = emitted.outputs.size();
    tensor.name = k == 0 ? op.name : op.name + "." + std::to_string(k);
    tensor.bytes = Bytes(elements(output.shape) * output.dtype.bytes);
    tensor.shape = output.shape;
    tensor.dtype = output.dtype.name;
    if (!output.gradient_of.empty()) {
      tensor.name = output.gradient_of + ".grad";
      tensor.role = Role::gradient;
    }
    moved += tensor.bytes.count();
    bytes_.push_back(tensor.bytes.count());
    const TensorId id = builder_.add_tensor(std::move(tensor));
    emitted.outputs.push_back(id);
    links.outputs.push_back(static_cast<std::int64_t>(id.index()));
    if (!output.gradient_of.empty()) builder_.add_output(id);
  }
  for (OpId before : extra.after) links.after.push_back(static_cast<std::int64_t>(before.index()));
  for (TensorId id : extra.mutates) links.mutates.push_back(static_cast<std::int64_t>(id.index()));
  if (kind != kBarrierKind) {
    const double share = scatter(seed_, kind, moved, extra.flops);
    op.time = roofline(dtype_, extra.flops, moved, 0.9 + 0.2 * share);
  }
  emitted.op = builder_.add_op(std::move(op), links);
  return emitted;
}

TensorId Training::stored(std::string name, Shape shape, Role role) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.role = role;
  const Dtype dtype = role == Role::parameter ? dtype_ : kF32;
  tensor.bytes = Bytes(elements(shape) * dtype.bytes);
  tensor.dtype = dtype.name;
  tensor.shape = std::move(shape);
  bytes_.push_back(tensor.bytes.count());
  return builder_.add_tensor(std::move(tensor));
}

Training::Value Training::data(const std::string& name, Shape shape, Dtype dtype) {
  Tensor tensor;
  tensor.name = name;
  tensor.role = Role::input;
  tensor.bytes = Bytes(elements(shape) * dtype.bytes);
  tensor.dtype = dtype.name;
  tensor.shape = shape;
  bytes_.push_back(tensor.bytes.count());
  const Value value = made(builder_.add_tensor(std::move(tensor)), std::move(shape));
  values_[value.index].differentiable = false;
  return value;
}

Training::Value Training::made(TensorId tensor, Shape shape) {
  values_.push_back({tensor, std::move(shape), true, TensorId()});
  return {values_.size() - 1};
}

void Training::backward(Value y, std::function<void(TensorId)> step) {
  backward_.push_back([this, y, step = std::move(step)] {
    const TensorId gradient = values_[y.index].gradient;
    if (gradient.valid()) step(gradient);
  });
}

void Training::give(const std::string& at, Value value, TensorId gradient) {
  Info& info = values_[value.index];
  if (!info.differentiable) return;
  info.gradient = info.gradient.valid()
                      ? emit_one("aten.add", at, {info.gradient, gradient}, like(value))
                      : gradient;
}

Graph Training::finish(Value logits, std::size_t dimension) {
  Shape rows = shape(logits);
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(dimension));
  const TensorId target = tensor(data("target", rows, kI64));
  const TensorId scores = emit_one("aten._log_softmax", "loss", {tensor(logits)}, like(logits));
  const auto loss =
      emit("aten.nll_loss_forward", "loss", {scores, target}, {{{1}, kF32}, {{1}, kF32}});
  builder_.add_output(loss.outputs[0]);

  Extra turn;
  turn.once = true;
  turn.after = effects_;
  if (last_draw_.valid()) turn.after.push_back(last_draw_);
  const TensorId tangent = emit_one(kBarrierKind, "", {loss.outputs[0]}, {{1}, kF32}, turn);

  phase_ = "backward";
  const TensorId scored = emit_one("aten.nll_loss_backward", "loss",
                                   {tangent, scores, target, loss.outputs[1]}, like(logits));
  give("loss", logits,
       emit_one("aten._log_softmax_backward_data", "loss", {scored, scores}, like(logits)));
  for (std::size_t i = backward_.size(); i-- > 0;) backward_[i]();
  return builder_.build();
}

}  // namespace lowtide::networks
