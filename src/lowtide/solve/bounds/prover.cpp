// The first round grants a small, fixed amount of work per op. Later rounds double the grants, so
// that every relaxation that pays gets a share of the work, and a later call with more work gets
// at least as far as this one.
#include "lowtide/solve/bounds/prover.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "lowtide/solve/bounds/cut/cut_link.h"
#include "lowtide/solve/bounds/cut/cut_point.h"
#include "lowtide/solve/sequence/just_in_time.h"

namespace lowtide::solve::bounds {

namespace {

constexpr std::size_t kFirstMoments = 24;
constexpr std::size_t kFirstMomentsWithLink = 96;
constexpr std::size_t kMostMoments = 512;
constexpr std::size_t kFirstBranched = 6;  // cut points with branching at first; later more
constexpr std::int64_t kFirstSteps = 150;
constexpr std::int64_t kFirstNodes = 50;
constexpr std::int64_t kLinksPerUnit = 16;
constexpr std::int64_t kSizePerUnit = 128;  // for passes that only mark ops, tensors and links
// The size of all open networks of the branching together, in ops and links.
constexpr std::size_t kMostOpen = 400'000;
constexpr std::array<std::size_t, 4> kWindowPoints = {4, 16, 32, 64};
constexpr std::int64_t kWindowRounds = 4;
// Ops, tensors and links times cut points. Limits the memory, the first few iterations, and the
// time in which windows are made, since limits are not polled there.
constexpr std::size_t kMostWindowed = 1'000'000;
constexpr std::int64_t kGrowthWork = 20'000;
constexpr std::int64_t kLagging = 4;  // divides the work of the relaxation with the lower bound
constexpr std::int64_t kWindowBranchWork = 100'000;
constexpr std::size_t kMostGrown = 16;              // cut points at a time
constexpr std::size_t kMostCandidates = 64;         // candidates for cut points
constexpr std::size_t kMostChosenFrom = 4'000'000;  // ops, tensors and links times the candidates
constexpr std::size_t kFirstStages = 8;
constexpr std::size_t kMostStages = 64;
constexpr std::size_t kMostStaged = 300'000;  // the same
constexpr std::int64_t kLeastStageWork = 50'000;

}  // namespace

Prover::Prover(const Problem& problem, Context& context, const ProverSettings& settings)
    : problem_(problem),
      context_(context),
      settings_(settings),
      scale_(problem.graph),
      profile_(own_profile(problem.graph)),
      size_(size_of(problem.graph)) {}

void Prover::run() {
  const std::vector<OpId> ops = moments();
  const std::size_t first =
      std::min(ops.size(), problem_.machine ? kFirstMomentsWithLink : kFirstMoments);
  for (std::size_t i = 0; i < first && !context_.done(); ++i) cut(ops[i]);
  // Bounds without the link also hold with it.
  if (problem_.machine && settings_.cuts && proven() == Ticks(0)) context_.tell_link_price(0);
  if (settings_.gaps && !context_.done()) {
    cover_.emplace(problem_, profile_);
    if (cover_->infeasible()) context_.raise_floor(problem_.budget + Bytes(1));
    cover(kFirstSteps);
  }
  std::size_t next = first, branched = kFirstBranched;
  std::int64_t steps = kFirstSteps;
  const Graph& graph = problem_.graph;
  const std::size_t most =
      std::max<std::size_t>(1, kMostOpen / (graph.op_count() + graph.link_count() + 1));
  for (bool progress = true; progress && !context_.done(); branched *= 2) {
    progress = false;
    const std::int64_t before = context_.limits().work();
    std::stable_sort(cuts_.begin(), cuts_.end(), [](const Cut& a, const Cut& b) {
      return std::pair(a.search != nullptr, a.found.extra) >
             std::pair(b.search != nullptr, b.found.extra);
    });
    if (settings_.windows) progress |= windows();
    if (settings_.branching) {
      std::size_t open = 0;
      for (std::size_t i = 0; i < cuts_.size() && open < std::min(branched, most); ++i) {
        if (context_.done()) break;
        if (cuts_[i].exhausted) continue;
        ++open;
        branch_at(cuts_[i]);
        progress = true;
      }
    }
    for (std::size_t i = 0; i < kFirstMoments && next < ops.size() && !context_.done(); ++i) {
      cut(ops[next++]);
      progress = true;
    }
    if (cover_ && !cover_->finished() && !context_.done()) {
      cover(steps *= 2);
      progress = true;
    }
    // As much as all others together, and more if it has raised the bound.
    const std::int64_t work = (context_.limits().work() - before) * (staged_well_ ? 4 : 1);
    if (settings_.stages && !context_.done()) progress |= stages(std::max(work, kLeastStageWork));
  }
}

// With a machine, cut points near the peak prove less than distant ones, at which the link has had
// less time. So the first cut points are spread over the graph.
std::vector<OpId> Prover::moments() const {
  if (!settings_.cuts) return {};
  std::vector<OpId> all = critical_ops(problem_, profile_, kMostMoments);
  if (!problem_.machine) return all;
  std::vector<OpId> ops = critical_ops(problem_, profile_, kFirstMoments);
  std::vector<std::uint8_t> taken(problem_.graph.op_count(), 0);
  for (const OpId op : ops) taken[op.index()] = 1;
  std::ranges::copy_if(all, std::back_inserter(ops),
                       [&](OpId op) { return taken[op.index()] == 0; });
  return ops;
}

void Prover::cut(OpId op) {
  const Graph& graph = problem_.graph;
  if (context_.limits().spend(static_cast<std::int64_t>(graph.link_count()) / kLinksPerUnit))
    return;
  CutSearch search(problem_, CutNetwork(problem_, cut_point_of(problem_, op)), scale_,
                   context_.limits());
  // On a large graph the time may have run out meanwhile, so poll; on a small one that is not worth
  // the work.
  if (context_.limits().over() && context_.limits().spend(Limits::kPollWork)) return;
  LinkShares shares = shares_;
  const CutFound found = maximise(search, {multiplier_, proven(), enough()}, shares);
  if (found.stopped) return;
  if (found.infeasible) return claim_infeasible(search);
  const bool best = found.extra > proven() || cuts_.empty();
  if (best) {
    multiplier_ = found.multiplier;
    shares_ = shares;
  }
  if (problem_.machine && found.extra > proven())
    context_.tell_link_price(
        std::min(1.0, found.moved / (static_cast<double>(scale_.total) + found.value)));
  claim(found.extra);
  if (best) offer(op, search);
  cuts_.push_back({.op = op,
                   .found = found,
                   .shares = shares,
                   .nodes = kFirstNodes,
                   .search = {},
                   .branch = {}});
}

CutFound Prover::maximise(CutSearch& search, const CutAim& aim, LinkShares& shares) {
  if (!problem_.machine) return search.maximise({}, aim);
  const CutFound found = maximise_shares(search, shares, scale_, aim);
  shares = search.shares();
  return found;
}

void Prover::cover(std::int64_t steps) {
  // Without a plan, an estimate: somewhat above the bound, and not close to zero.
  const std::int64_t guess =
      std::max(proven().count() + proven().count() / 4, base().count() / 200) + 1;
  const Ticks aim = context_.has_plan() ? enough() : Ticks(guess);
  cover_->run(aim, steps, context_.limits());
  context_.limits().spend(static_cast<std::int64_t>(profile_.size()) / kLinksPerUnit);
  claim(cover_->certified());
}

void Prover::branch_at(Cut& cut) {
  if (!cut.search) {
    const std::int64_t links = static_cast<std::int64_t>(problem_.graph.link_count());
    if (context_.limits().spend(links / kLinksPerUnit)) return;
    cut.search = std::make_unique<CutSearch>(
        problem_, CutNetwork(problem_, cut_point_of(problem_, cut.op)), scale_, context_.limits());
    // The first search may have given up early.
    cut.found = maximise(*cut.search, {cut.found.multiplier, Ticks(0), enough()}, cut.shares);
    if (cut.found.stopped) return;
    cut.branch = std::make_unique<CutBranch>(*cut.search, cut.found);
  }
  const Ticks before = cut.search->best() ? cut.search->best()->extra : Ticks::max();
  cut.branch->run(enough(), cut.nodes);
  if (cut.branch->infeasible()) return claim_infeasible(*cut.search);
  claim(cut.branch->bound());
  if (cut.search->best() && cut.search->best()->extra < before) offer(cut.op, *cut.search);
  cut.nodes *= 2;
  // The bound of a cut point cannot exceed the cost of its best cut that fits.
  const bool hopeless = cut.search->best() && cut.search->best()->extra <= proven();
  cut.exhausted = hopeless || cut.branch->finished() || cut.branch->nodes() >= settings_.nodes;
  if (cut.exhausted) {
    cut.branch.reset();
    cut.search.reset();
  }
}

// Returns false if stopped, or if there is no cut point.
bool Prover::begin_growth() {
  const std::size_t most = std::clamp<std::size_t>(kMostChosenFrom / size_, 8, kMostCandidates);
  std::vector<CutPoint> candidates;
  for (const OpId op : critical_ops(problem_, profile_, most)) {
    if (context_.limits().spend(static_cast<std::int64_t>(size_) / kSizePerUnit)) return false;
    candidates.push_back(cut_point_of(problem_, op));
  }
  if (candidates.empty()) return false;
  CutPoint first = cuts_.empty() ? candidates.front() : cut_point_of(problem_, cuts_.front().op);
  std::size_t moments = 1;
  while (moments < kMostGrown && (moments + 1) * (moments + 2) / 2 * size_ <= 2 * kMostWindowed)
    ++moments;
  growth_.emplace(problem_, scale_, std::move(first), std::move(candidates), moments);
  return true;
}

// Returns whether the bound may still rise. A gap of half a per cent is left to the other
// relaxations.
bool Prover::windows() {
  if (context_.has_plan() && (enough() - proven()).count() <= enough().count() / 200) return false;
  if (!growth_ && !begin_growth()) return false;
  // The relaxation with the higher bound gets more work.
  const Ticks before = proven();
  const Ticks chosen =
      std::max(growth_->bound(), window_branch_ ? window_branch_->bound() : Ticks(0));
  const bool lags = chosen < before;
  const auto count = [&](std::int64_t& work, auto run) {
    const std::int64_t start = context_.limits().work();
    const bool more = run();
    work += context_.limits().work() - start;
    return more;
  };
  if (chosen_left_ && (!lags || !spread_left_ || kLagging * chosen_work_ <= spread_work_)) {
    chosen_left_ = count(chosen_work_, [&] { return chosen_windows(); });
    const bool ahead = proven() > before && chosen_work_ < kLagging * spread_work_;
    if (ahead || context_.done()) return true;
  }
  if (spread_left_ && (lags || !chosen_left_ || spread_work_ <= chosen_work_))
    spread_left_ = count(spread_work_, [&] { return spread_windows(); });
  return chosen_left_ || spread_left_;
}

// Windows over few cut points, which are selected first; then branching on them.
bool Prover::chosen_windows() {
  if (growth_->finished()) return settings_.window_branching && branch_windows();
  growth_->run(kGrowthWork + static_cast<std::int64_t>(size_), proven(), context_.limits());
  claim_windows(growth_->bound(), growth_->infeasible());
  return true;
}

void Prover::claim_windows(Ticks extra, bool infeasible) {
  claim(extra);
  if (infeasible) context_.raise_floor(problem_.budget + Bytes(1));
}

// Branches on the tensors live at the cut points with the highest bounds. Returns whether the bound
// may still rise.
bool Prover::branch_windows() {
  if (growth_->best().empty()) return false;
  if (!window_branch_) {
    const std::vector<CutPoint>& moments = growth_->best();
    if (context_.limits().spend(work_of_windows(problem_.graph, moments.size()))) return false;
    window_branch_.emplace(problem_, moments, scale_, growth_->start());
  }
  if (window_branch_->finished()) return false;
  const std::int64_t work = kWindowBranchWork + static_cast<std::int64_t>(size_);
  window_branch_->run(enough(), work, context_.limits());
  claim_windows(window_branch_->bound(), window_branch_->infeasible());
  return true;
}

// Windows over more and more cut points, spread over the graph.
bool Prover::spread_windows() {
  if (!windows_) {
    if (window_sizes_ == kWindowPoints.size()) return false;
    const std::size_t count = kWindowPoints[window_sizes_++];
    if (count * size_ > kMostWindowed) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (context_.limits().spend(static_cast<std::int64_t>(size_) / kLinksPerUnit)) return false;
    std::vector<CutPoint> points = critical_chain(problem_, profile_, count);
    // One cut point is a cut. Graphs with fewer cut points than requested are done.
    if (points.size() < 2) return window_sizes_ < kWindowPoints.size();
    if (points.size() < count && problem_.order == Order::given)
      window_sizes_ = kWindowPoints.size();
    windows_.emplace(problem_, std::move(points), scale_, WindowSet::to_next_and_end);
  }
  windows_->run(kWindowRounds, context_.limits());
  claim_windows(windows_->bound(), windows_->infeasible());
  if (windows_->finished()) windows_.reset();
  return true;
}

std::vector<std::size_t> Prover::critical_positions(std::size_t most) const {
  std::vector<std::size_t> positions;
  for (const OpId op : critical_ops(problem_, profile_, most))
    positions.push_back(problem_.graph.position(op));
  std::sort(positions.begin(), positions.end());
  return positions;
}

// Returns whether the bound may still rise.
bool Prover::stages(std::int64_t work) {
  if (kFirstStages * size_ > kMostStaged) return false;
  if (!stages_) {
    const std::vector<std::size_t> first = critical_positions(kFirstStages);
    if (first.empty()) return false;
    const std::vector<std::size_t> all =
        critical_positions(std::clamp(kMostStaged / size_, first.size(), kMostStages));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (context_.limits().spend(static_cast<std::int64_t>(size_) / kLinksPerUnit)) return false;
    stages_.emplace(problem_, all, first);
  }
  if (stages_->finished()) return false;
  stages_->run(proven(), enough(), work, context_.limits());
  staged_well_ = stages_->bound() > proven();
  claim(stages_->bound());
  if (stages_->infeasible()) context_.raise_floor(problem_.budget + Bytes(1));
  return !stages_->finished();
}

void Prover::offer(OpId op, const CutSearch& search) {
  const Graph& graph = problem_.graph;
  // A cut with tensors on the host gives neither a plan nor a start plan yet.
  if (!search.best() || problem_.machine) return;
  if (context_.limits().spend(static_cast<std::int64_t>(graph.op_count()))) return;
  const auto sequence = sequence_without(problem_, op, search.best()->dropped);
  if (!sequence || (context_.limits().over() && context_.limits().spend(Limits::kPollWork))) return;
  context_.offer_sequence(*sequence);
}

void Prover::claim_infeasible(CutSearch& search) {
  context_.raise_floor(problem_.budget + Bytes(1));
  if (problem_.machine)
    context_.raise_floor(search.network().fixed());
  else if (const auto least = search.least_bytes())
    context_.raise_floor(*least);
}

void Prover::claim(Ticks extra) {
  context_.raise_bound(base() + std::min(extra, Ticks::max() - base()));
}

}  // namespace lowtide::solve::bounds
