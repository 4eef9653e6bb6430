// A pattern replaced by another that computes the same (MAGIS, ASPLOS 2024, section 5.2, and the
// substitutions of TASO that it takes over).
//
// A rule says what it makes, who reads it and what goes; here that is put into the draft. What is
// made stands as late as its first reader lets it; nothing else moves unless it must. The checks
// that no rule can forget are here: what goes has no effects and no reader is left, nothing comes
// before itself, and every op that is made has a price.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "lowtide/plan/transforms/rules.h"
#include "lowtide/plan/transforms/rules/rewriting.h"
#include "lowtide/plan/transforms/rules/table.h"
#include "lowtide/plan/transforms/substitution.h"

namespace lowtide {

namespace {

constexpr std::array kRules = {&kMergeProducts, &kSplitProduct, &kAddIntoProduct, &kOtherSide,
                               &kCatOfSlices,   &kSliceOfCat,   &kAbsorbTranspose};

// Puts a replacement into the draft.
class Substitution {
 public:
  Substitution(Draft& draft, const Transformed& now, const Substitute& substitute,
               std::size_t index, Replacement made)
      : draft_(draft),
        now_(now),
        substitute_(substitute),
        transform_(index),
        made_(std::move(made)),
        name_("substitute: \"" + substitute.rule + "\": ") {}

  void put() {
    demand_prices();
    for (Tensor& tensor : made_.tensors) tensors_.push_back(draft_.add(std::move(tensor)));
    const std::vector<PartOf> parts = parts_of_all();
    for (Replacement::Made& made : made_.ops) add(made, parts);
    for (const Replacement::Reader& reader : made_.readers) lead(reader);
    remove();
    put_in_order();
  }

 private:
  OpId index_of(OpId op) const { return now_.op_index[op]; }
  TensorId index_of(TensorId tensor) const {
    const std::size_t known = now_.graph.tensor_count();
    return tensor.index() < known ? now_.tensor_index[tensor] : tensors_[tensor.index() - known];
  }

  void demand_prices() const {
    const std::size_t next = now_.ops.size();
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

  // What is made of parts is a part like them.
  std::vector<PartOf> parts_of_all() const {
    const auto& parts = now_.parts[now_.ops[substitute_.ops.front().index()]];
    for (const OpId op : made_.gone)
      if (now_.parts[op] != parts)
        refuse_transform(name_ + draft_.label(index_of(op)) + " is not of the part of which " +
                         draft_.label(substitute_.ops.front()) + " is");
    return parts;
  }

  void add(Replacement::Made& made, const std::vector<PartOf>& parts) {
    const auto mapped = [&](const std::vector<TensorId>& ids) {
      std::vector<TensorId> found;
      for (const TensorId id : ids) found.push_back(index_of(id));
      return found;
    };
    DraftOp op{.op = std::move(made.op),
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
    const OpPrice& price = *price_of(OpId(now_.ops.size() + added_.size()));
    op.op.time = price.time;
    op.op.workspace = price.workspace;
    added_.push_back(draft_.add(std::move(op)));
  }

  // Inputs that no operand of an op has named stay; an in-place pair is of what its operand saw.
  void lead(const Replacement::Reader& reader) {
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

  void remove() {
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

  // Each op behind those that it needs, as few of them moved as possible.
  void put_in_order() {
    const std::vector<OpId> given = std::exchange(draft_.order, {});
    collect_links();
    enum : std::uint8_t { kNew, kWaits, kDone };
    std::vector<std::uint8_t> state(now_.ops.size() + added_.size(), kNew);
    struct Waiting {
      OpId op;
      std::vector<OpId> needs;
      std::size_t next = 0;
    };
    std::vector<Waiting> waiting;
    const auto begin = [&](OpId op) {
      state[op.index()] = kWaits;
      waiting.push_back({op, needs_of(op)});
    };
    const auto emit = [&](OpId last) {
      if (state[last.index()] != kNew || draft_.op(last).gone) return;
      begin(last);
      while (!waiting.empty()) {
        Waiting& now = waiting.back();
        if (now.next == now.needs.size()) {
          state[now.op.index()] = kDone;
          draft_.order.push_back(now.op);
          waiting.pop_back();
          continue;
        }
        const OpId need = now.needs[now.next++];
        if (state[need.index()] == kWaits)
          refuse_transform(name_ + draft_.label(need) + " would have to come before itself");
        if (state[need.index()] == kNew) begin(need);
      }
    };
    for (const OpId op : given) emit(op);
    for (const OpId op : added_) emit(op);
  }

  void collect_links() {
    const auto note = [&](OpId id) {
      for (const TensorId tensor : draft_.op(id).outputs) producer_[tensor] = id;
      for (const TensorId tensor : draft_.op(id).mutates) readers_[tensor];
    };
    for (const OpId id : now_.op_index)
      if (!draft_.op(id).gone) note(id);
    for (const OpId id : added_) note(id);
    const auto read = [&](OpId id) {
      for (const TensorId tensor : draft_.op(id).inputs)
        if (const auto found = readers_.find(tensor); found != readers_.end())
          found->second.push_back(id);
    };
    if (readers_.empty()) return;
    for (const OpId id : now_.op_index)
      if (!draft_.op(id).gone) read(id);
    for (const OpId id : added_) read(id);
  }

  std::vector<OpId> needs_of(OpId id) const {
    const DraftOp& op = draft_.op(id);
    std::vector<OpId> needs = op.after;
    for (const TensorId tensor : op.inputs)
      if (const auto maker = producer_.find(tensor); maker != producer_.end())
        needs.push_back(maker->second);
    for (const TensorId tensor : op.mutates)
      for (const OpId reader : readers_.at(tensor))
        if (reader != id) needs.push_back(reader);
    return needs;
  }

  Draft& draft_;
  const Transformed& now_;
  const Substitute& substitute_;
  std::size_t transform_;
  Replacement made_;
  std::string name_;
  std::vector<TensorId> tensors_;  // the file's, of those that are made
  std::vector<OpId> added_;
  std::unordered_map<TensorId, OpId> producer_;
  std::unordered_map<TensorId, std::vector<OpId>> readers_;  // of tensors that are changed
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
  std::vector<std::uint8_t> goes(graph.op_count(), 0);
  for (const OpId op : made.gone) {
    goes[op.index()] = 1;
    if (!graph.recomputable(op)) rewriting.refuse(op, "may not run twice, so it has to stay");
    for (const Argument& argument : graph.op(op).arguments)
      if (argument.name.starts_with(
              "lowtide."))  // conjugates, parts of a mean: strides say nothing
        rewriting.refuse(op, "has the argument \"" + argument.name + "\"");
    if (!graph.after(op).empty()) rewriting.refuse(op, "has to come after others");
  }
  if (!made.gone.empty())
    for (const OpId op : AllIds<OpId>(graph.op_count()))
      for (const OpId earlier : graph.after(op))
        if (goes[earlier.index()] != 0)
          rewriting.refuse(earlier, "is waited for by " + rewriting.label(op));
  return made;
}

void do_transform(Draft& draft, const Transformed& now, const Substitute& substitute,
                  std::size_t index) {
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
  Substitution(draft, now, substitute, index,
               replacement_by(*rule, now.graph, ops, labels_in_file(draft, now)))
      .put();
}

}  // namespace lowtide
