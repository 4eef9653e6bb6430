// The state of a simulation, advanced by one step at a time under the rules of
// docs/reference/cost.md. Private to the room: simulate and verify use it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

class Replay {
 public:
  // The plan must outlive the replay: its machine prices transfers.
  Replay(const Graph& graph, const Plan& plan);

  // Performs a step of the plan, or returns the rule that it breaks and changes nothing.
  std::optional<std::string> apply(const Step& step);
  // The rules that are broken after the last step.
  std::optional<std::string> missing_at_end() const;

  Bytes live() const { return live_; }      // between steps
  Bytes during() const { return during_; }  // during the latest step
  Bytes host() const { return host_; }
  // When the latest step began and ended on its lane; a free begins when the compute lane reaches
  // it, an op when its lane does and all that it waits for is there.
  Ticks began() const { return began_; }
  Ticks ended() const { return ended_; }
  Ticks clock() const { return compute_lane_; }
  Ticks duration() const;
  bool is_live(TensorId id) const { return tensors_[id.index()].live; }
  const std::vector<OpId>& first_computations() const { return first_; }

 private:
  struct TensorState {
    bool live = false;
    bool on_host = false;  // has a valid host copy
    bool host_space = false;
    bool mutated = false;
    Ticks exists;   // the end of the op or prefetch that made it live
    Ticks settled;  // the end of its last copy, in either direction
    Ticks network;  // the end of the last network op that read or made it
  };
  std::optional<std::string> compute(OpId op, std::span<const TensorId> overwritten);
  // Why the op may not run in place of these tensors, apart from its other rules.
  std::optional<std::string> not_overwritable(OpId op, std::span<const TensorId> overwritten) const;
  std::optional<std::string> free(TensorId id);
  std::optional<std::string> offload(TensorId id);
  std::optional<std::string> prefetch(TensorId id);
  TensorState& state(TensorId id) { return tensors_[id.index()]; }

  const Graph& graph_;
  const Plan& plan_;
  std::vector<TensorState> tensors_;
  std::vector<std::uint8_t> computed_;
  std::vector<OpId> first_;
  Bytes live_, during_, host_;
  Ticks compute_lane_, out_lane_, in_lane_, network_lane_, began_, ended_;
};

}  // namespace lowtide
