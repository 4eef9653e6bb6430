// One run of the eviction solver: one order, one score, one target. See evict.cpp for the idea.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::evict {

// c: time of the producer, m: bytes, d: distance to the next use. The lowest score is evicted
// first.
enum class EvictScore : std::uint8_t {
  dtr,     // (c + time of the evicted neighbourhood) / (m d), neighbourhood by search
  dtr_eq,  // the same, neighbourhood by union-find (the paper's h_DTR_eq)
  local,   // c / (m d) (h_DTR_local)
  lru,     // 1 / d: the farthest next use
  size,    // 1 / m (GreedyRemat of the DTR paper)
  msps,    // (c + time of the evicted ancestors) / m
};

struct EvictSettings {
  Bytes target;  // the run tries to stay below this number
  EvictScore score;
  bool keep_outputs;  // graph outputs stay live once they are made
};

class EvictRun {
 public:
  EvictRun(const Graph& graph, std::span<const OpId> order, const EvictSettings& settings,
           Context& context);

  // The computations, in order; nullopt if the run was stopped, or given up because its plan cannot
  // beat the best known plan or grows too long.
  std::optional<std::vector<OpId>> build();
  bool overran() const { return peak_ > settings_.target; }
  Bytes peak() const { return peak_; }
  Ticks duration() const { return duration_; }

 private:
  struct TensorState {
    bool live = false;
    bool made = false;    // has been live before
    bool parked = false;  // not in the heap until it is unlocked
    std::uint32_t locks = 0;
    std::uint32_t version = 0;  // of its entry in the heap
    std::size_t next_use = 0;   // position in the order; kNever if there is none
    std::size_t cursor = 0;     // index into uses_
    std::int32_t group = -1;    // of evicted neighbours, for dtr_eq
  };
  struct Entry {
    double key;
    TensorId tensor;
    std::uint32_t version;
    bool operator>(const Entry& other) const {
      return std::pair(key, tensor) > std::pair(other.key, other.tensor);
    }
  };
  struct Frame {
    OpId op;
    std::size_t next_input = 0;
  };

  void index_uses();
  void enter_inputs();
  void retire();
  bool produce(OpId op);         // recomputes missing inputs too; returns false to give up
  bool make_room(Bytes needed);  // returns false if stopped
  void run(OpId op);
  void evict(TensorId id);
  void set_live(TensorId id);
  void advance_uses(OpId op);
  void lock(TensorId id) { ++state(id).locks; }
  void unlock(TensorId id);
  void push(TensorId id);
  bool evictable(TensorId id) const;
  bool dead(TensorId id) const;
  bool ends_with(OpId op, TensorId id) const;
  double key(TensorId id);
  double evicted_time(TensorId id);
  double searched_time(TensorId id, bool descendants);
  // Only the first few neighbours of a tensor count; otherwise tensors with many would make the run
  // quadratic.
  std::span<const TensorId> sources(TensorId id);
  std::span<const OpId> readers(TensorId id, std::size_t most);
  bool gone(TensorId id) const { return state(id).made && !state(id).live; }
  TensorState& state(TensorId id) { return tensors_[id.index()]; }
  const TensorState& state(TensorId id) const { return tensors_[id.index()]; }
  std::int32_t find_group(std::int32_t group);
  void join_groups(TensorId id);

  const Graph& graph_;
  std::span<const OpId> order_;
  EvictSettings settings_;
  Context& context_;
  std::vector<std::uint8_t> rerunnable_;
  std::vector<std::size_t> last_need_;
  std::vector<TensorId> retiring_;  // tensors that cannot be recomputed, by last need, latest first
  std::vector<std::size_t> uses_, uses_begin_;  // positions of readers, ascending, by tensor
  std::vector<TensorState> tensors_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
  std::vector<std::int32_t> group_parent_;
  std::vector<double> group_time_;
  std::vector<TensorId> stack_;
  std::vector<std::uint32_t> visited_;
  std::uint32_t visit_ = 0;
  std::vector<OpId> sequence_;
  std::size_t max_length_ = 0;
  double max_links_ = 0, links_ = 0;  // of the sequence
  std::size_t now_ = 0;
  Bytes live_, peak_;
  Ticks duration_;
};

}  // namespace lowtide::solve::evict
