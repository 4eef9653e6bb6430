// The scheduling rules of MAGIS (section 5.2) on a state: recomputation, copies to the host and
// back, and their inverses. See rules.cpp. Private to `magis`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/magis/evaluate.h"

namespace lowtide::solve::magis {

struct RuleSettings {
  bool recompute = true, offload = true;
  // Inputs that were freed before a recomputation are recomputed, too. Otherwise they are held
  // until then, as in the paper.
  bool chains = true;
};

// A value that is live at the peak, with readers before and after the peak.
struct HotSpot {
  std::int32_t instance;
  std::size_t next;  // the event of the next reader
  double bytes;
};

class Rules {
 public:
  Rules(const Graph& graph, const RuleSettings& settings, Limits& limits)
      : graph_(graph), settings_(settings), limits_(limits) {}

  // The hot spots of the latest estimate of `state`, largest first.
  std::vector<HotSpot> hot_spots(const View& view, const Evaluator& state,
                                 std::size_t fullest) const;
  // The actions with the hot spot recomputed, or fetched, right before its next reader; empty if
  // that is not possible. `time`: the time that the added actions take.
  struct Change {
    Actions actions;
    double time = 0;
  };
  std::optional<Change> recomputed(const View& view, const Evaluator& state, const Actions& actions,
                                   const HotSpot& spot, bool chain) const;
  std::optional<Change> fetched(const View& view, const Evaluator& state, const Actions& actions,
                                const HotSpot& spot) const;
  // The actions without those of a group.
  static Actions without(const Actions& actions, std::uint32_t group);
  static std::vector<std::uint32_t> groups(const Actions& actions);
  // The actions that are legal in another view.
  Actions allowed(const View& view, const Actions& actions) const;

  const RuleSettings& settings() const { return settings_; }

 private:
  bool may_run_again(const View& view, OpId op, OpId before) const;
  // Ops that are recomputed together, in order.
  struct Gathered {
    bool chain = true;
    std::vector<OpId> ops = {}, looked = {};
    std::size_t depth = 0;
  };
  bool gather(const View& view, const Evaluator& state, OpId op, const StateEvent& at,
              std::size_t event, Gathered& found) const;
  Actions with(const Actions& actions, const StateEvent& at, std::span<const Action> added) const;

  const Graph& graph_;
  RuleSettings settings_;
  Limits& limits_;  // charged with the work of the rules
};

}  // namespace lowtide::solve::magis
