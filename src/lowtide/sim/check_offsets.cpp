// The steps in order, with a map of what lies where.
#include "lowtide/sim/check_offsets.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "lowtide/base/id_vector.h"

namespace lowtide {

namespace {

class Arena {
 public:
  Arena(const Graph& graph, const Plan& plan, const PlanFile& file,
        const std::vector<PlannedOffset>& offsets)
      : graph_(graph),
        plan_(plan),
        alignment_(file.alignment.value_or(Bytes(1))),
        size_(*file.claims.arena - graph.resident()),
        place_(graph.tensor_count()) {
    for (const PlannedOffset& one : offsets) offset_of_[{one.step, one.tensor}].push_back(one);
  }

  std::optional<OffsetFault> check() {
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (const TensorId id(i); graph_.is_input(id) && !graph_.on_host(id)) begin(id);
    for (const Step& step : plan_.steps) {
      if (fault_) return fault_;
      ++step_;
      switch (step.kind) {
        case StepKind::compute:
        case StepKind::compute_in_place: compute(step); break;
        case StepKind::free: end(step.tensor()); break;
        case StepKind::offload: break;
        case StepKind::prefetch: begin(step.tensor()); break;
      }
    }
    if (!fault_ && !offset_of_.empty()) left_over(offset_of_.begin()->second.front());
    return fault_;
  }

 private:
  using Key = std::pair<std::int32_t, TensorId>;  // what begins, and when
  struct Range {
    Bytes end;
    std::string name;
  };

  void compute(const Step& step) {
    const OpId op = step.op();
    const auto pairs = graph_.in_place(op);
    std::vector<TensorId> took_over;
    for (const TensorId input : plan_.overwritten(step)) {
      const TensorId output = std::ranges::find(pairs, input, &InPlacePair::input)->output;
      place_[output] = place_[input];
      took_over.push_back(output);
    }
    for (const TensorId output : graph_.outputs(op))
      if (std::ranges::find(took_over, output) == took_over.end()) begin(output);
    const std::string name = "the workspace of " + graph_.label(op);
    if (const auto offset = take(TensorId(), graph_.workspace(op), name)) ranges_.erase(*offset);
  }

  void begin(TensorId id) {
    if (const auto offset = take(id, graph_.bytes(id), graph_.label(id))) place_[id] = *offset;
  }
  void end(TensorId id) {
    if (graph_.bytes(id) > Bytes(0)) ranges_.erase(place_[id]);
  }

  // Its bytes in the arena; nothing for no bytes, or if something is wrong.
  std::optional<Bytes> take(TensorId id, Bytes bytes, const std::string& name) {
    if (fault_ || bytes == Bytes(0)) return std::nullopt;
    const auto found = offset_of_.find({step_, id});
    if (found == offset_of_.end()) return refuse(name + " has no offset");
    const std::vector<PlannedOffset> given = std::move(found->second);
    offset_of_.erase(found);
    if (given.size() > 1) return refuse(name + " has " + std::to_string(given.size()) + " offsets");
    const Bytes offset = given.front().offset;
    const std::string its = name + " at offset " + std::to_string(offset.count());
    if (offset < Bytes(0)) return refuse(its + ": it is negative");
    if (offset.count() % alignment_.count() != 0)
      return refuse(its + ": it is no multiple of the alignment " +
                    std::to_string(alignment_.count()));
    if (offset > size_ - bytes)
      return refuse(its + ": its " + std::to_string(bytes.count()) +
                    " bytes end beyond the claimed arena" +
                    (graph_.resident() > Bytes(0) ? " without the resident bytes, " : ", ") +
                    std::to_string(size_.count()));
    const auto above = ranges_.lower_bound(offset);
    if (above != ranges_.end() && above->first < offset + bytes) return refuse(its + meets(above));
    if (above != ranges_.begin() && std::prev(above)->second.end > offset)
      return refuse(its + meets(std::prev(above)));
    ranges_.emplace(offset, Range{offset + bytes, name});
    return offset;
  }

  std::string meets(std::map<Bytes, Range>::const_iterator range) const {
    return ": it overlaps " + range->second.name + ", which lies there from " +
           std::to_string(range->first.count()) + " to " +
           std::to_string(range->second.end.count());
  }

  void left_over(const PlannedOffset& one) {
    const bool start = one.step == PlannedOffset::kStart;
    const std::string name = !one.tensor.valid() ? "a workspace"
                             : one.tensor.index() >= graph_.tensor_count()
                                 ? "a tensor that there is not"
                                 : graph_.label(one.tensor);
    fault_ = {std::nullopt, "there is an offset of " + name + " from " +
                                (start ? "the start" : "step " + std::to_string(one.step)) +
                                " on, and no such bytes begin there"};
  }

  std::optional<Bytes> refuse(std::string reason) {
    fault_ = OffsetFault{std::nullopt, std::move(reason)};
    if (step_ != PlannedOffset::kStart) fault_->step = static_cast<std::size_t>(step_);
    return std::nullopt;
  }

  const Graph& graph_;
  const Plan& plan_;
  Bytes alignment_, size_;
  std::map<Key, std::vector<PlannedOffset>> offset_of_;  // of what has not begun yet
  std::map<Bytes, Range> ranges_;                        // of what is live, by offset
  IdVector<TensorId, Bytes> place_;                      // of each live tensor
  std::int32_t step_ = PlannedOffset::kStart;
  std::optional<OffsetFault> fault_;
};

}  // namespace

std::optional<OffsetFault> offset_fault(const Graph& graph, const Plan& plan, const PlanFile& file,
                                        const std::vector<PlannedOffset>& offsets) {
  if (!file.claims.arena)
    return OffsetFault{std::nullopt, "there are offsets, but no \"arena\" is claimed"};
  if (file.alignment && *file.alignment < Bytes(1))
    return OffsetFault{std::nullopt, "the alignment must be at least 1"};
  return Arena(graph, plan, file, offsets).check();
}

}  // namespace lowtide
