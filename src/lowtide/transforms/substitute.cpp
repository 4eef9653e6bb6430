// Substitute: replaces a pattern of ops by other ops with the same result (MAGIS, ASPLOS 2024,
// section 5.2, which takes over substitutions of TASO).
//
// A rule returns the ops that it makes, their readers, and the ops that it removes. This file edits
// the draft accordingly, and makes the checks common to all rules: removed ops have no effects and
// no remaining readers, and every new op has a price. Substitutes places the new ops in the order.
#include <algorithm>
#include <array>
#include <utility>

#include "lowtide/transforms/rules.h"
#include "lowtide/transforms/rules/rewriting.h"
#include "lowtide/transforms/rules/table.h"
#include "lowtide/transforms/substitutes.h"
#include "lowtide/transforms/substitution.h"

namespace lowtide {

namespace {

constexpr std::array kRules = {&kMergeProducts, &kSplitProduct, &kAddIntoProduct, &kOtherSide,
                               &kCatOfSlices,   &kSliceOfCat,   &kAbsorbTranspose};

// Puts a replacement into the draft, except into its order.
class Substitution {
 public:
  Substitution(Draft& draft, const TransformedGraph& now, const Substitute& substitute,
               std::size_t index, const Replacement& made)
      : draft_(draft),
        now_(now),
        substitute_(substitute),
        transform_(index),
        next_(draft.op_count()),
        made_(made),
        name_("substitute: \"" + substitute.rule + "\": ") {}

  void put() {
    demand_prices();
    for (const Tensor& tensor : made_.tensors) tensors_.push_back(draft_.add(tensor));
    const std::vector<PartOf> parts = parts_of_all();
    for (const Replacement::Made& made : made_.ops) add(made, parts);
    for (const Replacement::Reader& reader : made_.readers) redirect(reader);
    remove_replaced_ops();
  }

 private:
  OpId index_of(OpId op) const { return now_.op_index[op]; }
  TensorId index_of(TensorId tensor) const {
    const std::size_t known = now_.graph.tensor_count();
    return tensor.index() < known ? now_.tensor_index[tensor] : tensors_[tensor.index() - known];
  }

  void demand_prices() const {
    const std::size_t next = next_;
    if (made_.ops.size() > Draft::kMostMade - std::min(Draft::kMostMade, draft_.made()))
      refuse_transform(name_ + "transforms may make " + std::to_string(Draft::kMostMade) +
                       " ops in all");
    for (std::size_t i = 0; i < substitute_.prices.size(); ++i) {
      const OpId of = substitute_.prices[i].of;
      if (of.index() < next || of.index() >= next + made_.ops.size())
        throw InputError("/prices/" + std::to_string(i), "op " + std::to_string(of.index()) +
                                                             " is not made by the rule, which " +
                                                             made_words(next));
    }
    for (std::size_t i = 0; i < made_.ops.size(); ++i)
      if (!price_of(OpId(next + i)))
        throw InputError("/prices", "the price of op " + std::to_string(next + i) + " (\"" +
                                        made_.ops[i].op.kind + "\"), which the rule makes, is " +
                                        "missing");
  }
  std::string made_words(std::size_t next) const {
    if (made_.ops.empty()) return "makes none here";
    return "makes op" +
           (made_.ops.size() == 1 ? " " + std::to_string(next)
                                  : "s " + std::to_string(next) + " to " +
                                        std::to_string(next + made_.ops.size() - 1)) +
           " here";
  }
  const OpPrice* price_of(OpId id) const {
    const auto found = std::ranges::find(substitute_.prices, id, &OpPrice::of);
    return found == substitute_.prices.end() ? nullptr : &*found;
  }

  // The part of a split to which the new ops belong: that of the removed ops, which must be the
  // same for all of them.
  std::vector<PartOf> parts_of_all() const {
    const auto& parts = now_.parts[now_.ops[substitute_.ops.front().index()]];
    for (const OpId op : made_.gone)
      if (now_.parts[op] != parts)
        refuse_transform(name_ + draft_.label(index_of(op)) +
                         " belongs to another part of a split than " +
                         draft_.label(substitute_.ops.front()));
    return parts;
  }

  void add(const Replacement::Made& made, const std::vector<PartOf>& parts) {
    const auto mapped = [&](const std::vector<TensorId>& ids) {
      std::vector<TensorId> found;
      found.reserve(ids.size());
      for (const TensorId id : ids) found.push_back(index_of(id));
      return found;
    };
    DraftOp op{.op = made.op,
               .inputs = mapped(made.inputs),
               .outputs = mapped(made.outputs),
               .mutates = {},
               .after = {},
               .in_place = {},
               .parts = parts,
               .source = draft_.op(substitute_.ops.front()).source,
               .gone = std::nullopt};
    for (const InPlacePair& pair : made.in_place)
      op.in_place.push_back({index_of(pair.input), index_of(pair.output)});
    for (auto* list : {&op.op.operands, &op.op.results})
      for (Operand& operand : *list) operand.tensor = index_of(operand.tensor);
    const OpPrice& price = *price_of(OpId(next_ + added_.size()));
    op.op.time = price.time;
    op.op.workspace = price.workspace;
    added_.push_back(draft_.add(std::move(op)));
  }

  // Replaces the operands of a reader. Inputs without an operand stay. In-place pairs whose input
  // has changed are dropped.
  void redirect(const Replacement::Reader& reader) {
    const std::vector<Operand>& before = now_.graph.op(reader.op).operands;
    DraftOp& op = draft_.op(index_of(reader.op));
    std::vector<TensorId> changed;
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i] != reader.operands[i])
        changed.insert(changed.end(), {before[i].tensor, reader.operands[i].tensor});
    for (const TensorId tensor : changed) {
      const TensorId index = index_of(tensor);
      std::erase_if(op.in_place, [&](const InPlacePair& pair) { return pair.input == index; });
      std::erase(op.inputs, index);
      if (std::ranges::count(reader.operands, tensor, &Operand::tensor) > 0)
        op.inputs.push_back(index);
    }
    op.op.operands = reader.operands;
    for (Operand& operand : op.op.operands) operand.tensor = index_of(operand.tensor);
  }

  void remove_replaced_ops() {
    std::vector<TensorId> kept;  // made by another op now
    for (const OpId id : added_)
      kept.insert(kept.end(), draft_.op(id).outputs.begin(), draft_.op(id).outputs.end());
    for (const OpId op : made_.gone) {
      draft_.remove(index_of(op), transform_);
      for (const TensorId tensor : now_.graph.outputs(op)) {
        const TensorId index = index_of(tensor);
        if (std::ranges::find(kept, index) != kept.end()) continue;
        for (const OpId reader : now_.graph.consumers(tensor)) {
          const DraftOp& left = draft_.op(index_of(reader));
          const bool gone = std::ranges::find(made_.gone, reader) != made_.gone.end();
          if (!gone && std::ranges::find(left.inputs, index) != left.inputs.end())
            refuse_transform(name_ + draft_.label(index) + " is still read by " +
                             draft_.label(index_of(reader)));
        }
        if (now_.graph.is_output(tensor))
          refuse_transform(name_ + draft_.label(index) + " is an output of the graph");
        draft_.remove(index);
      }
    }
  }

  Draft& draft_;
  const TransformedGraph& now_;
  const Substitute& substitute_;
  std::size_t transform_, next_;
  const Replacement& made_;
  std::string name_;
  std::vector<TensorId> tensors_;  // file indices of the new tensors
  std::vector<OpId> added_;
};

}  // namespace

std::span<const Rule* const> substitution_rules() { return kRules; }

const Rule* find_substitution_rule(std::string_view name) {
  const auto found = std::ranges::find(kRules, name, &Rule::name);
  return found == kRules.end() ? nullptr : *found;
}

Replacement replacement_by(const Rule& rule, const Graph& graph, std::span<const OpId> ops,
                           const Labels& labels) {
  Rewriting rewriting(rule, graph, ops, labels);
  rule.make(rewriting);
  Replacement made = rewriting.take();
  for (const OpId op : made.gone) {
    if (!graph.recomputable(op))
      rewriting.refuse(op, "is not recomputable, so it cannot be replaced");
    for (const Argument& argument : graph.op(op).arguments)
      if (argument.name.starts_with(
              "lowtide."))  // conjugates, parts of a mean: strides say nothing
        rewriting.refuse(op, "has the argument \"" + argument.name + "\"");
    if (!graph.after(op).empty()) rewriting.refuse(op, "must come after other ops (\"after\")");
  }
  for (const OpId op : made.gone)
    for (const OpId later : graph.successors(op))
      if (std::ranges::find(graph.after(later), op) != graph.after(later).end())
        rewriting.refuse(op, "must come before " + rewriting.label(later) + " (\"after\")");
  return made;
}

Replacement replacement_by(const Draft& draft, const TransformedGraph& now,
                           const Substitute& substitute) {
  const Rule* rule = find_substitution_rule(substitute.rule);
  if (!rule) {
    std::string names;
    for (const Rule* known : kRules)
      names += (names.empty() ? "" : ", ") + std::string(known->name);
    refuse_transform("substitute: there is no rule \"" + substitute.rule + "\"; there are " +
                     names);
  }
  if (substitute.exact && !rule->exact)
    refuse_transform("substitute: \"exact\" is claimed, but rule \"" + substitute.rule +
                     "\" may change bits");
  std::vector<OpId> ops;
  for (const OpId op : substitute.ops) {
    draft.demand(op);
    ops.push_back(now.ops[op.index()]);
  }
  return replacement_by(*rule, now.graph, ops, labels_in_file(draft, now));
}

void put(Draft& draft, const TransformedGraph& now, const Substitute& substitute, std::size_t index,
         const Replacement& made) {
  Substitution(draft, now, substitute, index, made).put();
}

}  // namespace lowtide
