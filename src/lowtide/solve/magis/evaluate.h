// The cost of a state of the search, without building its graph. See evaluate.cpp. Private to
// `magis`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/solve/magis/view.h"

namespace lowtide::solve::magis {

// An action that runs right before an op, in each of the op's parts.
struct Action {
  enum class Kind : std::uint8_t { recompute, fetch };

  OpId before;
  Kind kind = Kind::recompute;
  std::uint32_t index = 0;  // an op, or a slot that comes back from the host
  std::uint32_t group = 0;  // actions of one rule share a group

  bool operator==(const Action&) const = default;
};
// Ordered by `before` in the base's order; the actions of one op in the order in which they run.
using Actions = std::vector<Action>;

struct Estimate {
  double peak = 0, time = 0;
  double over = 0;          // bytes above a target, summed over events
  std::uint64_t hash = 0;   // of what is computed from what, however it is numbered
  std::size_t fullest = 0;  // event
};

// One value that a slot holds for a while.
struct Instance {
  static constexpr std::int32_t kNone = -1;

  Slot slot = 0;
  std::int32_t maker = kNone;       // event; none for what is there from the start
  std::int32_t before = kNone;      // the slot's instance before
  std::size_t first = 0, last = 0;  // events, inclusive
};

struct StateEvent {
  enum class Kind : std::uint8_t { compute, again, fetch, close };

  Kind kind = Kind::compute;
  std::uint32_t index = 0;   // op, slot or region
  OpId at;                   // the op before which it stands, or itself
  std::uint32_t action = 0;  // of those that stand before an op
  std::size_t reads = 0;     // begin in Evaluator::reads(); the end is the next event's
};

class Evaluator {
 public:
  // `resident`: bytes that are always there. The graph must outlive it.
  explicit Evaluator(const Graph& graph);

  // The actions must be ones that can run. Near-linear in the events and their links.
  // `hash` is computed only on request.
  enum class Hash : std::uint8_t { none, computed };
  Estimate estimate(const View& view, std::span<const Action> actions, double target,
                    Hash hashed = Hash::computed);

  // Results of the latest estimate:
  std::span<const StateEvent> events() const {
    return std::span(events_).first(events_.size() - 1);
  }
  std::span<const Instance> instances() const { return instances_; }
  std::span<const std::int32_t> read_at(std::size_t event) const {
    return std::span(reads_).subspan(events_[event].reads,
                                     events_[event + 1].reads - events_[event].reads);
  }
  std::span<const double> live() const { return live_; }
  // The latest instance of a slot.
  std::int32_t latest(Slot slot) const { return now_[slot]; }
  // The ticks of the links that carry nothing, of the busier link.
  double idle() const { return idle_; }

 private:
  void run(const View& view, std::span<const Action> actions);
  void emit(StateEvent event, std::span<const Slot> reads);
  void make(Slot slot);
  double wait(const View& view);
  void sum_up(const View& view, Estimate& found, double target);
  std::uint64_t hash(const View& view);

  const Graph& graph_;
  std::vector<std::uint64_t> given_;  // labels of tensors that no op makes
  std::vector<StateEvent> events_;    // and one behind them
  std::vector<std::int32_t> reads_, now_;
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> begin_;       // by op: its first action
  std::vector<std::uint32_t> first_made_;  // by event: instance
  std::vector<double> live_, clock_, extra_, stored_;
  std::vector<std::pair<std::size_t, std::size_t>> fetches_;  // event, and the instance it makes
  std::vector<std::pair<std::size_t, std::size_t>> stretch_;  // by region: events
  std::vector<std::uint64_t> down_, up_, word_;
  std::vector<std::uint8_t> leaves_;  // by slot: it is fetched at some time
  double idle_ = 0;
};

}  // namespace lowtide::solve::magis
