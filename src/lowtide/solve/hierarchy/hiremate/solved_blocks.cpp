// Blocks are equal if their ops correspond in everything on which plans depend, in their times, in
// which of them are forward and recomputable, and in when tensors of the border exist. Classes of
// one height are independent, and solved in parallel, each with its share of the work.
#include "lowtide/solve/hierarchy/hiremate/solved_blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/base/parallel.h"
#include "lowtide/solve/hierarchy/block/all_or_nothing.h"
#include "lowtide/solve/hierarchy/hiremate/option_cache.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::hierarchy {

namespace {

// The most ops in all graphs of blocks together, relative to the graph. If blocks nest thousands of
// levels deep, only the inner ones are solved.
constexpr std::size_t kMostNested = 2;
constexpr std::size_t kFewOps = 50'000;
constexpr std::size_t kMostOptions = 48;        // for each block
constexpr double kLeastShare = 0.5;             // of the remaining limits, for one height
constexpr std::int64_t kMostWorkPerOp = 4'000;  // of one call, for each block and budget

std::vector<OpId> ops_of(const Partition& partition, const Block& block) {
  std::vector<OpId> ops;
  for (const Half* half : {&block.forward, &block.backward})
    ops.insert(ops.end(), partition.ops(*half).begin(), partition.ops(*half).end());
  return ops;
}

// The properties by which options are compared when one is chosen.
std::vector<std::array<std::int64_t, 5>> figures(std::span<const BlockOption> options) {
  std::vector<std::array<std::int64_t, 5>> figures;
  for (const BlockOption& option : options)
    figures.push_back({option.forward_time.count(), option.backward_time.count(),
                       option.saved.count(), option.forward_peak.count(),
                       option.backward_peak.count()});
  return figures;
}

bool all_proven(std::span<const BlockOption> options) {
  return std::ranges::all_of(
      options, [](const BlockOption& one) { return one.quickest_within.has_value(); });
}

// All options on the hull, and as many others as fit.
std::vector<BlockOption> few(std::vector<BlockOption> options) {
  if (options.size() <= kMostOptions) return options;
  std::vector<std::size_t> all(options.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> taken = convex_hull(options);
  for (const std::size_t i : spread(options, std::move(all), kMostOptions)) taken.push_back(i);
  std::ranges::sort(taken);
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  std::vector<BlockOption> kept;
  for (const std::size_t i : taken) kept.push_back(std::move(options[i]));
  return kept;
}

// The limits of a wave, divided by ops.
class WaveLimits {
 public:
  WaveLimits(const LimitSettings& all, std::int64_t ops, int threads)
      : all_(all), clock_(all), ops_(ops), threads_(threads), waiting_(ops) {}

  // The limits of one class with so many ops. Thread-safe.
  LimitSettings share(std::int64_t ops) {
    LimitSettings own = all_;
    if (own.work)
      own.work = std::max<std::int64_t>(1, checked_mul_div(*own.work, ops, ops_, Rounding::floor));
    // The largest classes come last, and get what the others have left.
    if (own.seconds)
      own.seconds = *clock_.remaining().seconds *
                    std::min(1.0, static_cast<double>(threads_) * static_cast<double>(ops) /
                                      static_cast<double>(waiting_.fetch_sub(ops)));
    return own;
  }

 private:
  const LimitSettings all_;
  const Limits clock_;  // from the construction
  const std::int64_t ops_;
  const int threads_;
  std::atomic<std::int64_t> waiting_;  // ops of classes that have not begun
};

}  // namespace

SolvedBlocks::SolvedBlocks(const Graph& graph, const Partition& partition,
                           const BlockSettings& settings, Limits& limits)
    : graph_(graph),
      partition_(partition),
      settings_(settings),
      class_of_(partition.blocks.size(), -1),
      ops_(partition.blocks.size()) {
  const std::vector<std::size_t> deadlines = rerun_deadlines(graph, graph.order());
  std::vector<std::uint8_t> reruns;
  for (const std::size_t deadline : deadlines)
    reruns.push_back(deadline == graph.op_count() ? 1 : 0);
  find_classes(reruns, limits);
}

// From the smallest block to the largest; of blocks with equally many ops, inner ones first.
std::vector<BlockId> SolvedBlocks::blocks_by_size() const {
  const auto& blocks = partition_.blocks;
  std::vector<BlockId> by_size;
  IdVector<BlockId, std::size_t> level(blocks.size(), 0);
  for (const BlockId id : blocks.ids()) {
    if (id == Partition::root()) continue;
    level[id] = level[blocks[id].parent] + 1;
    if (settings_.levels == 0 || level[id] < settings_.levels) by_size.push_back(id);
  }
  // Inner blocks have larger ids.
  std::ranges::sort(by_size, {}, [&](BlockId id) {
    return std::pair(blocks[id].op_count(), -static_cast<std::ptrdiff_t>(id.index()));
  });
  return by_size;
}

// All properties of a block on which plans depend.
std::vector<std::int64_t> SolvedBlocks::key_of(const BlockForm& form,
                                               std::span<const std::uint8_t> reruns) const {
  std::vector<std::int64_t> key = {static_cast<std::int64_t>(form.hash.high),
                                   static_cast<std::int64_t>(form.hash.low)};
  for (const OpId op : form.ops) {
    key.push_back(graph_.time(op).count());
    key.push_back(partition_.phases.of[op] == Phase::forward ? 1 : 0);
    key.push_back(reruns[op.index()]);
    for (const TensorId input : graph_.inputs(op)) {
      const OpId maker = graph_.producer(input);
      key.push_back(maker.valid() && (partition_.phases.of[maker] == Phase::backward ||
                                      !partition_.phases.layer[maker].valid())
                        ? 1
                        : 0);
    }
  }
  return key;
}

// One more than the height of the highest inner block with a class.
std::size_t SolvedBlocks::height_of(BlockId id,
                                    const IdVector<BlockId, std::vector<BlockId>>& inside) const {
  std::size_t height = 0;
  std::vector<BlockId> stack = inside[id];
  while (!stack.empty()) {
    const BlockId child = stack.back();
    stack.pop_back();
    if (is_block(child))
      height = std::max(height, classes_[static_cast<std::size_t>(class_of_[child])].height + 1);
    else
      stack.insert(stack.end(), inside[child].begin(), inside[child].end());
  }
  return height;
}

void SolvedBlocks::find_classes(std::span<const std::uint8_t> reruns, Limits& limits) {
  const auto& blocks = partition_.blocks;
  IdVector<BlockId, std::vector<BlockId>> inside(blocks.size());
  for (const BlockId id : blocks.ids())
    if (id != Partition::root()) inside[blocks[id].parent].push_back(id);
  std::map<std::vector<std::int64_t>, std::int32_t> found;
  std::size_t total = 0;
  for (const BlockId id : blocks_by_size()) {
    const std::vector<OpId> own = ops_of(partition_, blocks[id]);
    if (limits.spend_all(static_cast<std::int64_t>(own.size()))) break;
    BlockForm form = block_form(graph_, own, Alike::plan);
    std::vector<std::int64_t> key = key_of(form, reruns);
    // An inexact form does not determine the corresponding ops: such a block has a class of its
    // own.
    class_of_[id] = static_cast<std::int32_t>(classes_.size());
    if (form.exact) class_of_[id] = found.try_emplace(key, class_of_[id]).first->second;
    if (static_cast<std::size_t>(class_of_[id]) == classes_.size()) {
      // As long as all graphs together stay small.
      total += own.size();
      if (total > std::max(kFewOps, kMostNested * graph_.op_count())) {
        class_of_[id] = -1;
        break;
      }
      Class one;
      one.first = id;
      one.ops = form.ops;
      if (form.exact) one.key = std::move(key);
      // By the inner blocks of the first block: equal blocks may be partitioned differently inside.
      one.height = height_of(id, inside);
      one.problem = std::make_unique<BlockProblem>(graph_, partition_, id, form.ops, reruns);
      classes_.push_back(std::move(one));
    }
    ops_[id] = std::move(form.ops);
  }
}

// Down to child blocks or ops, without recursion, since nests may be thousands deep.
void SolvedBlocks::add_nodes(BlockId id, bool forward, std::size_t most_ops, Level& level,
                             IdVector<BlockId, std::size_t>& child_of) const {
  struct Place {
    const std::vector<BlockPart>* parts;
    std::size_t next = 0;
  };
  const auto parts = [&](BlockId of) {
    const Block& block = partition_.blocks[of];
    return forward ? &block.forward.parts : &block.backward.parts;
  };
  std::vector<Place> stack{{parts(id)}};
  while (!stack.empty()) {
    Place& place = stack.back();
    if (place.next == place.parts->size()) {
      stack.pop_back();
      continue;
    }
    const BlockPart& part = (*place.parts)[place.next++];
    if (part.op.valid()) {
      level.nodes.push_back({LevelNode::Kind::op, part.op, 0});
      continue;
    }
    const Block& block = partition_.blocks[part.block];
    if (!is_block(part.block) || block.op_count() > most_ops) {
      stack.push_back({parts(part.block)});
      continue;
    }
    std::size_t& child = child_of[part.block];
    if (child == SIZE_MAX) {
      child = level.children.size();
      Child added;
      const Class& solved = classes_[static_cast<std::size_t>(class_of_[part.block])];
      check(!solved.options.empty(), "a block inside is solved before those around it");
      added.options = solved.options;
      added.problem = solved.problem.get();
      added.ops = ops_[part.block];
      level.children.push_back(std::move(added));
    }
    level.nodes.push_back(
        {forward ? LevelNode::Kind::forward : LevelNode::Kind::backward, {}, child});
  }
}

Level SolvedBlocks::root(std::size_t most_ops) const {
  Level level;
  IdVector<BlockId, std::size_t> child_of(partition_.blocks.size(), SIZE_MAX);
  add_nodes(Partition::root(), true, most_ops, level, child_of);
  add_nodes(Partition::root(), false, most_ops, level, child_of);
  choose(level);
  return level;
}

Level SolvedBlocks::level_of(const Class& one) const {
  Level level;
  IdVector<BlockId, std::size_t> child_of(partition_.blocks.size(), SIZE_MAX);
  add_nodes(one.first, true, SIZE_MAX, level, child_of);
  if (one.problem->has_backward())
    level.nodes.push_back({LevelNode::Kind::rest, one.problem->rest(), 0});
  add_nodes(one.first, false, SIZE_MAX, level, child_of);
  std::unordered_map<OpId, OpId> local;
  for (std::size_t i = 0; i < one.ops.size(); ++i) local.emplace(one.ops[i], OpId(i));
  for (LevelNode& node : level.nodes)
    if (node.kind == LevelNode::Kind::op) node.op = local.at(node.op);
  for (Child& child : level.children)
    for (OpId& op : child.ops) op = local.at(op);
  choose(level);
  return level;
}

void SolvedBlocks::choose(Level& level) const {
  std::vector<std::size_t> ops;
  for (const Child& child : level.children) ops.push_back(child.ops.size());
  const std::vector<std::size_t> shares = shares_of(settings_.options, ops);
  // Equal blocks with equal shares choose equal options.
  std::map<std::pair<const BlockOption*, std::size_t>, std::vector<std::size_t>> known;
  for (std::size_t i = 0; i < level.children.size(); ++i) {
    Child& child = level.children[i];
    std::vector<std::size_t>& chosen = known[{child.options.data(), shares[i]}];
    if (chosen.empty()) {
      chosen.resize(child.options.size());
      std::iota(chosen.begin(), chosen.end(), std::size_t{0});
      if (settings_.choosing == Choosing::prices) chosen = convex_hull(child.options);
      chosen = spread(child.options, std::move(chosen), shares[i]);
    }
    child.chosen = chosen;
  }
}

std::vector<std::size_t> SolvedBlocks::sizes() const {
  std::vector<std::size_t> sizes;
  for (const BlockId id : partition_.blocks.ids())
    if (is_block(id)) sizes.push_back(partition_.blocks[id].op_count());
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// Peaks are spaced evenly from the largest need of an inner block or an op to the peak of saving
// all, and saved bytes evenly from the least possible to those of saving all.
std::vector<BlockBudget> SolvedBlocks::budgets(const BlockProblem& problem,
                                               std::span<const BlockOption> options,
                                               const Level& level) const {
  std::vector<BlockBudget> budgets;
  if (options.empty()) return budgets;
  Bytes low_peak, high_peak, low_saved = Bytes::max(), high_saved;
  for (const BlockOption& option : options) {
    high_peak = std::max(high_peak, option.peak());
    low_saved = std::min(low_saved, option.saved);
    high_saved = std::max(high_saved, option.saved);
  }
  for (const Child& child : level.children) {
    Bytes least = Bytes::max();
    for (const BlockOption& option : child.options) least = std::min(least, option.peak());
    low_peak = std::max(low_peak, least);
  }
  for (const LevelNode& node : level.nodes)
    if (node.kind == LevelNode::Kind::op)
      low_peak = std::max(low_peak, problem.least_peak(node.op));
  low_peak = std::min(low_peak, high_peak);
  const auto between = [](Bytes low, Bytes high, std::size_t i, std::size_t parts) {
    return low + Bytes(checked_mul_div((high - low).count(), static_cast<std::int64_t>(i),
                                       static_cast<std::int64_t>(parts), Rounding::floor));
  };
  for (std::size_t p = settings_.peaks; p > 0; --p)
    for (std::size_t s = settings_.saves; s-- > 0;)
      budgets.push_back({between(low_peak, high_peak, p, settings_.peaks),
                         between(low_saved, high_saved, s, settings_.saves)});
  return budgets;
}

// Calls block solvers for one class.
class SolvedBlocks::ClassRun {
 public:
  ClassRun(const SolvedBlocks& blocks, Class& one, WaveLimits& limits)
      : blocks_(blocks),
        settings_(blocks.settings_),
        one_(one),
        ops_(static_cast<std::int64_t>(one.ops.size())),
        level_(blocks.level_of(one)),
        options_(std::move(one.options)),
        limits_(limits.share(ops_)) {}

  // Returns whether a further call might change something.
  bool run(std::span<const BlockSolver* const> solvers) {
    const auto before = figures(options_);
    if (options_.empty()) {
      ask(*make_save_all(), {}, 1);
      ask(*make_recompute_all(), {}, 1);
    }
    const std::vector<BlockBudget> grid = blocks_.budgets(*one_.problem, options_, level_);
    for (std::size_t i = 0; i < solvers.size() && one_.problem->has_backward(); ++i)
      ask(*solvers[i], grid, 1.0 / static_cast<double>(solvers.size() - i));
    // A share of the limits may end before the limits do. Outer blocks are still solved, and use
    // the options of this one.
    if (options_.empty()) options_.push_back(one_.problem->save_all());
    one_.options = few(pareto(std::move(options_)));
    return is_cut_ || figures(one_.options) != before;
  }

  std::int64_t work() const { return limits_.work(); }

 private:
  void ask(const BlockSolver& solver, std::span<const BlockBudget> budgets, double share) {
    const BlockTask task{.block = *one_.problem,
                         .level = level_,
                         .budgets = budgets,
                         .known = options_,
                         .solvers = settings_.solvers,
                         .seed = settings_.seed};
    if (limits_.stopped() || !solver.supports(task).yes) return;
    LimitSettings most = limits_.remaining(share);
    if (!solver.goes_on()) {
      const std::int64_t enough =
          kMostWorkPerOp * (ops_ + 10) * static_cast<std::int64_t>(budgets.size() + 1);
      most.work = std::min(most.work.value_or(enough), enough);
    }
    Limits inner(most);
    std::vector<BlockOption> found = kept_or_solved(solver, task, most, inner);
    if (solver.goes_on() && (inner.stopped() || !all_proven(found))) is_cut_ = true;
    for (BlockOption& option : found) {
      if (option.found_by.empty()) option.found_by = solver.name();
      options_.push_back(std::move(option));
    }
    limits_.spend_all(inner.work());
  }

  std::vector<BlockOption> kept_or_solved(const BlockSolver& solver, const BlockTask& task,
                                          const LimitSettings& most, Limits& limits) const {
    // The name of a file requires a hash of all inner options, so it is computed only if needed.
    std::optional<OptionCache> cache;
    if (settings_.keep && solver.is_kept() && !one_.key.empty())
      cache.emplace(task, one_.key, std::string(solver.name()) + " " + solver.version(),
                    most.seconds.value_or(0));
    if (auto known = cache ? cache->read() : std::nullopt) {
      limits.spend_all(known->work);
      return std::move(known->options);
    }
    std::vector<BlockOption> found = solver.solve(task, limits);
    if (cache && limits.reason() != StopReason::cancelled) cache->write(found, limits.work());
    return found;
  }

  const SolvedBlocks& blocks_;
  const BlockSettings& settings_;
  Class& one_;
  const std::int64_t ops_;
  const Level level_;
  std::vector<BlockOption> options_;
  Limits limits_;
  bool is_cut_ = false;  // some solver that continues has used up its share
};

bool SolvedBlocks::solve_wave(const Wave& wave, std::span<const BlockSolver* const> solvers,
                              const LimitSettings& left, Limits& limits) {
  std::vector<std::int64_t> work(wave.classes.size(), 0);
  std::atomic<bool> changes = false;
  WaveLimits shares(left, wave.ops, settings_.threads);
  parallel_for(wave.classes.size(), settings_.threads, [&](std::size_t k) {
    ClassRun run(*this, classes_[wave.classes[k]], shares);
    if (run.run(solvers)) changes = true;
    work[k] = run.work();
  });
  limits.spend_all(std::accumulate(work.begin(), work.end(), std::int64_t{0}));
  return changes;
}

std::vector<SolvedBlocks::Wave> SolvedBlocks::waves() const {
  std::vector<Wave> waves;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const Class& one = classes_[i];
    if (waves.size() <= one.height) waves.resize(one.height + 1);
    waves[one.height].classes.push_back(i);
    waves[one.height].ops += static_cast<std::int64_t>(one.ops.size());
  }
  return waves;
}

bool SolvedBlocks::solve(std::span<const BlockSolver* const> solvers, Limits& limits) {
  const std::vector<Wave> in_order = waves();
  std::int64_t ops_left = 0;
  for (const Wave& wave : in_order) ops_left += wave.ops;
  bool changes = false;
  for (const Wave& wave : in_order) {
    const double by_ops = static_cast<double>(wave.ops) / static_cast<double>(ops_left);
    ops_left -= wave.ops;
    changes |= solve_wave(wave, solvers, limits.remaining(std::max(kLeastShare, by_ops)), limits);
    if (limits.stopped()) break;
  }
  // Blocks of heights that were not reached save all tensors.
  for (Class& one : classes_)
    if (one.options.empty()) one.options.push_back(one.problem->save_all());
  return changes;
}

}  // namespace lowtide::solve::hierarchy
