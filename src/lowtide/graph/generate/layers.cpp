// The ops of each kind of layer: its forward, and its backward.
#include <algorithm>
#include <utility>

#include "lowtide/graph/generate/training.h"
#include "lowtide/graph/generate/work.h"

namespace lowtide::networks {

namespace {

// The workspace of the libraries' faster convolutions: tiles of the unfolded input, up to a limit.
Bytes convolution_workspace(std::int64_t kernel, std::int64_t elements_in, std::int64_t bytes) {
  constexpr std::int64_t kMost = std::int64_t{256} << 20;
  return Bytes(kernel == 1 ? 0 : std::min(kMost, elements_in * bytes * kernel / 4));
}

}  // namespace

Training::Value Training::linear(const std::string& at, Value x, std::int64_t features, bool bias) {
  const std::int64_t inner = shape(x).back(), rows = elements(shape(x)) / inner;
  Shape out = shape(x);
  out.back() = features;
  const std::string weight_name = at + ".weight", bias_name = at + ".bias";
  const TensorId weight = stored(weight_name, {features, inner}, Role::parameter);
  const Extra work{.flops = multiply_add(rows, inner, features)};
  const TensorId made_tensor =
      bias ? emit_one("aten.addmm", at,
                      {stored(bias_name, {features}, Role::parameter), tensor(x), weight},
                      {out, dtype_}, work)
           : emit_one("aten.mm", at, {tensor(x), weight}, {out, dtype_}, work);
  const Value y = made(made_tensor, std::move(out));
  backward(y, [=, this](TensorId dy) {
    if (differentiable(x)) give(at, x, emit_one("aten.mm", at, {dy, weight}, like(x), work));
    emit_one("aten.mm", at, {dy, tensor(x)}, {{features, inner}, dtype_, weight_name}, work);
    if (bias) emit_one("aten.sum", at, {dy}, {{features}, dtype_, bias_name});
  });
  return y;
}

Training::Value Training::linear_relu(const std::string& at, Value x, std::int64_t features) {
  const std::int64_t inner = shape(x).back(), rows = elements(shape(x)) / inner;
  Shape out = shape(x);
  out.back() = features;
  const std::string weight_name = at + ".weight";
  const TensorId weight = stored(weight_name, {features, inner}, Role::parameter);
  const double flops = multiply_add(rows, inner, features);
  const Value y = made(
      emit_one("fused.linear_relu", at, {tensor(x), weight}, {out, dtype_}, Extra{.flops = flops}),
      out);
  backward(y, [=, this](TensorId dy) {
    std::vector<Made> outputs = {{{features, inner}, dtype_, weight_name}};
    if (differentiable(x)) outputs.insert(outputs.begin(), like(x));
    const auto made_tensors =
        emit("fused.linear_relu_backward", at, {dy, tensor(x), weight, tensor(y)}, outputs,
             Extra{.flops = flops * static_cast<double>(outputs.size())});
    if (differentiable(x)) give(at, x, made_tensors.outputs.front());
  });
  return y;
}

Training::Value Training::convolve(const std::string& at, Value x, Shape out, Shape weight_shape,
                                   double flops, Bytes workspace) {
  const std::string weight_name = at + ".weight";
  const TensorId weight = stored(weight_name, weight_shape, Role::parameter);
  const Value y = made(emit_one("aten.convolution", at, {tensor(x), weight}, {out, dtype_},
                                Extra{.flops = flops, .workspace = workspace}),
                       out);
  backward(y, [=, this](TensorId dy) {
    std::vector<Made> outputs = {{weight_shape, dtype_, weight_name}};
    if (differentiable(x)) outputs.insert(outputs.begin(), like(x));
    const auto made_tensors =
        emit("aten.convolution_backward", at, {dy, tensor(x), weight}, outputs,
             Extra{.flops = flops * static_cast<double>(outputs.size()), .workspace = workspace});
    if (differentiable(x)) give(at, x, made_tensors.outputs.front());
  });
  return y;
}

Training::Value Training::convolution(const std::string& at, Value x, std::int64_t channels,
                                      std::int64_t kernel, std::int64_t stride) {
  const Shape& in = shape(x);
  const Shape out = {in[0], channels, std::max<std::int64_t>(1, in[2] / stride),
                     std::max<std::int64_t>(1, in[3] / stride)};
  const double flops = multiply_add(elements(out), in[1] * kernel, kernel);
  return convolve(at, x, out, {channels, in[1], kernel, kernel}, flops,
                  convolution_workspace(kernel, elements(in), dtype_.bytes));
}

Training::Value Training::up_convolution(const std::string& at, Value x, std::int64_t channels) {
  const Shape& in = shape(x);
  const Shape out = {in[0], channels, 2 * in[2], 2 * in[3]};
  return convolve(at, x, out, {in[1], channels, 2, 2}, multiply_add(elements(out), in[1], 1),
                  Bytes(0));
}

Training::Value Training::batch_norm(const std::string& at, Value x) {
  const Shape per_channel = {shape(x)[1]};
  const TensorId weight = stored(at + ".weight", per_channel, Role::parameter);
  const TensorId bias = stored(at + ".bias", per_channel, Role::parameter);
  const TensorId running_mean = stored(at + ".running_mean", per_channel, Role::state);
  const TensorId running_variance = stored(at + ".running_var", per_channel, Role::state);
  const auto normed = emit("aten.native_batch_norm", at, {tensor(x), weight, bias},
                           {like(x), {per_channel, kF32}, {per_channel, kF32}});
  const TensorId mean_tensor = normed.outputs[1], deviation = normed.outputs[2];
  effects_.push_back(emit("lowtide.batch_norm_stats", at,
                          {running_mean, running_variance, mean_tensor, deviation}, {},
                          Extra{.once = true, .mutates = {running_mean, running_variance}})
                         .op);
  const Value y = made(normed.outputs[0], shape(x));
  backward(y, [=, this](TensorId dy) {
    const auto back =
        emit("aten.native_batch_norm_backward", at, {dy, tensor(x), weight, mean_tensor, deviation},
             {like(x), {per_channel, dtype_, at + ".weight"}, {per_channel, dtype_, at + ".bias"}});
    give(at, x, back.outputs[0]);
  });
  return y;
}

Training::Value Training::layer_norm(const std::string& at, Value x) {
  const Shape features = {shape(x).back()};
  Shape rows = shape(x);
  rows.back() = 1;
  const TensorId weight = stored(at + ".weight", features, Role::parameter);
  const TensorId bias = stored(at + ".bias", features, Role::parameter);
  const auto normed = emit("aten.native_layer_norm", at, {tensor(x), weight, bias},
                           {like(x), {rows, kF32}, {rows, kF32}});
  const TensorId mean_tensor = normed.outputs[1], deviation = normed.outputs[2];
  const Value y = made(normed.outputs[0], shape(x));
  backward(y, [=, this](TensorId dy) {
    const auto back =
        emit("aten.native_layer_norm_backward", at,
             {dy, tensor(x), mean_tensor, deviation, weight, bias},
             {like(x), {features, dtype_, at + ".weight"}, {features, dtype_, at + ".bias"}});
    give(at, x, back.outputs[0]);
  });
  return y;
}

Training::Value Training::elementwise(std::string_view kind, std::string_view backward_kind,
                                      const std::string& at, Value x, bool keeps_output) {
  const Value y = made(emit_one(kind, at, {tensor(x)}, like(x)), shape(x));
  backward(y, [=, this](TensorId dy) {
    const TensorId kept = tensor(keeps_output ? y : x);
    give(at, x, emit_one(backward_kind, at, {dy, kept}, like(x)));
  });
  return y;
}

Training::Value Training::relu(const std::string& at, Value x) {
  return elementwise("aten.relu", "aten.threshold_backward", at, x, true);
}

Training::Value Training::gelu(const std::string& at, Value x) {
  return elementwise("aten.gelu", "aten.gelu_backward", at, x, false);
}

Training::Value Training::max_pool(const std::string& at, Value x) {
  Shape out = shape(x);
  for (std::size_t i = 2; i < out.size(); ++i) out[i] = std::max<std::int64_t>(1, out[i] / 2);
  const auto pooled =
      emit("aten.max_pool2d_with_indices", at, {tensor(x)}, {{out, dtype_}, {out, kI64}});
  const TensorId indices = pooled.outputs[1];
  const Value y = made(pooled.outputs[0], std::move(out));
  backward(y, [=, this](TensorId dy) {
    give(at, x,
         emit_one("aten.max_pool2d_with_indices_backward", at, {dy, tensor(x), indices}, like(x)));
  });
  return y;
}

Training::Value Training::mean(const std::string& at, Value x) {
  const Shape out = {shape(x)[0], shape(x)[1]};
  const Value y = made(emit_one("aten.mean", at, {tensor(x)}, {out, dtype_}), out);
  backward(y, [=, this](TensorId dy) { give(at, x, emit_one("aten.div", at, {dy}, like(x))); });
  return y;
}

Training::Value Training::add(const std::string& at, Value a, Value b) {
  const Value y = made(emit_one("aten.add", at, {tensor(a), tensor(b)}, like(a)), shape(a));
  backward(y, [=, this](TensorId dy) {
    give(at, a, dy);
    give(at, b, dy);
  });
  return y;
}

Training::Value Training::concatenate(const std::string& at, Value a, Value b) {
  Shape out = shape(a);
  out[1] += shape(b)[1];
  const Value y = made(emit_one("aten.cat", at, {tensor(a), tensor(b)}, {out, dtype_}), out);
  // The two gradients are views of one storage, hence one tensor.
  backward(y, [=, this](TensorId dy) {
    give(at, a, dy);
    give(at, b, dy);
  });
  return y;
}

Training::Value Training::dropout(const std::string& at, Value x) {
  Extra draw{.once = true};
  if (last_draw_.valid()) draw.after = {last_draw_};
  const auto drawn = emit("lowtide.dropout_mask", at, {}, {{shape(x), kBool}}, draw);
  last_draw_ = drawn.op;
  const TensorId mask = drawn.outputs[0];
  const Value y = made(emit_one("lowtide.dropout_apply", at, {tensor(x), mask}, like(x)), shape(x));
  backward(y, [=, this](TensorId dy) {
    give(at, x, emit_one("aten.native_dropout_backward", at, {dy, mask}, like(x)));
  });
  return y;
}

Training::Value Training::attention(const std::string& at, Value queries_keys_values,
                                    std::int64_t heads) {
  const Value x = queries_keys_values;
  const std::int64_t batch = shape(x)[0], length = shape(x)[1], width = shape(x)[2] / 3;
  const Shape out = {batch, length, width};
  // Causal: half of all pairs.
  const double flops = multiply_add(batch * length, length, width);
  const auto attended =
      emit("aten._scaled_dot_product_flash_attention", at, {tensor(x)},
           {{out, dtype_}, {{batch, heads, length}, kF32}}, Extra{.flops = flops});
  const TensorId sums = attended.outputs[1];  // log-sum-exp of each row
  const Value y = made(attended.outputs[0], out);
  backward(y, [=, this](TensorId dy) {
    const auto back = emit(
        "aten._scaled_dot_product_flash_attention_backward", at, {dy, tensor(x), tensor(y), sums},
        {{out, dtype_}, {out, dtype_}, {out, dtype_}}, Extra{.flops = 2.5 * flops});
    give(at, x,
         emit_one("aten.cat", at, {back.outputs[0], back.outputs[1], back.outputs[2]}, like(x)));
  });
  return y;
}

Training::Value Training::embedding(const std::string& at, Value ids, std::int64_t rows,
                                    std::int64_t features) {
  const std::string weight_name = at + ".weight";
  const TensorId weight = stored(weight_name, {rows, features}, Role::parameter);
  Shape out = shape(ids);
  out.push_back(features);
  const Value y = made(emit_one("aten.embedding", at, {weight, tensor(ids)}, {out, dtype_}), out);
  backward(y, [=, this](TensorId dy) {
    emit_one("aten.embedding_dense_backward", at, {dy, tensor(ids)},
             {{rows, features}, dtype_, weight_name});
  });
  return y;
}

Training::Value Training::add_positions(const std::string& at, Value x) {
  const std::string weight_name = at + ".weight";
  const Shape positions = {shape(x)[1], shape(x)[2]};
  const TensorId weight = stored(weight_name, positions, Role::parameter);
  const Value y = made(emit_one("aten.add", at, {tensor(x), weight}, like(x)), shape(x));
  backward(y, [=, this](TensorId dy) {
    give(at, x, dy);
    emit_one("aten.sum", at, {dy}, {positions, dtype_, weight_name});
  });
  return y;
}

}  // namespace lowtide::networks
