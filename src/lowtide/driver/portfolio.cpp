// Problem: which solver for this graph, this budget and this order?
//
// Idea: none is best everywhere. The bounds for a moment and the constructive ones take
// milliseconds: they go first, one after the other, each with a slice of work and, but for the
// bounds, with the best plan so far as its start; where none of them finds a plan, Kumar et al.'s
// is asked once, as it needs least memory. Then come epochs: in
// each, the search anneals from the best plan so far in several lanes that differ in their seed,
// while the bounds get a part of the time, and so does, as long as there is no plan, what was not
// yet finished. At the end of an epoch the lanes' plans and claims are exchanged. Epochs grow, so
// that little is lost to beginning anew.
// Stops as soon as a plan is proven optimal or the budget proven infeasible.
//
// On large graphs a plan made of blocks comes before all others: it takes seconds where they take
// minutes, and what repeats it plans once. On a chain a dynamic program comes to what the search
// does not (portfolio_chain.cpp).
//
// Where the order is free, a portfolio in the given one runs beside this one, and does what keeps
// that order (auto.cpp).
//
// With a machine the search swaps as well as it computes again. From a plan that only computes
// again it seldom comes to what the two together can do: so as long as the best plan transfers
// nothing, every other lane begins from the best that does, or from the graph's own order.
//
// While there is no plan, some lanes are hot. Where the best plan is far from what is proven half
// of them are, and more once that has won more (portfolio_tasks.cpp). It never ends for want of
// ideas: as long as there is time or work left and neither a proof nor the best plan, the next
// epoch is longer.
//
// Without a clock a whole epoch has kWhole lanes, and nothing is exchanged within an epoch: the
// same seed gives the same answer, whatever the number of threads. Under a clock there is a lane
// for each thread, and plans are reported as soon as a lane finds them. Without any limit it ends
// after kUnlimitedEpochs.
//
// Under a clock, where the order is given, the graph is small and the search stands still, an
// engine tries once to prove the plan, if there is one: checkmate's frontier by HiGHS. It alone
// closes graphs such as the papers' G1.
//
// Invariant: no part that takes long keeps the others from their turn, and each epoch begins from
// the best plan of all before.
//
// Loses: against one part alone that needs many slices, since it begins anew with each.
#include "lowtide/driver/portfolio.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lowtide/base/parallel.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::driver {

namespace {

using solve::Trait;
using solve::Traits;

constexpr int kPasses = 3;               // of the constructive ones, until there is a plan
constexpr double kSliceShare = 0.1;      // of the limits, for each of them at first
constexpr std::int64_t kSliceWork = 10;  // for each op, at least
constexpr double kPassesShare = 0.05;    // of the limits, at most, for all but the first
// What is constructive and for tight budgets, too: by so much more than other constructive parts.
constexpr std::int64_t kLonger = 4;
constexpr double kLongerShare = 0.2;     // of the limits, at most
constexpr double kQuickShare = 0.05;     // of the limits, for these where there is a plan already
constexpr double kMostQuickShare = 0.2;  // where that comes to nothing
constexpr std::int64_t kBriefProof = 10'000;
constexpr std::int64_t kBriefProofPerOp = 5;
constexpr double kBriefProofShare = 0.06;  // of the limits, at most
constexpr std::uint64_t kFirstProof = 3;   // epoch
constexpr std::int64_t kRises = 50;        // of the gap, one part in so many
constexpr double kProofShare = 0.4;        // of the limits, if that comes first
constexpr std::uint64_t kUnlimitedEpochs = 4;
constexpr std::int64_t kSmall = 100;      // ops
constexpr std::int64_t kLarge = 4'000;    // ops: from here on blocks come first
constexpr std::int64_t kBlockWork = 200;  // for each op
// None is best everywhere; shares of the limits. The first is sooner of use than the others.
constexpr std::array<std::pair<std::string_view, double>, 3> kPartitions = {
    {{"h_partition", 0.2}, {"multilevel", 0.1}, {"repeat", 0.1}}};
constexpr double kBlockShare = 0.3;  // of the clock, for each, where they run side by side
constexpr std::int64_t kMostEngineOps = 200;
constexpr int kMostFailedLanes = 3;  // one may have drawn an unlucky seed
// By one part in so many of the graph's own time, and by this share of what the given order loses.
constexpr std::int64_t kAhead = 1000;
constexpr double kFarAhead = 0.2;
constexpr double kEngineFrom = 0.1;  // of the time

// Blocks without a backward half have nothing to save for it.
bool may_have_backward(const Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](OpId op) {
    return graph.is_barrier(op) || graph.op(op).phase == "backward";
  });
}

}  // namespace

void PortfolioKept::take(PortfolioKept other) {
  if (!other.plan) return;
  if (!plan || std::tie(other.cost.duration, other.cost.peak) < std::tie(cost.duration, cost.peak))
    *this = std::move(other);
}

Portfolio::Portfolio(const Problem& problem, solve::Context& context, Found found)
    : problem_(problem),
      context_(context),
      found_(std::move(found)),
      clocked_(context.limits().settings().seconds.has_value()),
      threads_(std::max(1, context.threads())),
      ops_(static_cast<std::int64_t>(problem.graph.op_count())),
      starts_(context.starts().begin(), context.starts().end()) {
  unfinished_ = parts(Trait::constructive);
  // The other roles are of one solver each: guests who would have them get slices like these.
  for (const solve::Solver* part : parts(Trait::guest)) {
    Traits roles = part->traits();
    for (const Trait kind : {Trait::guest, Trait::transfers}) roles.remove(kind);
    if (!roles.empty() && !roles.has(Trait::constructive)) unfinished_.push_back(part);
  }
  for (const solve::Solver* part : parts(Trait::tight))
    if (tight_ == nullptr && !part->traits().has(Trait::guest) &&
        !part->traits().has(Trait::constructive))
      tight_ = part;
  search_ = first(Trait::anytime);
  proving_ = first(Trait::proving);
  if (ops_ >= kLarge && may_have_backward(problem.graph)) blocks_ = first(Trait::blocks);
  engine_ = clocked_ && !context_.limits().settings().work && problem_.order == Order::given &&
            ops_ <= kMostEngineOps && !found_;
}

// What the bounds keep at their moment, with the rest made again just in time, often is the best
// start there is, and comes to light in milliseconds. With a link too that is a plan, if one that
// does not use it.
void Portfolio::prove_briefly() {
  if (proving_ == nullptr || problem_.graph.has_tensors_on_host() || stop()) return;
  const std::int64_t work = work_within(kBriefProofShare, kBriefProof + kBriefProofPerOp * ops_);
  Task task = problem_.machine ? part_task(proving_, work) : proof_task(work);
  task.without_link = problem_.machine.has_value();
  task.share = kBriefProofShare;
  run_alone(std::move(task));
}

void Portfolio::construct() {
  // Where all is known beforehand the parts would return at once, with nothing.
  if (context_.done() && !context_.smallest()) context_.offer_events(own_events(problem_.graph));
  const bool begun = context_.has_plan();
  // What a large graph repeats, blocks plan once, and all others take long to begin.
  // Where they find nothing, that must not cost the others their time.
  if (blocks_ != nullptr && context_.starts().empty() && !after_given_) {
    std::vector<Task> tasks;
    for (const auto& [partition, share] : kPartitions) {
      tasks.push_back(part_task(blocks_, work_within(share, kBlockWork * ops_)));
      // Of the clock, which they share if they run side by side.
      tasks.back().share = threads_ > 1 ? kBlockShare : share;
      tasks.back().options = {{"partition", std::string(partition)},
                              {"block", "cut,prices"},
                              {"top", "prices"},
                              {"polish", "off"}};
    }
    run(tasks, threads_);
  }
  // With this nearly every constructive part comes to its end on graphs of some thousand ops. As
  // long as none has a plan, they get more, since all else is slow without one.
  const std::int64_t enough = 20'000 + kSliceWork * ops_;
  std::int64_t slice = enough;
  // Of little work one must not take all, unless with less it comes to nothing; and beside a plan
  // there is a little for every one, since those find what is far smaller.
  const auto count = static_cast<double>(std::max<std::size_t>(1, unfinished_.size()));
  if (const auto most = context_.limits().remaining(begun ? kQuickShare / count : kSliceShare).work)
    slice = std::min(slice, std::max(*most, kSliceWork * ops_));
  // Beside what the given order has found, what re-orders must not keep the search from its turn.
  double share = 1;
  if (after_given_ && begun) {
    const auto asked = std::ranges::count_if(
        unfinished_, [&](const solve::Solver* part) { return !would_repeat(*part); });
    share = kQuickShare / static_cast<double>(std::max<std::ptrdiff_t>(1, asked));
    slice = work_within(share, slice);
  }
  double until = context_.limits().used() + (clocked_ ? kQuickShare : kMostQuickShare);
  for (int pass = 0; pass < kPasses && !(pass > 0 && context_.has_plan()); ++pass, slice *= 4)
    for (const solve::Solver* part : std::vector(unfinished_)) {
      if (stop()) return;
      if (pass > 0 && context_.limits().used() > kPassesShare) break;
      if (begun && context_.limits().used() > until) break;
      if (would_repeat(*part)) continue;
      if (problem_.machine && pass == 0 && part->traits().has(Trait::tight)) {
        const double before = context_.limits().used();
        ask_with_link(part, kLonger * enough);
        until += context_.limits().used() - before;  // not at the cost of the others
      } else if (part->traits().has(Trait::tight) && (!begun || clocked_)) {
        run_one(part, kLonger * enough, begun ? kQuickShare : kLongerShare);
      } else {
        run_one(part, slice, share);
      }
    }
}

// Where the order is free, what was asked in the given one finds hardly anything else as long as
// the best plan has no other order either.
bool Portfolio::would_repeat(const solve::Solver& part) const {
  if (!after_given_ || !context_.has_plan()) return false;
  Problem given = problem_;
  given.order = Order::given;
  return part.supports(given).yes &&
         solve::follows_order(problem_.graph, computations(context_.best()));
}

void Portfolio::take_given(const Portfolio& given) {
  after_given_ = true;
  best_elsewhere_ = given.best_elsewhere_;
  hear_from(given);
}

void Portfolio::hear_from(const Portfolio& given) {
  const solve::Context& from = given.context_;
  const auto& smallest = from.smallest();
  if (smallest && *from.smallest_peak() < context_.smallest_peak().value_or(Bytes::max()))
    context_.offer(*smallest);
  if (starts_.empty() && smallest) starts_.push_back(*smallest);
  given_cost_ = from.has_plan() ? from.best_cost() : Cost{Ticks::max(), Bytes::max(), {}};
}

Lead Portfolio::lead() const {
  if (!context_.has_plan() || solve::follows_order(problem_.graph, computations(context_.best())))
    return Lead::none;
  if (given_cost_.duration == Ticks::max()) return Lead::far;
  const Ticks own = problem_.graph.total_time();
  const Ticks won = given_cost_.duration - context_.best_cost().duration;
  if (won <= Ticks(own.count() / kAhead)) return Lead::none;
  const auto lost = static_cast<double>((given_cost_.duration - own).count());
  return static_cast<double>(won.count()) > kFarAhead * lost ? Lead::far : Lead::some;
}

void Portfolio::search() {
  begin_search();
  while (epoch()) {
  }
}

void Portfolio::begin_search() {
  // Small graphs are often settled by this alone.
  if (ops_ <= kSmall && proving_ != nullptr && !stop()) run_alone(proof_task(200 * ops_));
  slice_ = 20'000 + 4 * ops_;
  if (unlimited()) slice_ = 200 + 20 * static_cast<std::int64_t>(problem_.graph.link_count());
}

bool Portfolio::epoch(int quarters) {
  if (stop() || (unlimited() && number_ == kUnlimitedEpochs)) return false;
  const std::uint64_t number = number_++;
  const std::int64_t whole = slice_;
  slice_ = std::min(2 * slice_, kMostWork);
  if (quarters == 0) return true;
  // Under a clock there are as many lanes as threads, and shorter ones instead of fewer.
  const std::int64_t slice = clocked_ ? whole * quarters / kWhole : whole;
  // The search goes first, since proofs take longer; but no run ends without a proof having been
  // tried.
  std::vector<Task> others, lanes;
  const bool late = number >= kFirstProof || context_.limits().used() > kProofShare;
  const bool proves = late || !context_.has_plan() || best_elsewhere_.plan;
  repairs_ = late;
  // Where the search stands still the proofs get more work, and most of all if the bound still
  // rises.
  const Ticks duration = best_duration();
  const bool stands = duration == std::exchange(last_duration_, duration);
  const Ticks bound = context_.bound().duration;
  const Ticks risen = bound - std::exchange(last_bound_, bound);
  const bool rises =
      context_.has_plan() ? risen > Ticks((duration - bound).count() / kRises) : risen > Ticks(0);
  const bool idle = late && stands && context_.limits().used() > kEngineFrom;
  if (idle && std::exchange(engine_, false)) {
    prove_by_engine();
    if (stop()) return false;
  }
  const std::int64_t proof = !stands ? slice / 3 : rises ? 2 * slice : slice;
  if (proves) add_proof(others, proof);
  // A plan that the search has had in hand is seldom improved on by constructing another.
  if (number > 0)
    for (const solve::Solver* part : unfinished_)
      if (search_ == nullptr || !context_.has_plan() || part->traits().has(Trait::guest))
        others.push_back(part_task(part, slice / 4));
  excess_ = excess_of_repeats();
  won_now_ = {Ticks(-1), Ticks(-1)};
  const int count = lane_count(quarters);
  for (int lane = 0; lane < count; ++lane) lanes.push_back(lane_task(number, lane, slice));
  // Nobody has anything left to do.
  if (search_ == nullptr && proving_ == nullptr && unfinished_.empty()) return false;
  if (clocked_ && threads_ > 1) {
    share_out_what_is_left(lanes);
    std::move(lanes.begin(), lanes.end(), std::back_inserter(others));
    lanes.clear();
  }
  const std::int64_t before = context_.limits().work();
  before_lanes_ = best_duration();
  run(others, threads_);
  if (stop()) return false;
  // What a proof keeps is a start for the search, if it is not a plan already.
  share_out_what_is_left(lanes);
  if (!lanes.empty()) before_lanes_ = best_duration();
  run(lanes, threads_);
  for (std::size_t i = 0; i < won_.size(); ++i)
    if (won_now_[i] >= Ticks(0)) won_[i] = won_now_[i];
  // Whoever did nothing now may do something in a longer epoch; but no limit is waited for in vain.
  if (context_.limits().work() == before) context_.limits().spend(Limits::kPollWork);
  return true;
}

std::vector<const solve::Solver*> Portfolio::parts(Trait trait, bool external) const {
  if (context_.solvers() == nullptr) return {};
  std::vector<const solve::Solver*> parts = context_.solvers()->with(trait);
  std::erase_if(parts, [&](const solve::Solver* part) {
    return part->traits().has(Trait::external) != external || !support_of(*part, problem_).yes;
  });
  return parts;
}

const solve::Solver* Portfolio::first(Trait trait, bool external) const {
  for (const solve::Solver* part : parts(trait, external))
    if (!part->traits().has(Trait::guest)) return part;
  return nullptr;
}

std::uint64_t Portfolio::task_seed(std::uint64_t number) const {
  return Random(context_.seed() * 0x9e3779b97f4a7c15u + number).next();
}

// Even a hopeless budget gets an answer with the smallest peak seen.
bool Portfolio::stop() {
  // A task that begins after the deadline or a cancel does no work, and both are seen as work is
  // done.
  context_.limits().spend(too_late() ? Limits::kPollWork : 0);
  return context_.done() && context_.smallest().has_value();
}

void Portfolio::run_one(const solve::Solver* part, std::int64_t work, double share) {
  Task task = part_task(part, work_within(share, work));
  task.share = share;
  run_alone(std::move(task));
}

std::int64_t Portfolio::work_within(double share, std::int64_t work) const {
  return std::min(work, context_.limits().remaining(share).work.value_or(work));
}

void Portfolio::run_alone(Task task) {
  std::vector<Task> tasks;
  tasks.push_back(std::move(task));
  run(tasks, 1);
}

void Portfolio::run(std::vector<Task>& tasks, int threads) {
  for (const Task& task : tasks) context_.part(task.part->name());
  LimitSettings limits = context_.limits().remaining();
  if (limits.work) {
    // What is left is shared out by the sizes of the tasks.
    std::int64_t wanted = 0;
    for (const Task& task : tasks) wanted += task.work;
    if (wanted > *limits.work)
      for (Task& task : tasks)
        task.work = static_cast<std::int64_t>(static_cast<double>(task.work) *
                                              static_cast<double>(*limits.work) /
                                              static_cast<double>(wanted)) +
                    1;
  }
  if (!starts_.empty() && (context_.has_plan() || context_.smallest()))
    starts_.front() = context_.has_plan() ? context_.best() : *context_.smallest();
  std::vector<Plan> starts = starts_, starts_before = starts_, starts_swapped;
  if (best_elsewhere_.plan) starts_before.front() = *best_elsewhere_.plan;
  const auto own = [&] {
    return plan_from_events(problem_.graph, own_events(problem_.graph), problem_.machine,
                            InPlace::never);
  };
  if (std::ranges::any_of(tasks, &Task::from_swapped))
    starts_swapped.push_back(swapped_.plan ? *swapped_.plan : own());
  // Half a search goes to the graph's own order where no start keeps the budget.
  if (repairs_ && best_elsewhere_.plan) starts_before.push_back(*best_elsewhere_.plan);
  if (repairs_ && context_.repair_start()) starts.push_back(*context_.repair_start());
  const Bound known = context_.own_bound();
  parallel_for(tasks.size(), threads, [&](std::size_t i) {
    const Task& task = tasks[i];
    run_task(tasks[i], limits, known,
             task.from_swapped  ? starts_swapped
             : task.from_before ? starts_before
                                : starts);
  });
  for (Task& task : tasks) merge(task);
}

// Of those that are asked again and again.
void Portfolio::leave_out(const solve::Solver* part) {
  std::erase(unfinished_, part);
  for (const solve::Solver** role : {&tight_, &search_, &proving_, &blocks_})
    if (*role == part) *role = nullptr;
}

void Portfolio::merge(Task& task) {
  context_.limits().spend(task.work_done);
  PortfolioPart& part = context_.part(task.part->name());
  part.seconds += task.seconds;
  part.work += task.work_done;
  if (!task.failure.empty()) {
    if (part.failure.empty()) part.failure = task.failure;
    if (!task.endless || ++failed_lanes_ == kMostFailedLanes) leave_out(task.part);
  }
  if (!task.outcome) return;
  count_won(task);
  const Outcome& outcome = *task.outcome;
  if (task.claims() && outcome.link_price && outcome.bound.duration >= context_.bound().duration)
    context_.tell_link_price(*outcome.link_price);
  if (task.claims()) {
    raise(*task.part, outcome.bound.duration);
    context_.raise_floor(outcome.bound.peak);
  }
  if (outcome.plan) offer(*outcome.plan, outcome.cost, *task.part);
  if (task.smallest &&
      (!context_.smallest_peak() || *outcome.smallest_peak < *context_.smallest_peak()))
    context_.offer(*task.smallest, task.part->name());
  if (starts_.empty() && context_.smallest()) starts_.push_back(*context_.smallest());
  if (task.repair_start) context_.offer(*task.repair_start, task.part->name());
  if (task.smallest) keep(task);
  if (task.endless || task.without_link || !by_itself(outcome.stopped_by)) return;
  std::erase(unfinished_, task.part);
  if (task.part == proving_) proving_ = nullptr;
}

// The best of what begins elsewhere than at the best plan: from that no lane comes back to it.
void Portfolio::keep(const Task& task) {
  const Outcome& outcome = *task.outcome;
  if (Kept made = task.made(); problem_.machine && made.plan && transfers(*made.plan))
    swapped_.take(std::move(made));
  if (task.from_before && best_elsewhere_.plan) {
    if (outcome.plan && outcome.cost.duration <= context_.best_cost().duration)
      best_elsewhere_.plan.reset();
    else
      best_elsewhere_.take(task.made());
  }
}

void Portfolio::offer(const Plan& plan, const Cost& cost, const solve::Solver& part) {
  if (context_.has_plan() && std::tie(cost.duration, cost.peak) >=
                                 std::tie(context_.best_cost().duration, context_.best_cost().peak))
    return;
  context_.offer(plan, part.name());
  if (found_) found_(plan, part.name());
}

void Portfolio::raise(const solve::Solver& part, Ticks bound) {
  const Traits traits = part.traits();
  const Ticks before = context_.bound().duration;
  traits.has(Trait::external) || traits.has(Trait::guest) ? context_.raise_engine_bound(bound)
                                                          : context_.raise_bound(bound);
  // What is no longer believed lowers it.
  context_.part(part.name()).bound += std::max(Ticks(), context_.bound().duration - before);
}

double Portfolio::seconds_left() const { return context_.limits().remaining().seconds.value_or(0); }

bool Portfolio::has_any_plan() {
  const std::scoped_lock lock(mutex_);
  return context_.smallest().has_value();
}

}  // namespace lowtide::driver
