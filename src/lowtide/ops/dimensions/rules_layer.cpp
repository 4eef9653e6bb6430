// Layers that PyTorch computes by one kernel: convolutions, norms, pools, resampling; each with its
// backward.
#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

// Images, channels of the results and, where no bias would be added several times, of the input.
void convolution(const OpView& op, Rule& rule) {
  const Item input = op.operand("input"), weight = op.operand("weight"), bias = op.operand("bias");
  if (op.rank(input) != op.rank(weight)) return;
  Draft(op).in(input, 0).out(0, 0).add_to(rule);
  if (!op.is_number("groups", 1)) return;
  const std::int64_t made = op.is_true("transposed") ? 1 : 0;
  Draft(op).in(weight, made).in_any(bias, 0).out(0, 1).add_to(rule);
  if (!bias) Draft(op).in(input, 1).in(weight, 1 - made).others(Unnamed::sum).add_to(rule);
}

void convolution_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_output"), input = op.operand("input"),
             weight = op.operand("weight");
  const Item to_input = op.result(0), to_weight = op.result(1), to_bias = op.result(2);
  if (op.rank(input) != op.rank(weight)) return;
  Draft(op).in(gradient, 0).in(input, 0).out(to_input, 0).others(Unnamed::sum).add_to(rule);
  if (!op.is_number("groups", 1)) return;
  const std::int64_t made = op.is_true("transposed") ? 1 : 0;
  Draft(op)
      .in(gradient, 1)
      .in(weight, made)
      .out(to_weight, made)
      .out(to_bias, 0)
      .other(to_input, Unnamed::sum)
      .add_to(rule);
  Draft(op)
      .in(input, 1)
      .in(weight, 1 - made)
      .out(to_input, 1)
      .out(to_weight, 1 - made)
      .other(to_bias, Unnamed::same)
      .add_to(rule);
}

// Everything but the last dimensions, of which there are as many as normalized extents.
void layer_norm(const OpView& op, Rule& rule) {
  const Item input = op.operand("input");
  const auto normalized = op.integers("normalized_shape");
  if (!normalized) return;
  for (std::int64_t d = 0; d < op.rank(input) - std::ssize(*normalized); ++d) {
    Draft draft(op);
    draft.in(input, d);
    for (std::size_t r = 0; r < op.result_count(); ++r) draft.out(r, d);
    draft.add_to(rule);
  }
}

void layer_norm_backward(const OpView& op, Rule& rule) {
  const Item input = op.operand("input");
  const auto normalized = op.integers("normalized_shape");
  if (!normalized) return;
  for (std::int64_t d = 0; d < op.rank(input) - std::ssize(*normalized); ++d)
    Draft(op)
        .in(op.operand("grad_out"), d)
        .in(input, d)
        .in_any(op.operand("mean"), d)
        .in(op.operand("rstd"), d)
        .out(op.result(0), d)
        .others(Unnamed::sum)
        .add_to(rule);
}

void rms_norm_backward(const OpView& op, Rule& rule) {
  const Item input = op.operand("input");
  const auto normalized = op.integers("normalized_shape");
  if (!normalized) return;
  for (std::int64_t d = 0; d < op.rank(input) - std::ssize(*normalized); ++d)
    Draft(op)
        .in(op.operand("grad_out"), d)
        .in(input, d)
        .in(op.operand("rstd"), d)
        .out(op.result(0), d)
        .others(Unnamed::sum)
        .add_to(rule);
}

void group_norm(const OpView& op, Rule& rule) {
  Draft(op)
      .in(op.operand("input"), 0)
      .out(op.result(0), 0)
      .out(op.result(1), 0)
      .out(op.result(2), 0)
      .add_to(rule);
}

void group_norm_backward(const OpView& op, Rule& rule) {
  Draft(op)
      .in(op.operand("grad_out"), 0)
      .in(op.operand("input"), 0)
      .in(op.operand("mean"), 0)
      .in(op.operand("rstd"), 0)
      .out(op.result(0), 0)
      .others(Unnamed::sum)
      .add_to(rule);
}

// Channels always; everything else only where the statistics are given.
void batch_norm_with(const OpView& op, Rule& rule, bool given) {
  const Item input = op.operand("input");
  Draft channels(op);
  channels.in(input, 1).out(op.result(0), 1);
  for (const std::string_view name : {"weight", "bias", "running_mean", "running_var"})
    channels.in_any(op.operand(name), 0);
  for (const std::int64_t number : {1, 2}) {
    const Item saved = op.result(number);
    if (op.extents_made(saved) == Extents{0})
      channels.other(saved, Unnamed::same);
    else
      channels.out(saved, 0);
  }
  channels.add_to(rule);
  if (!given) return;
  for (std::int64_t d = 0; d < op.rank(input); ++d)
    if (d != 1) Draft(op).in(input, d).out(op.result(0), d).others(Unnamed::same).add_to(rule);
}

void batch_norm(const OpView& op, Rule& rule) {
  batch_norm_with(op, rule, op.is_false("training"));
}

void batch_norm_given(const OpView& op, Rule& rule) { batch_norm_with(op, rule, true); }

void batch_norm_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_out"), input = op.operand("input");
  Draft channels(op);
  channels.in(gradient, 1).in(input, 1).out(op.result(0), 1);
  channels.out(op.result(1), 0).out(op.result(2), 0);
  for (const std::string_view name :
       {"weight", "running_mean", "running_var", "save_mean", "save_invstd"})
    if (op.extents(op.operand(name)) != Extents{0}) channels.in_any(op.operand(name), 0);
  channels.add_to(rule);
  if (!op.is_false("train")) return;
  for (std::int64_t d = 0; d < op.rank(input); ++d)
    if (d != 1)
      Draft(op).in(gradient, d).in(input, d).out(op.result(0), d).others(Unnamed::sum).add_to(rule);
}

void no_letters(const OpView&, Rule&) {}

// Images and channels go through; the last dimensions are space.
template <int kSpace>
void spatial(const OpView& op, Rule& rule) {
  same_dimensions(op, rule, [](std::int64_t d, std::int64_t rank) { return d < rank - kSpace; });
}

// Images and channels, whatever the space.
void resample(const OpView& op, Rule& rule) {
  same_dimensions(op, rule, [](std::int64_t d, std::int64_t) { return d < 2; });
}

void images(const OpView& op, Rule& rule) {
  if (op.operand_count() > 0 && op.rank(0) < 3) return;
  same_dimensions(op, rule, [](std::int64_t d, std::int64_t) { return d == 0; });
}

// Images only: an input with one dimension less has no batch.
template <int kRank>
void batches(const OpView& op, Rule& rule) {
  if (op.operand_count() == 0 || op.rank(0) != kRank) return;
  images(op, rule);
}

void grid_sampler(const OpView& op, Rule& rule) {
  const Item input = op.operand("input"), grid = op.operand("grid");
  Draft(op).in(input, 0).in(grid, 0).out(0, 0).add_to(rule);
  Draft(op).in(input, 1).out(0, 1).add_to(rule);
}

void grid_sampler_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_output"), input = op.operand("input"),
             grid = op.operand("grid");
  const Item to_input = op.result(0), to_grid = op.result(1);
  Draft(op).in(gradient, 0).in(input, 0).in(grid, 0).out(to_input, 0).out(to_grid, 0).add_to(rule);
  Draft(op).in(gradient, 1).in(input, 1).out(to_input, 1).other(to_grid, Unnamed::sum).add_to(rule);
}

constexpr std::string_view kStatistics = "takes statistics over";

constexpr Entry kLayerRules[] = {
    {"aten.convolution", convolution, {}},
    {"aten.convolution_backward", convolution_backward, {}},
    {"aten.native_layer_norm", layer_norm, kStatistics},
    {"aten.native_layer_norm_backward", layer_norm_backward, kStatistics},
    {"aten._fused_rms_norm", layer_norm, kStatistics},
    {"aten._fused_rms_norm_backward", rms_norm_backward, kStatistics},
    {"aten.native_group_norm", group_norm, kStatistics},
    {"aten.native_group_norm_backward", group_norm_backward, kStatistics},
    {"aten.native_batch_norm", batch_norm, kStatistics},
    {"aten._native_batch_norm_legit", batch_norm, kStatistics},
    {"aten._native_batch_norm_legit_no_training", batch_norm_given, kStatistics},
    {"aten.native_batch_norm_backward", batch_norm_backward, kStatistics},
    {"lowtide.batch_norm_stats", no_letters, kStatistics},
    {"aten.max_pool2d_with_indices", spatial<2>, {}},
    {"aten.max_pool2d_with_indices_backward", spatial<2>, {}},
    {"aten.max_pool3d_with_indices", spatial<3>, {}},
    {"aten.max_pool3d_with_indices_backward", spatial<3>, {}},
    {"aten.avg_pool2d", spatial<2>, {}},
    {"aten.avg_pool2d_backward", spatial<2>, {}},
    {"aten.avg_pool3d", spatial<3>, {}},
    {"aten.avg_pool3d_backward", spatial<3>, {}},
    {"aten._adaptive_avg_pool2d", spatial<2>, {}},
    {"aten._adaptive_avg_pool2d_backward", spatial<2>, {}},
    {"aten._adaptive_avg_pool3d", spatial<3>, {}},
    {"aten._adaptive_avg_pool3d_backward", spatial<3>, {}},
    {"aten.adaptive_max_pool2d", spatial<2>, {}},
    {"aten.adaptive_max_pool2d_backward", spatial<2>, {}},
    {"aten.adaptive_max_pool3d", spatial<3>, {}},
    {"aten.adaptive_max_pool3d_backward", spatial<3>, {}},
    {"aten.reflection_pad1d", spatial<1>, {}},
    {"aten.reflection_pad1d_backward", spatial<1>, {}},
    {"aten.reflection_pad2d", spatial<2>, {}},
    {"aten.reflection_pad2d_backward", spatial<2>, {}},
    {"aten.reflection_pad3d", spatial<3>, {}},
    {"aten.reflection_pad3d_backward", spatial<3>, {}},
    {"aten.replication_pad1d", spatial<1>, {}},
    {"aten.replication_pad1d_backward", spatial<1>, {}},
    {"aten.replication_pad2d", spatial<2>, {}},
    {"aten.replication_pad2d_backward", spatial<2>, {}},
    {"aten.replication_pad3d", spatial<3>, {}},
    {"aten.replication_pad3d_backward", spatial<3>, {}},
    {"aten.pixel_shuffle", spatial<3>, {}},
    {"aten.pixel_unshuffle", spatial<3>, {}},
    {"aten.upsample_nearest1d", resample, {}},
    {"aten.upsample_nearest1d_backward", resample, {}},
    {"aten.upsample_nearest2d", resample, {}},
    {"aten.upsample_nearest2d_backward", resample, {}},
    {"aten.upsample_nearest3d", resample, {}},
    {"aten.upsample_nearest3d_backward", resample, {}},
    {"aten.upsample_linear1d", resample, {}},
    {"aten.upsample_linear1d_backward", resample, {}},
    {"aten.upsample_bilinear2d", resample, {}},
    {"aten.upsample_bilinear2d_backward", resample, {}},
    {"aten._upsample_bilinear2d_aa", resample, {}},
    {"aten._upsample_bilinear2d_aa_backward", resample, {}},
    {"aten.upsample_bicubic2d", resample, {}},
    {"aten.upsample_bicubic2d_backward", resample, {}},
    {"aten.upsample_trilinear3d", resample, {}},
    {"aten.upsample_trilinear3d_backward", resample, {}},
    {"aten.im2col", batches<4>, {}},
    {"aten.col2im", batches<3>, {}},
    {"aten.affine_grid_generator", images, {}},
    {"aten.grid_sampler_2d", grid_sampler, {}},
    {"aten.grid_sampler_2d_backward", grid_sampler_backward, {}},
    {"aten.grid_sampler_3d", grid_sampler, {}},
    {"aten.grid_sampler_3d_backward", grid_sampler_backward, {}},
};

}  // namespace

std::span<const Entry> layer_rules() { return kLayerRules; }

}  // namespace lowtide::dimensions
