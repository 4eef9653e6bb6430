// One sweep of the greedy solver: one order, one limit, one choice. See greedy.cpp for the idea.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/greedy/order_list.h"
#include "lowtide/solve/greedy/profile.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::greedy {

// The op to recompute first: the one that frees most bytes, or most bytes per tick of its time.
enum class GreedyChoice : std::uint8_t { bytes, bytes_per_tick };

struct GreedySettings {
  Bytes limit;  // the sweep tries to stay below this number
  GreedyChoice choice = GreedyChoice::bytes;
  std::uint32_t repeats = 1;  // most recomputations of one op
  std::size_t block = 1;      // most ops recomputed together for one tensor
};

class GreedyPass {
 public:
  GreedyPass(const Graph& graph, std::span<const OpId> order, const GreedySettings& settings,
             Limits& limits);

  // The computations, in order; nullopt if the limits stopped it.
  std::optional<std::vector<OpId>> run();
  // After a run: the peak of plan_from_sequence of the returned sequence.
  Bytes peak() const;

 private:
  using Item = OrderList::Item;  // a computation: those of the order first, then recomputations

  struct Candidate {
    double score = 0;
    std::size_t next_slot = 0;  // of equal scores, the tensor with the latest next use
    TensorId tensor;
    bool operator==(const Candidate&) const = default;
    bool operator<(const Candidate& other) const {
      return std::tuple(score, next_slot, other.tensor) <
             std::tuple(other.score, other.next_slot, tensor);
    }
  };
  struct TensorState {
    bool live = false;
    bool frees_nothing = false;     // evicting it frees no bytes until an ancestor is live again
    bool recomputed_later = false;  // ... or until its next use has passed
    Candidate queued;               // its valid entry in the heap; without tensor: none
    std::size_t cursor = 0;         // index into uses_ of the first use that has not run
    std::size_t last = 0;           // step at which it was last made or read
    int refusals = 0;               // since it was made
    std::uint32_t revived = 0;      // number of recomputations
    std::uint32_t mark = 0;         // the latest collection that recomputes it
    Item busy = OrderList::kNone;   // the running computation, if it reads or makes it
    std::vector<Item> repeats_reading;  // later recomputations that read it, a heap, next on top
  };
  // The ops to recompute, in order, and the freed inputs that must be held from their free on.
  struct Repetition {
    std::vector<OpId> ops;
    std::vector<TensorId> revived;
    std::size_t started = 0;        // visited ops, listed or not
    Bytes charge;                   // bytes of held inputs
    bool recomputed_later = false;  // one of them is recomputed anyway, but after the next use
    Ticks time;
  };

  void index_uses();
  void enter_inputs();
  bool step(Item item);  // returns false to stop
  void finish(Item item);
  // Selects a tensor, and puts its recomputation into repetition_; nullopt if nothing frees bytes
  // now.
  std::optional<TensorId> pick();
  void collect(OpId op, Item next);
  bool may_repeat(OpId op, Item next) const;
  bool give_up(TensorId id, Bytes& during);  // `during`: bytes of the current step
  void schedule(OpId op, Item next);
  void drop(OpId op, Bytes& during);
  bool stays_live(TensorId id);  // after this step
  // Whether nothing reads the present tensor any more, if its next use is `next`.
  bool ends_before(TensorId id, Item next) const;
  bool ends_at(TensorId id, Item item) const;  // of an item that reads it and has not run yet
  bool ended_at(std::size_t step, TensorId id) const;
  // Updates in-place savings: a tensor last made or read at an earlier step now ends there, or no
  // longer does, so that step overwrites other inputs. Updates the profile.
  void set_end(TensorId id, bool ends);
  void push(TensorId id);
  void push_readers(TensorId id);

  Item next_use(TensorId id) const;
  Item earlier(Item a, Item b) const;
  auto later() const {
    return [this](Item a, Item b) { return list_.before(b, a); };
  }
  double score(Bytes freed, Ticks time) const;
  std::size_t slot(Item item) const { return slots_[static_cast<std::size_t>(item)]; }
  bool is_own(Item item) const { return static_cast<std::size_t>(item) < deadlines_.size(); }
  OpId op_of(Item item) const { return ops_[static_cast<std::size_t>(item)]; }
  TensorState& state(TensorId id) { return tensors_[id.index()]; }
  const TensorState& state(TensorId id) const { return tensors_[id.index()]; }

  const Graph& graph_;
  GreedySettings settings_;
  Limits& limits_;
  std::vector<std::size_t> deadlines_;
  OrderList list_;
  std::vector<OpId> ops_;           // by item; the last item of the order is the end
  std::vector<std::size_t> slots_;  // by item: the position in the order before which it is
  std::vector<Item> uses_;          // by tensor: uses in the order, ascending
  std::vector<std::size_t> uses_begin_;
  std::vector<TensorState> tensors_;
  std::vector<Item> pending_;  // by op: its next recomputation
  std::vector<std::uint32_t> repeats_;
  std::vector<std::uint32_t> op_marks_;  // the latest collection that recomputes it
  std::uint32_t collection_ = 0;
  std::priority_queue<Candidate> candidates_;
  Repetition repetition_;
  std::vector<TensorId> refused_;  // in this step
  Profile profile_;
  std::vector<OpId> done_;                    // by step
  std::vector<std::vector<TensorId>> ended_;  // by step: inputs that it may overwrite
  Bytes live_;
  Item now_ = OrderList::kNone;
};

}  // namespace lowtide::solve::greedy
