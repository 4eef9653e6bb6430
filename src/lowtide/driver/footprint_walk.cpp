// Problem: of plans with much the same live bytes, find one that takes less where it lies.
//
// Idea: what an allocator reserves depends on which block comes before which, so plans that compute
// in another order take other amounts. Change the sequence of computations in one place: move an
// op, compute it once more anywhere, or leave a recomputation out. Measure the plan of that
// sequence, and go on from it unless it is worse. What is taken is often equal, so equal plans
// count as steps too. Where nothing becomes better for long, several changes at once begin another
// walk, in turn from the best plan and from where the last one has ended.
//
// Loses: against planning for fewer live bytes, where these are what is too much.
#include "lowtide/driver/footprint_walk.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/sim/verify.h"

namespace lowtide::driver {

namespace {

constexpr std::int64_t kMostIdle = 200;  // tries of a walk without anything better
constexpr int kMostWalks = 24;           // without anything better
constexpr double kWorse = 0.02;          // how often a worse plan is a step

class Walk {
 public:
  Walk(const Question& question, std::uint64_t seed, const MeasureBytes& measure, Limits& limits)
      : unlimited_(question),
        graph_(question.problem.graph),
        budget_(question.problem.budget),
        in_place_(question.problem.techniques.in_place ? InPlace::where_possible : InPlace::never),
        random_(seed),
        measure_(measure),
        limits_(limits) {
    unlimited_.problem.budget = Bytes::max();
  }

  void run(std::vector<OpId> sequence, Bytes taken, Ticks duration) {
    longest_ = sequence.size() + 2 + sequence.size() / 8;
    sequence_ = best_ = std::move(sequence);
    here_ = best_rank_ = rank(taken, duration);
    for (int walks = 0; walks < kMostWalks && !limits_.stopped(); ++walks) {
      if (walk()) walks = -1;
      if (walks % 2 == 0) sequence_ = best_;
      shake();
    }
  }

 private:
  // Bytes above the budget; of a plan within it, ticks.
  using Rank = std::pair<Bytes, Ticks>;
  Rank rank(Bytes taken, Ticks duration) const {
    return taken > budget_ ? Rank(taken - budget_, Ticks(0)) : Rank(Bytes(0), duration);
  }

  // Returns whether it has found anything better than all before.
  bool walk() {
    const Rank before = best_rank_;
    const std::int64_t patience = kMostIdle + 4 * std::ssize(sequence_);
    for (std::int64_t idle = 0; idle < patience && !limits_.stopped(); ++idle) {
      if (!step(kWorse) || here_ >= best_rank_) continue;
      best_rank_ = here_;
      best_ = sequence_;
      idle = -1;
    }
    return best_rank_ < before;
  }
  void shake() {
    for (std::size_t left = 2 + random_.below(1 + sequence_.size() / 2); left > 0; --left) step(1);
  }

  // Returns whether one change was a step. `worse`: how often it is one although it is worse.
  bool step(double worse) {
    std::vector<OpId> next = changed();
    limits_.spend_all(1 + std::ssize(next) / 4);
    if (next == sequence_ || !is_ready(next)) return false;
    const std::optional<Rank> found = try_out(next);
    if (!found || (*found > here_ && !random_.chance(worse))) return false;
    sequence_ = std::move(next);
    here_ = *found;
    return true;
  }

  std::optional<Rank> try_out(const std::vector<OpId>& sequence) const {
    const Plan plan = plan_from_sequence(graph_, sequence, in_place_);
    const Verdict verdict = verify(unlimited_, plan);
    if (!verdict.ok) return std::nullopt;
    return rank(measure_(plan, verdict.cost), verdict.cost.duration);
  }

  std::vector<OpId> changed() {
    std::vector<OpId> next = sequence_;
    if (next.empty()) return next;
    const auto place = [&](std::size_t at) {
      return next.begin() + static_cast<std::ptrdiff_t>(at);
    };
    const std::size_t from = random_.below(next.size());
    const OpId op = next[from];
    if (random_.chance(0.6)) {
      const std::size_t to = random_.below(next.size());
      if (from < to)
        std::rotate(place(from), place(from + 1), place(to + 1));
      else
        std::rotate(place(to), place(from), place(from + 1));
    } else if (std::ranges::count(next, op) > 1 && random_.chance(0.7)) {
      next.erase(place(from));
    } else if (graph_.op(op).recomputable && next.size() < longest_) {
      next.insert(place(random_.below(next.size() + 1)), op);
    }
    return next;
  }

  // Whether what each op reads was computed before it.
  bool is_ready(const std::vector<OpId>& sequence) const {
    std::vector<bool> made(graph_.op_count(), false);
    for (const OpId op : sequence) {
      for (const TensorId input : graph_.inputs(op))
        if (const OpId producer = graph_.producer(input);
            producer.valid() && !made[producer.index()])
          return false;
      made[op.index()] = true;
    }
    return true;
  }

  Question unlimited_;
  const Graph& graph_;
  Bytes budget_;
  InPlace in_place_;
  Random random_;
  const MeasureBytes& measure_;
  Limits& limits_;
  std::vector<OpId> sequence_, best_;
  std::size_t longest_ = 0;  // of the sequences that are tried
  Rank here_, best_rank_;
};

}  // namespace

void walk_footprints(const Question& question, const Frontier::Entry& start, std::uint64_t seed,
                     const MeasureBytes& measure, Limits& limits) {
  if (transfers(*start.plan) || !start.plan->transforms.empty()) return;
  Walk(question, seed, measure, limits)
      .run(sequence_of(*start.plan), start.needs(), start.cost.duration);
}

}  // namespace lowtide::driver
