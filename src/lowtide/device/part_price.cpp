// Ratios of one model's figures, so that whole and parts are never priced by two.
#include "lowtide/device/part_price.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/device/roofline.h"
#include "lowtide/ops/operations.h"

namespace lowtide {

namespace {

std::int64_t multiplied(std::int64_t a, std::int64_t b) {
  return checked_mul_div(a, b, 1, Rounding::floor);
}

// The tiles of what a kernel makes that multiplies matrices.
void lay_out(Work& work, const Call& call) {
  if (call.results.empty()) return;
  const auto& shape = call.results.front().shape;
  if (shape.size() < 2) return;
  const bool convolves = call.kind.starts_with("aten.convolution");
  const bool attends = call.kind.find("scaled_dot_product") != std::string_view::npos;
  // channels of a convolution, positions of attention, rows of a product
  const std::size_t at = convolves ? 1 : shape.size() - 2;
  std::int64_t others = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d != at && (convolves || d + 1 < shape.size())) others = multiplied(others, shape[d]);
  if (convolves) {
    work.rows = others;
    work.columns = shape[1];
  } else {
    work.batches = others;
    work.rows = shape[at];
    work.columns = attends ? 1 : shape.back();
  }
}

Work work_of(const Call& call, const std::string& label) {
  Work work{.operations = counted_operations(call, label), .bytes = moved_bytes(call)};
  if (work.operations > 0) lay_out(work, call);
  return work;
}

std::int64_t modelled(const Device& device, const Call& call, const std::string& label) {
  return small_kernel_ns(device, work_of(call, label), computed_in(call));
}

}  // namespace

const Device& Prices::device_or_default() const {
  constexpr std::string_view kDefault = "a100";
  return device ? *device : *find_built_in_device(kDefault);
}

CallCost price(const Device& device, const CostTable* table, const Call& call,
               const std::string& label) {
  if (const CallCost* measured = table ? table->find(call) : nullptr) return *measured;
  return {modelled(device, call, label), Bytes(0)};
}

PartPricer::PartPricer(const Graph& graph, const Device& device, const CostTable* table)
    : graph_(graph), device_(device), table_(table) {
  if (graph.tick() == TickUnit::flop) return;
  double ticks[2] = {}, ns[2] = {};  // of all ops, and of those that compute nothing
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    const Call call = call_of(graph.op(op));
    if (call.operands.empty() || graph.time(op) == Ticks(0)) continue;
    Work work;
    try {
      work = work_of(call, "");
    } catch (const InputError&) {
      continue;  // no part of it will be asked for
    } catch (const OverflowError&) {
      continue;
    }
    const auto took = static_cast<double>(graph.time(op).count());
    const auto model = static_cast<double>(small_kernel_ns(device, work, computed_in(call)));
    for (const std::size_t list : {std::size_t{0}, std::size_t{1}}) {
      if (list == 1 && work.operations > 0) continue;
      ticks[list] += took;
      ns[list] += model;
    }
  }
  const std::size_t list = ns[1] > 0 ? 1 : 0;
  const std::int64_t unit = nanoseconds(graph.tick());
  ticks_per_ns_ = ns[list] > 0 ? ticks[list] / ns[list]
                  : unit > 0   ? 1 / static_cast<double>(unit)
                               : 0;
}

PartPricer::Cost PartPricer::part(OpId op, const Call& part) const {
  const Call whole = call_of(graph_.op(op));
  const std::string label = graph_.label(op);
  if (whole.operands.empty() && whole.results.empty())
    throw InputError(label, "has no \"operands\" and \"results\", so no part of it has a price");
  if (const CallCost* measured = table_ ? table_->find(part) : nullptr)
    if (const std::int64_t unit = nanoseconds(graph_.tick()); unit > 0)
      return {Ticks(checked_mul_div(measured->ns, 1, unit, Rounding::ceil)), measured->workspace};
  const Work of_part = work_of(part, label), of_whole = work_of(whole, label);
  const auto share = [](std::int64_t all, std::int64_t some, std::int64_t of) {
    return of > 0 ? checked_mul_div(all, some, of, Rounding::ceil) : all;
  };
  const bool in_flop = graph_.tick() == TickUnit::flop && of_whole.operations > 0;
  const std::int64_t time =
      in_flop ? share(graph_.time(op).count(), of_part.operations, of_whole.operations)
              : share(graph_.time(op).count(), small_kernel_ns(device_, of_part, computed_in(part)),
                      small_kernel_ns(device_, of_whole, computed_in(whole)));
  return {Ticks(time), Bytes(share(graph_.workspace(op).count(), of_part.bytes, of_whole.bytes))};
}

PartPricer::Cost PartPricer::copy(std::int64_t moved) const {
  const Work work{.bytes = moved};
  const double ticks =
      std::ceil(ticks_per_ns_ * static_cast<double>(small_kernel_ns(device_, work, "f32")));
  if (!(ticks < 0x1p63)) throw OverflowError("a copy takes 2^63 ticks or more");
  return {Ticks(static_cast<std::int64_t>(ticks)), Bytes(0)};
}

}  // namespace lowtide
