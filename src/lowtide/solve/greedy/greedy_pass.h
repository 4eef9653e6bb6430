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

// Which op goes first: the one that frees most bytes, or most bytes for each tick of its time.
enum class GreedyChoice : std::uint8_t { bytes, bytes_per_tick };

struct GreedySettings {
  Bytes limit;  // bytes that the sweep tries to keep below
  GreedyChoice choice = GreedyChoice::bytes;
  std::uint32_t repeats = 1;  // how often one op may be computed again
  std::size_t block = 1;      // how many ops may be repeated together for one tensor
};

class GreedyPass {
 public:
  GreedyPass(const Graph& graph, std::span<const OpId> order, const GreedySettings& settings,
             Limits& limits);

  // The ops to compute, in order; nothing if the limits said stop.
  std::optional<std::vector<OpId>> run();
  // After it: the peak of plan_from_sequence of what it returned.
  Bytes peak() const;

 private:
  using Item = OrderList::Item;  // a computation: the order's own first, then the repetitions

  struct Candidate {
    double score = 0;
    std::size_t next_slot = 0;  // of equal scores, the tensor that is needed last
    TensorId tensor;
    bool operator==(const Candidate&) const = default;
    bool operator<(const Candidate& other) const {
      return std::tuple(score, next_slot, other.tensor) <
             std::tuple(other.score, other.next_slot, tensor);
    }
  };
  struct TensorState {
    bool live = false;
    bool frees_nothing = false;     // dropping it frees no bytes until an ancestor is live again
    bool recomputed_later = false;  // ... or until its next use has passed
    Candidate queued;               // what counts of its entries; none has no tensor
    std::size_t cursor = 0;         // into uses_, at the first that has not run
    std::size_t last = 0;           // steps done when it was last made or read
    int refusals = 0;               // since it was made
    std::uint32_t revived = 0;      // how often
    std::uint32_t mark = 0;         // the latest collection that revives it
    Item busy = OrderList::kNone;   // the computation under way, if it reads or makes it
    std::vector<Item> repeats_reading;  // repetitions to come that read it, a heap, next on top
  };
  // The ops to run again, in order, and what these read that must live on from where it went.
  struct Repetition {
    std::vector<OpId> ops;
    std::vector<TensorId> revived;
    std::size_t started = 0;        // ops found, listed yet or not
    Bytes charge;                   // of what is revived
    bool recomputed_later = false;  // some of that is made again anyway, but after the next use
    Ticks time;
  };

  void index_uses();
  void enter_inputs();
  bool step(Item item);  // false: stop
  void finish(Item item);
  // What making the picked tensor again takes, into repetition_; nothing if nothing frees bytes
  // now.
  std::optional<TensorId> pick();
  void collect(OpId op, Item next);
  bool may_repeat(OpId op, Item next) const;
  bool give_up(TensorId id, Bytes& during);  // `during`: bytes of the step under way
  void schedule(OpId op, Item next);
  void drop(OpId op, Bytes& during);
  bool stays_live(TensorId id);  // whether it stays live after this step
  // Whether nothing reads it any more, as it is, where `next` is its next use.
  bool ends_before(TensorId id, Item next) const;
  bool ends_at(TensorId id, Item item) const;  // which reads it and has not yet run
  bool ended_at(std::size_t step, TensorId id) const;
  // What was last made or read at a step that has been done does, or does no longer, end there: so
  // what that step writes in place is another. Counts it in the profile.
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
  std::vector<OpId> ops_;           // of each item; the last of the order's own is the end
  std::vector<std::size_t> slots_;  // of each item: the position in the order that it stands before
  std::vector<Item> uses_;          // of each tensor in the order, ascending
  std::vector<std::size_t> uses_begin_;
  std::vector<TensorState> tensors_;
  std::vector<Item> pending_;  // of each op: its repetition to come
  std::vector<std::uint32_t> repeats_;
  std::vector<std::uint32_t> op_marks_;  // the latest collection that repeats it
  std::uint32_t collection_ = 0;
  std::priority_queue<Candidate> candidates_;
  Repetition repetition_;
  std::vector<TensorId> refused_;  // in this step
  Profile profile_;
  std::vector<OpId> done_;                    // of each step
  std::vector<std::vector<TensorId>> ended_;  // of each step: inputs that it may overwrite
  Bytes live_;
  Item now_ = OrderList::kNone;
};

}  // namespace lowtide::solve::greedy
