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
  // What the inputs of a computation again do that are not there by then: all of them are computed
  // again, too. Otherwise they stay until then, as in the paper.
  bool chains = true;
};

// A value that is live at the fullest place, was read before it and is read behind it.
struct HotSpot {
  std::int32_t instance;
  std::size_t next;  // the event that reads it then
  double bytes;
};

class Rules {
 public:
  Rules(const Graph& graph, const RuleSettings& settings, Limits& limits)
      : graph_(graph), settings_(settings), limits_(limits) {}

  // Of what the evaluator has estimated last: largest first.
  std::vector<HotSpot> hot_spots(const View& view, const Evaluator& state,
                                 std::size_t fullest) const;
  // Its states, with the hot spot computed again right before its next reader, or fetched; none
  // where that is not possible. `time`: what that takes by itself.
  struct Change {
    Actions actions;
    double time = 0;
  };
  std::optional<Change> recomputed(const View& view, const Evaluator& state, const Actions& actions,
                                   const HotSpot& spot, bool chain) const;
  std::optional<Change> fetched(const View& view, const Evaluator& state, const Actions& actions,
                                const HotSpot& spot) const;
  // Without a group.
  static Actions without(const Actions& actions, std::uint32_t group);
  static std::vector<std::uint32_t> groups(const Actions& actions);
  // Those that another view still allows.
  Actions allowed(const View& view, const Actions& actions) const;

  const RuleSettings& settings() const { return settings_; }

 private:
  bool may_run_again(const View& view, OpId op, OpId before) const;
  // What runs again together, in the order in which it does.
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
  Limits& limits_;  // what the rules cost is charged there
};

}  // namespace lowtide::solve::magis
