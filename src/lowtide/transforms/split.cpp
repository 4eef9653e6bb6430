// Split (fission): a region of the graph runs in parts, each over some slices of an axis.
//
// Recomputation does not shrink what a single op holds for the whole batch. After a split every op
// of the region runs n times, once for each part, and holds the slices of one part at a time
// (MAGIS, ASPLOS 2024, section 4.2). Parts read slices of outside tensors in place. Tensors that
// are needed outside are assembled in place by a chain of joins. Each join copies one part's slices
// into the result so far, or adds one part's sum. The last join makes the original tensor. Work
// that depends on the whole axis but not on the region (a count of targets, a mask) runs once,
// before the parts.
//
// Sums start from the first part's value, without zeros. A half-precision sum over more than two
// parts is accumulated in single precision and rounded once.
//
// Loses: inputs of the region are live throughout all of its parts; outputs that parts read are
// held twice while they are assembled; small ops are less efficient.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "lowtide/transforms/region.h"
#include "lowtide/transforms/rules.h"

namespace lowtide {

namespace {

using dimensions::Carry;
using dimensions::State;
using dimensions::Weight;

constexpr std::string_view kJoinKind = "lowtide.join", kAddKind = "lowtide.add";
constexpr std::string_view kWeight = "lowtide.weight";

std::string numbered(const std::string& name, std::int64_t part, std::int64_t parts) {
  return name.empty() ? name
                      : name + "[" + std::to_string(part + 1) + "/" + std::to_string(parts) + "]";
}

// A fraction: `of` slices of `all`.
struct Share {
  std::int64_t of = 0, all = 0;
};

// The fraction in an argument kWeight that an earlier split wrote.
Share share_in(const Literal& weight, const std::string& op) {
  if (const auto* list = std::get_if<Literal::List>(&weight.value); list && list->size() == 2) {
    const auto *of = std::get_if<std::int64_t>(&list->front().value),
               *all = std::get_if<std::int64_t>(&list->back().value);
    if (of && all && *of > 0 && *all >= *of) return {*of, *all};
  }
  refuse_transform("split: the argument \"" + std::string(kWeight) + "\" of " + op +
                   " is not a fraction of slices [part, all]");
}

// The product of two fractions, in lowest terms.
Share product(Share a, Share b, const std::string& op) {
  const auto reduce = [](std::int64_t& x, std::int64_t& y) {
    const std::int64_t common = std::gcd(x, y);
    x /= common;
    y /= common;
  };
  for (std::int64_t* of : {&a.of, &b.of})
    for (std::int64_t* all : {&a.all, &b.all}) reduce(*of, *all);
  Share result;
  if (__builtin_mul_overflow(a.all, b.all, &result.all))
    refuse_transform("split: the fraction of slices of " + op + " is below 1 in 2^63");
  result.of = a.of * b.of;
  return result;
}

// The region of the split in ids of its graph. Throws TransformRefused for an op or a tensor that
// was removed.
AskedRegion asked_region(const Draft& draft, const TransformedGraph& now, const Split& split) {
  AskedRegion asked;
  asked.parts = split.parts;
  asked.exact = split.exact;
  for (const OpId op : split.ops) {
    draft.demand(op);
    asked.ops.push_back(now.ops[op.index()]);
  }
  for (const SplitAxis& axis : split.axes) {
    draft.demand(axis.tensor);
    asked.axes.push_back({now.tensors[axis.tensor.index()], axis.dim});
  }
  return asked;
}

template <class AnyId>
std::unordered_map<AnyId, Price<AnyId>> by_id(const std::vector<Price<AnyId>>& prices) {
  std::unordered_map<AnyId, Price<AnyId>> found;
  for (const Price<AnyId>& price : prices) found.emplace(price.of, price);
  return found;
}

class Parts {
 public:
  Parts(Draft& draft, const TransformedGraph& now, const Split& split, std::size_t index)
      : draft_(draft),
        now_(now),
        graph_(now.graph),
        split_(split),
        transform_(index),
        labels_(labels_in_file(draft, now)),
        region_(region_of(now.graph, asked_region(draft, now, split), labels_)),
        before_prices_(by_id(split.before)),
        join_prices_(by_id(split.joins)),
        tensors_(graph_.tensor_count()),
        ops_(graph_.op_count()),
        before_(graph_.op_count()),
        joined_(graph_.tensor_count()) {
    for (const auto& prices : split.prices) prices_.push_back(by_id(prices));
  }

  void make() {
    demand_room();
    demand_prices();
    for (const OpId op : region_.ops)
      if (runs_before(graph_, region_, op)) make_before(op);
    for (std::int64_t part = 0; part < region_.parts; ++part) {
      for (const OpId op : region_.ops) {
        if (!runs_in_parts(graph_, region_, op)) continue;
        make_part(op, part);
        for (const TensorId tensor : graph_.outputs(op)) join(op, tensor, part);
      }
    }
    copy_control_dependencies();
    remove_originals();
    put_in_order();
  }

 private:
  OpId index_of(OpId op) const { return now_.op_index[op]; }
  TensorId index_of(TensorId tensor) const { return now_.tensor_index[tensor]; }
  const DraftOp& original(OpId op) const { return draft_.op(index_of(op)); }
  bool is_inside(OpId op) const { return region_.inside[op.index()] != 0; }
  bool is_joined(TensorId tensor) const { return region_.is_joined[tensor.index()] != 0; }
  // Whether every part makes the whole tensor and it is needed outside: then the last part makes
  // the original tensor.
  bool is_kept(TensorId tensor) const {
    return region_.reach.tensors[tensor.index()].state == State::whole &&
           is_needed_outside(graph_, region_, tensor);
  }
  bool in_parts(TensorId tensor) const { return !tensors_[tensor].empty(); }

  void demand_room() const {
    const std::size_t left = Draft::kMostMade - std::min(Draft::kMostMade, draft_.made());
    if (static_cast<std::size_t>(region_.parts) > left / region_.ops.size())
      refuse_transform("split: " + std::to_string(region_.parts) + " parts of " +
                       std::to_string(region_.ops.size()) +
                       " ops are too many: transforms may make " +
                       std::to_string(Draft::kMostMade) + " ops in all");
  }

  void demand_prices() const {
    const auto missing = [&](const std::string& list, const std::string& of) {
      throw InputError("/" + list, "the price of " + of + " is missing");
    };
    for (const OpId op : region_.ops) {
      if (runs_before(graph_, region_, op) && !before_prices_.contains(index_of(op)))
        missing("before", draft_.label(index_of(op)) + ", which runs once before all parts,");
      for (const auto& prices : prices_)
        if (runs_in_parts(graph_, region_, op) && !prices.contains(index_of(op)))
          missing("prices", draft_.label(index_of(op)));
    }
    for (const TensorId tensor : region_.joined)
      if (!join_prices_.contains(index_of(tensor)))
        missing("joins", draft_.label(index_of(tensor)) + ", which is needed outside,");
    for (const OpPrice& price : split_.before)
      if (!runs_before(graph_, region_, now_.ops[price.of.index()]))
        refuse_transform("split: " + draft_.label(price.of) +
                         " has a price in \"before\", but makes nothing once for all parts");
    for (const TensorPrice& price : split_.joins) {
      draft_.demand(price.of);
      if (!is_joined(now_.tensors[price.of.index()]))
        refuse_transform("split: " + draft_.label(price.of) +
                         " has a price in \"joins\", but is not made in parts and needed outside");
    }
  }

  // A copy of the op without inputs, outputs and other links; the caller sets them, and its place
  // in the order.
  DraftOp copy_of(OpId op, std::int32_t part) const {
    DraftOp made{.op = original(op).op,
                 .inputs = {},
                 .outputs = {},
                 .mutates = {},
                 .after = {},
                 .in_place = {},
                 .parts = original(op).parts,
                 .source = original(op).source,
                 .gone = std::nullopt};
    made.parts.push_back({static_cast<std::int32_t>(transform_), part});
    return made;
  }

  OpId add(DraftOp op) {
    const OpId index = draft_.add(std::move(op));
    made_in_parts_.push_back(index);
    return index;
  }

  // Adds the op that makes, once before the parts, those results of `op` that no part affects.
  void make_before(OpId op) {
    DraftOp made = copy_of(op, PartOf::kBefore);
    const OpPrice& price = before_prices_.at(index_of(op));
    made.op.time = price.time;
    made.op.workspace = price.workspace;
    if (runs_in_parts(graph_, region_, op) && !made.op.name.empty()) made.op.name += "[before]";
    const auto made_in_parts = [&](TensorId tensor) {
      const OpId maker = graph_.producer(tensor);
      return maker.valid() && is_inside(maker) && !is_made_before(graph_, region_, tensor);
    };
    for (const TensorId tensor : graph_.inputs(op))
      if (!made_in_parts(tensor)) made.inputs.push_back(index_of(tensor));
    for (const TensorId tensor : graph_.outputs(op))
      if (is_made_before(graph_, region_, tensor)) made.outputs.push_back(index_of(tensor));
    std::erase_if(made.op.operands, [&](const Operand& operand) {
      return std::ranges::find(made.inputs, operand.tensor) == made.inputs.end();
    });
    std::erase_if(made.op.results, [&](const Operand& result) {
      return std::ranges::find(made.outputs, result.tensor) == made.outputs.end();
    });
    before_[op] = draft_.add(std::move(made));
  }

  void make_part(OpId op, std::int64_t part) {
    const Carry& carry = region_.carry(op);
    const dimensions::Slices slices = region_.slices(carry, part);
    DraftOp made = copy_of(op, static_cast<std::int32_t>(part));
    const auto& prices = prices_[prices_.size() == 1 ? 0 : static_cast<std::size_t>(part)];
    const OpPrice& price = prices.at(index_of(op));
    made.op.time = price.time;
    made.op.workspace = price.workspace;
    made.op.name = numbered(made.op.name, part, region_.parts);
    PartOfOp seen = part_of_op(graph_, region_, op, part, labels_);
    made.op.arguments = std::move(seen.arguments);
    weigh(op, carry, slices.count, made);

    for (const TensorId tensor : graph_.outputs(op))
      if (!is_made_before(graph_, region_, tensor))
        made.outputs.push_back(add_part_of(op, tensor, seen.results, part));
    for (const TensorId tensor : graph_.inputs(op))
      made.inputs.push_back(tensor_in_part(tensor, part));
    for (auto* list : {&seen.operands, &seen.results})
      for (Operand& one : *list) one.tensor = tensor_in_part(one.tensor, part);
    made.op.operands = std::move(seen.operands);
    made.op.results = std::move(seen.results);
    for (const InPlacePair& pair : graph_.in_place(op))
      if (in_parts(pair.input) && in_parts(pair.output) && are_alike(pair.input, pair.output))
        made.in_place.push_back(
            {tensor_in_part(pair.input, part), tensor_in_part(pair.output, part)});
    ops_[op].push_back(add(std::move(made)));
  }

  // Whether parts of two tensors of equal size have equal sizes.
  bool are_alike(TensorId a, TensorId b) const {
    const auto& one = region_.reach.tensors[a.index()];
    const auto& other = region_.reach.tensors[b.index()];
    return one.state == other.state && one.axis.extent == other.axis.extent;
  }

  // Sets the weight of a part's result. The mean over a part is weighted by the part's fraction of
  // the slices; in nested splits the fractions are multiplied. A loss divided by a count of targets
  // is divided by the count of the whole batch, in nested splits too.
  void weigh(OpId op, const Carry& carry, std::int64_t count, DraftOp& made) const {
    if (carry.weight == Weight::one) return;
    const auto old = std::ranges::find(made.op.arguments, kWeight, &Argument::name);
    const bool weighed = old != made.op.arguments.end();
    if (carry.weight == Weight::share) {
      const std::string label = labels_.op(op);
      const Share before = weighed ? share_in(old->value, label) : Share{1, 1};
      const Share share = product({count, carry.extent}, before, label);
      if (weighed) made.op.arguments.erase(old);
      made.op.arguments.push_back(
          {std::string(kWeight), Literal{Literal::List{{share.of}, {share.all}}}});
    } else if (!weighed) {
      for (const TensorId tensor : graph_.outputs(op))
        if (is_made_before(graph_, region_, tensor)) made.inputs.push_back(index_of(tensor));
      made.op.arguments.push_back({std::string(kWeight), Literal{std::string("total")}});
    }
  }

  // Adds the tensor into which part `part` of the op writes its slices of `tensor`. `results`:
  // those of this part of the op.
  TensorId add_part_of(OpId op, TensorId tensor, const std::vector<Operand>& results,
                       std::int64_t part) {
    const dimensions::TensorState& state = region_.reach.tensors[tensor.index()];
    const Tensor& whole = graph_.tensor(tensor);
    Tensor made = whole;
    made.name = numbered(made.name, part, region_.parts);
    bool shaped = false;
    std::size_t place = 0;  // index among the results that are made in parts
    for (const Operand& result : graph_.op(op).results) {
      if (is_made_before(graph_, region_, result.tensor)) continue;
      const Operand& in_part = results[place++];
      if (result.tensor != tensor || result.shape != whole.shape) continue;
      shaped = true;
      made.shape = in_part.shape;
    }
    if (state.state == State::split) {
      made.bytes =
          dimensions::part_bytes(made.bytes, state.axis, region_.slices(state, part).count);
      if (!shaped) {  // no result of the op has the shape of the tensor
        made.shape.clear();
        made.dtype.clear();
      }
    }
    const TensorId id = is_kept(tensor) && part + 1 == region_.parts ? index_of(tensor)
                                                                     : draft_.add(std::move(made));
    tensors_[tensor].push_back(id);
    return id;
  }

  // The tensor that stands for `tensor` in a part: its slices, or the tensor itself.
  TensorId tensor_in_part(TensorId tensor, std::int64_t part) const {
    return in_parts(tensor) ? tensors_[tensor][static_cast<std::size_t>(part)] : index_of(tensor);
  }

  // Joins the slices or the sum of this part with those of the parts before it.
  void join(OpId op, TensorId tensor, std::int64_t part) {
    if (!is_joined(tensor)) return;
    const bool adds = region_.reach.tensors[tensor.index()].state == State::partial;
    const TensorId value = tensor_in_part(tensor, part);
    if (adds && part == 0) {
      joined_[tensor] = value;
      return;
    }
    const bool last = part + 1 == region_.parts;
    const bool in_single = widens(graph_, region_, tensor);
    const TensorPrice& price = join_prices_.at(index_of(tensor));
    const Tensor& whole = graph_.tensor(tensor);
    TensorId result = index_of(tensor);
    if (!last) {
      Tensor made = whole;
      made.name = numbered(made.name, 0, region_.parts) + (made.name.empty() ? "" : "...");
      if (in_single) {
        made.bytes = doubled(made.bytes);
        if (!made.dtype.empty()) made.dtype = "f32";
      }
      result = draft_.add(std::move(made));
    }
    DraftOp made{};
    made.source = original(op).source;
    made.parts = original(op).parts;
    made.parts.push_back({static_cast<std::int32_t>(transform_), static_cast<std::int32_t>(part)});
    if (!whole.name.empty())
      made.op.name = (adds ? "add " : "join ") + numbered(whole.name, part, region_.parts);
    made.op.kind = adds ? kAddKind : kJoinKind;
    made.op.phase = graph_.op(op).phase;
    made.op.origin = graph_.op(op).origin;
    made.op.time = price.time;
    made.op.workspace = price.workspace;
    made.outputs = {result};
    if (part > 0) {
      const TensorId before = joined_[tensor];
      made.inputs.push_back(before);
      if (!in_single || (part > 1 && !last)) made.in_place.push_back({before, result});
    }
    made.inputs.push_back(value);
    if (adds && (!in_single || last)) made.in_place.push_back({value, result});
    if (!adds) made.op.arguments = place_of(tensor, part);
    add(std::move(made));
    joined_[tensor] = result;
  }

  static Bytes doubled(Bytes bytes) {
    try {
      return checked_add(bytes, bytes);
    } catch (const OverflowError&) {
      refuse_transform("split: a sum in single precision has 2^63 bytes or more");
    }
  }

  // The position of the part's slices in the storage of the whole tensor, in bytes and slices of
  // the axis.
  std::vector<Argument> place_of(TensorId tensor, std::int64_t part) const {
    const dimensions::TensorState& state = region_.reach.tensors[tensor.index()];
    const dimensions::Axis& axis = state.axis;
    const dimensions::Slices slices = region_.slices(state, part);
    return {{"extent", {axis.extent}},
            {"stride", {axis.stride}},
            {"first", {slices.first}},
            {"count", {slices.count}}};
  }

  // Carries the control dependencies (`after`) of the original ops over to the copies. Those
  // between two ops of the region hold within each part, and between copies that run before the
  // parts. If an op of the region depends on one outside, its first part does. If an op outside
  // depends on one of the region, it depends on all parts.
  void copy_control_dependencies() {
    for (const OpId op : AllIds<OpId>(graph_.op_count())) {
      for (const OpId earlier : graph_.after(op)) {
        if (is_inside(op)) {
          copy_dependency_on(op, earlier);
        } else if (is_inside(earlier)) {
          std::vector<OpId>& after = draft_.op(index_of(op)).after;
          std::erase(after, index_of(earlier));
          if (before_[earlier].valid()) after.push_back(before_[earlier]);
          after.insert(after.end(), ops_[earlier].begin(), ops_[earlier].end());
        }
      }
    }
  }

  // The copies of `op`, an op of the region, depend on `earlier` or on its copies.
  void copy_dependency_on(OpId op, OpId earlier) {
    const OpId before = before_[op];
    const std::vector<OpId>& parts = ops_[op];
    if (!is_inside(earlier)) {
      if (before.valid()) draft_.op(before).after.push_back(index_of(earlier));
      if (!parts.empty()) draft_.op(parts.front()).after.push_back(index_of(earlier));
      return;
    }
    const OpId earlier_before = before_[earlier];
    if (before.valid() && !earlier_before.valid())
      refuse_transform("split: " + draft_.label(index_of(op)) +
                       " runs once before all parts, but " + "must come after " +
                       draft_.label(index_of(earlier)) + ", which runs in the parts");
    if (before.valid()) draft_.op(before).after.push_back(earlier_before);
    for (std::size_t part = 0; part < parts.size(); ++part)
      draft_.op(parts[part])
          .after.push_back(ops_[earlier].empty() ? earlier_before : ops_[earlier][part]);
  }

  void remove_originals() {
    for (const OpId op : region_.ops) {
      draft_.remove(index_of(op), transform_);
      for (const TensorId tensor : graph_.outputs(op))
        if (in_parts(tensor) && !is_joined(tensor) && !is_kept(tensor))
          draft_.remove(index_of(tensor));
    }
  }

  // The new order: the ops above the region, the ops that run once before the parts, the parts, the
  // rest. Each group keeps its order. An op above the region that depends on an op of the second
  // group belongs to the second group.
  void put_in_order() {
    std::vector<OpId> first, once, rest;
    std::vector<std::uint8_t> behind(graph_.op_count(), 0);
    for (const OpId op : graph_.order()) {
      if (is_inside(op)) {
        if (before_[op].valid()) once.push_back(before_[op]);
        continue;
      }
      for (const OpId earlier : graph_.predecessors(op))
        if (before_[earlier].valid() || behind[earlier.index()] != 0) behind[op.index()] = 1;
      const bool above = region_.above[op.index()] != 0;
      (!above ? rest : behind[op.index()] != 0 ? once : first).push_back(index_of(op));
    }
    draft_.order = std::move(first);
    for (const auto* next : {&once, &made_in_parts_, &rest})
      draft_.order.insert(draft_.order.end(), next->begin(), next->end());
  }

  Draft& draft_;
  const TransformedGraph& now_;
  const Graph& graph_;
  const Split& split_;
  std::size_t transform_;
  Labels labels_;
  Region region_;
  std::vector<std::unordered_map<OpId, OpPrice>> prices_;
  std::unordered_map<OpId, OpPrice> before_prices_;
  std::unordered_map<TensorId, TensorPrice> join_prices_;

  // By the graph's ids: the file indices of the copies.
  IdVector<TensorId, std::vector<TensorId>> tensors_;  // one for each part
  IdVector<OpId, std::vector<OpId>> ops_;              // one for each part
  IdVector<OpId, OpId> before_;                        // the copy that runs before the parts
  IdVector<TensorId, TensorId> joined_;                // the result of the joins so far
  std::vector<OpId> made_in_parts_;                    // in order
};

}  // namespace

Labels labels_in_file(const Draft& draft, const TransformedGraph& now) {
  return {[&](OpId op) { return draft.label(now.op_index[op]); },
          [&](TensorId tensor) { return draft.label(now.tensor_index[tensor]); }};
}

void do_transform(Draft& draft, const TransformedGraph& now, const Split& split,
                  std::size_t index) {
  Parts(draft, now, split, index).make();
}

}  // namespace lowtide
