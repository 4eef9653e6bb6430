// P. Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization",
// MLSys 2020, section 4. One stage for each op of the order. Stage t first recomputes what op t
// needs, then computes op t for the first time (the paper's frontier-advancing form (8)).
//
// R_{t,i}: stage t computes op i. S_{t,x}: tensor x is kept from stage t - 1 to stage t.
// FREE_{t,x,k}: x is freed after op k of stage t. U_{t,k}: bytes in use while op k runs.
//   R_{t,j} <= R_{t,i} + S_{t,x}             the inputs of an op are available     (1b)
//   S_{t,x} <= R_{t-1,i} + S_{t-1,x}         a kept tensor was available           (1c)
//   U_{t,0} = sum S_{t,x}, U_{t,k+1} = U_{t,k} - freed + made <= budget         (2), (3)
//   FREE_{t,x,k} = R_{t,k} (1 - S_{t+1,x}) prod (1 - R_{t,j}) over later readers j   (5)
// A checkpoint takes memory from the begin of its stage, used or not. So the optimum of this model
// is at or above that of the problem.
//
// The paper linearises (5) by a count of hazards and a constant kappa. FREE must then be an
// integer, and the relaxation is weak: two readers at one half free a value twice that is kept at
// one half. The tight form has no FREE. Instead, H_{t,x,j} says that x is held up to its reader j:
//   H_{t,x,j} >= R_{t,j}, H_{t,x,j} >= H_{t,x,j'}    j': the next reader after j
//   H_{t,x,last} >= S_{t+1,x}
// U is the sum of the held bytes. H may be fractional, since integral R and S imply integral H. The
// tight form also has rows that some optimum satisfies: a tensor is recomputed in a stage, or kept
// into it, only if the stage reads it or keeps it further; and an op is not computed while one of
// its outputs is kept.
//
// Beyond the paper: an op may make several tensors, each with its own S; U includes the workspace
// of the running op; an op that is not recomputable has one R; the graph's outputs are kept to the
// end. Variables that no later stage can use have no column.
#include "lowtide/solve/exact/checkmate/program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::exact::checkmate {

namespace {

// Rows are scaled to this magnitude, so that HiGHS's tolerances are small relative to the budget.
constexpr double kScale = 1e4;

// Larger programs are hopeless for HiGHS, and take gigabytes.
constexpr std::size_t kMostEntries = 6'000'000;

}  // namespace

double slack(const Graph& graph, double room) {
  double largest = std::fabs(room);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    largest = std::max(largest, static_cast<double>(graph.bytes(TensorId(i)).count()));
  return kTolerance * largest;
}

Program::Program(const Problem& problem, std::vector<OpId> order, const ProgramSettings& settings,
                 Limits& limits)
    : problem_(problem),
      graph_(problem.graph),
      settings_(settings),
      order_(std::move(order)),
      position_(graph_.op_count(), 0),
      last_stage_(graph_.op_count(), 0),
      ticks_unit_(std::max(1.0, static_cast<double>(graph_.total_time().count()) / kScale)),
      bytes_unit_(1) {
  for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i].index()] = i;
  const Bytes constant = graph_.resident() + graph_.input_bytes();
  const double room = settings_.allowance * static_cast<double>(problem_.budget.count()) -
                      static_cast<double>(constant.count());
  bytes_unit_ = std::max(1.0, std::fabs(room) / kScale);
  capacity_ = (room + slack(graph_, room)) / bytes_unit_;
  add_computations();
  add_checkpoints(limits);
  for (std::size_t stage = 0; stage < stages() && !stops(limits); ++stage) {
    add_memory(stage);
    if (settings_.tight) add_habits(stage);
  }
}

bool Program::too_large() const { return model_.entry_count() > kMostEntries; }

bool Program::stops(Limits& limits) {
  const std::size_t before = std::exchange(counted_, model_.entry_count());
  return limits.spend(static_cast<std::int64_t>(counted_ - before) / 16 + 1) || too_large();
}

void Program::add_computations() {
  const auto deadlines = rerun_deadlines(graph_, order_);
  for (std::size_t i = stages(); i > 0; --i) {
    const OpId op = order_[i - 1];
    std::size_t last = 0;
    for (const TensorId made : graph_.outputs(op)) {
      if (graph_.is_output(made)) last = stages() - 1;
      for (const OpId reader : graph_.consumers(made))
        last = std::max({last, position_[reader.index()], last_stage(reader)});
    }
    if (!graph_.recomputable(op)) last = i - 1;
    last_stage_[op.index()] = std::max(i - 1, std::min(last, deadlines[op.index()]));
  }
  computes_.assign(stages(), std::vector<std::int32_t>(stages(), kNone));
  for (std::size_t stage = 0; stage < stages(); ++stage)
    for (std::size_t i = 0; i <= stage; ++i) {
      if (stage > last_stage(order_[i])) continue;
      const double cost = static_cast<double>(graph_.time(order_[i]).count()) / ticks_unit_;
      computes_[stage][i] =
          model_.add_column(cost, {i == stage ? 1.0 : 0.0, 1}, !settings_.relaxed);
    }
}

void Program::add_checkpoints(Limits& limits) {
  keeps_.assign(stages() + 1, std::vector<std::int32_t>(graph_.tensor_count(), kNone));
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const TensorId tensor(x);
    if (!charged(tensor)) continue;
    if (stops(limits)) return;
    const OpId maker = graph_.producer(tensor);
    std::size_t last = 0;
    for (const OpId reader : graph_.consumers(tensor))
      last = std::max({last, position_[reader.index()], last_stage(reader)});
    if (graph_.is_output(tensor)) last = stages();
    for (std::size_t stage = position_[maker.index()] + 1; stage <= last; ++stage) {
      const double least = stage == stages() ? 1 : 0;
      keeps_[stage][x] = model_.add_column(0, {least, 1}, !settings_.relaxed);
      std::vector<engines::MipTerm> terms = {{keeps_[stage][x], 1}};  // (1c)
      if (const auto made = computes(stage - 1, maker); made != kNone) terms.push_back({made, -1});
      if (const auto before = keeps_[stage - 1][x]; before != kNone) terms.push_back({before, -1});
      model_.add_row(terms, {-engines::MipModel::kInfinity, 0});
    }
  }
  for (std::size_t stage = 0; stage < stages() && !stops(limits); ++stage)
    for (std::size_t j = 0; j <= stage; ++j) {
      if (computes_[stage][j] == kNone) continue;
      for (const TensorId read : graph_.inputs(order_[j])) {
        if (!charged(read)) continue;
        std::vector<engines::MipTerm> terms = {{computes_[stage][j], 1}};  // (1b)
        if (const auto made = computes(stage, graph_.producer(read)); made != kNone)
          terms.push_back({made, -1});
        if (const auto kept = keeps_[stage][read.index()]; kept != kNone)
          terms.push_back({kept, -1});
        model_.add_row(terms, {-engines::MipModel::kInfinity, 0});
      }
    }
}

void Program::add_habits(std::size_t stage) {
  const double inf = engines::MipModel::kInfinity;
  const auto add_uses = [&](TensorId x, std::vector<engines::MipTerm>& terms) {
    for (const OpId reader : graph_.consumers(x))
      if (const auto run = computes(stage, reader); run != kNone) terms.push_back({run, -1});
    if (const auto kept = keeps_[stage + 1][x.index()]; kept != kNone) terms.push_back({kept, -1});
  };
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    if (keeps_[stage][x] == kNone) continue;
    std::vector<engines::MipTerm> terms = {{keeps_[stage][x], 1}};
    add_uses(TensorId(x), terms);
    model_.add_row(terms, {-inf, 0});
  }
  for (std::size_t i = 0; i < stage; ++i) {
    const auto run = computes_[stage][i];
    if (run == kNone) continue;
    std::vector<engines::MipTerm> terms = {{run, 1}};
    for (const TensorId x : graph_.outputs(order_[i])) {
      add_uses(x, terms);
      if (const auto keep = keeps_[stage][x.index()]; keep != kNone) {
        const engines::MipTerm either[] = {{run, 1}, {keep, 1}};
        model_.add_row(either, {-inf, 1});
      }
    }
    // An op that reads several tensors of one computation counts once.
    std::sort(terms.begin(), terms.end(), [](const engines::MipTerm& a, const engines::MipTerm& b) {
      return a.column < b.column;
    });
    terms.erase(std::unique(terms.begin(), terms.end(),
                            [](const engines::MipTerm& a, const engines::MipTerm& b) {
                              return a.column == b.column;
                            }),
                terms.end());
    model_.add_row(terms, {-inf, 0});
  }
}

void Program::add_memory(std::size_t stage) {
  const double inf = engines::MipModel::kInfinity;
  const auto changes = settings_.tight ? held(stage) : freed(stage);
  std::vector<engines::MipTerm> terms;  // the changes since the op before
  std::int32_t before = kNone;
  for (std::size_t k = 0; k <= stage; ++k) {
    terms.insert(terms.end(), changes[k].begin(), changes[k].end());
    const std::int32_t run = computes_[stage][k];
    if (run == kNone) continue;
    const std::int32_t used = model_.add_column(0, {0, std::max(0.0, capacity_)}, false);
    if (before != kNone) terms.push_back({before, 1});
    terms.push_back({used, -1});
    model_.add_row(terms, {0, 0});
    const double workspace = units(graph_.workspace(order_[k]));
    if (capacity_ < 0 || workspace > 0) {
      const engines::MipTerm peak[] = {{used, 1}, {run, workspace}};
      model_.add_row(peak, {-inf, capacity_});
    }
    before = used;
    terms.clear();
  }
}

Program::Changes Program::held(std::size_t stage) {
  const double inf = engines::MipModel::kInfinity;
  Changes changes(stage + 2);
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const double bytes = units(graph_.bytes(TensorId(x)));
    if (!charged(TensorId(x)) || bytes == 0) continue;
    const std::size_t maker = position_[graph_.producer(TensorId(x)).index()];
    if (maker > stage) continue;
    const auto run = computes_[stage][maker], kept = keeps_[stage][x], later = keeps_[stage + 1][x];
    if (run == kNone && kept == kNone) continue;
    // From the last use to the first: the uses for which the tensor is held after each position.
    std::vector<std::pair<std::size_t, std::int32_t>> since;
    std::vector<std::size_t> readers;
    for (const OpId reader : graph_.consumers(TensorId(x)))
      if (computes(stage, reader) != kNone) readers.push_back(position_[reader.index()]);
    std::sort(readers.begin(), readers.end());
    std::int32_t next = later;
    since.emplace_back(readers.empty() ? maker : readers.back(), next);
    for (std::size_t r = readers.size(); r > 0; --r) {
      const auto reads = computes_[stage][readers[r - 1]];
      if (next == kNone) {
        next = reads;
      } else {
        const auto both = model_.add_column(0, {0, 1}, false);
        for (const std::int32_t each : {reads, next}) {
          const engines::MipTerm least[] = {{both, 1}, {each, -1}};
          model_.add_row(least, {0, inf});
        }
        next = both;
      }
      since.emplace_back(r > 1 ? readers[r - 2] : maker, next);
    }
    if (kept != kNone && next != kNone && !readers.empty()) {
      const engines::MipTerm least[] = {{next, 1}, {kept, -1}};
      model_.add_row(least, {0, inf});
    }
    if (kept != kNone) changes[0].push_back({kept, bytes});
    if (run != kNone) changes[maker].push_back({run, bytes});
    for (const auto column : {kept, run})
      if (column != kNone) changes[maker + 1].push_back({column, -bytes});
    std::int32_t held = kNone;
    for (auto each = since.rbegin(); each != since.rend(); ++each) {
      if (held != kNone) changes[each->first + 1].push_back({held, -bytes});
      held = each->second;
      if (held != kNone) changes[each->first + 1].push_back({held, bytes});
    }
  }
  return changes;
}

Program::Changes Program::freed(std::size_t stage) {
  const double inf = engines::MipModel::kInfinity;
  Changes changes(stage + 2);
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
    if (keeps_[stage][x] != kNone && graph_.bytes(TensorId(x)) > Bytes(0))
      changes[0].push_back({keeps_[stage][x], units(graph_.bytes(TensorId(x)))});
  for (std::size_t k = 0; k <= stage; ++k) {
    const std::int32_t run = computes_[stage][k];
    if (run == kNone) continue;
    double made = 0;
    for (const TensorId output : graph_.outputs(order_[k])) made += units(graph_.bytes(output));
    changes[k].push_back({run, made});
    std::vector<TensorId> candidates(graph_.outputs(order_[k]).begin(),
                                     graph_.outputs(order_[k]).end());
    for (const TensorId read : graph_.inputs(order_[k]))
      if (charged(read)) candidates.push_back(read);
    for (const TensorId x : candidates) {
      if (graph_.bytes(x) == Bytes(0)) continue;
      const std::int32_t free = model_.add_column(0, {0, 1}, !settings_.relaxed);
      std::vector<std::int32_t> hazards;
      if (const auto kept = keeps_[stage + 1][x.index()]; kept != kNone) hazards.push_back(kept);
      for (const OpId reader : graph_.consumers(x)) {
        const std::size_t j = position_[reader.index()];
        if (j > k && j <= stage && computes_[stage][j] != kNone)
          hazards.push_back(computes_[stage][j]);
      }
      // hazards = (1 - R) + S + sum R; 1 - FREE <= hazards <= kappa (1 - FREE)
      const double kappa = 1 + static_cast<double>(hazards.size());
      std::vector<engines::MipTerm> low = {{free, 1}, {run, -1}}, high = {{free, kappa}, {run, -1}};
      for (const std::int32_t hazard : hazards) {
        low.push_back({hazard, 1});
        high.push_back({hazard, 1});
      }
      model_.add_row(low, {0, inf});
      model_.add_row(high, {-inf, kappa - 1});
      changes[k + 1].push_back({free, -units(graph_.bytes(x))});
    }
  }
  return changes;
}

void Program::start(std::span<const OpId> sequence) {
  // For each tensor: the stages that make and read it, and thus those over which it is kept.
  std::vector<std::vector<std::size_t>> made(graph_.op_count());
  std::size_t stage = 0;
  std::vector<std::vector<std::uint8_t>> runs(stages(), std::vector<std::uint8_t>(stages(), 0));
  Checkpoints keeps(stages() + 1, std::vector<std::uint8_t>(graph_.tensor_count(), 0));
  const auto keep = [&](TensorId tensor, std::size_t until) {
    if (!charged(tensor)) return;
    const auto& makings = made[graph_.producer(tensor).index()];
    if (makings.empty()) return;
    for (std::size_t at = makings.back() + 1; at <= until; ++at) keeps[at][tensor.index()] = 1;
  };
  for (const OpId op : sequence) {
    if (stage >= stages()) break;
    for (const TensorId read : graph_.inputs(op)) keep(read, stage);
    made[op.index()].push_back(stage);
    runs[stage][position_[op.index()]] = 1;
    if (op == order_[stage]) ++stage;
  }
  for (const TensorId output : graph_.outputs()) keep(output, stages());
  model_.clear_start();
  for (std::size_t t = 0; t < stages(); ++t)
    for (std::size_t i = 0; i <= t; ++i)
      if (computes_[t][i] != kNone) model_.add_start(computes_[t][i], runs[t][i]);
  for (std::size_t t = 0; t <= stages(); ++t)
    for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
      if (keeps_[t][x] != kNone) model_.add_start(keeps_[t][x], keeps[t][x]);
}

std::vector<OpId> Program::sequence(std::span<const double> values) const {
  std::vector<OpId> computed;
  for (std::size_t stage = 0; stage < stages(); ++stage)
    for (std::size_t i = 0; i <= stage; ++i)
      if (const auto column = computes_[stage][i];
          column != kNone && values[static_cast<std::size_t>(column)] > 0.5)
        computed.push_back(order_[i]);
  return computed;
}

Ticks Program::duration(std::span<const double> values) const {
  Ticks sum;
  for (const OpId op : sequence(values)) sum = checked_add(sum, graph_.time(op));
  return sum;
}

Ticks Program::unscaled(double objective) const {
  // Durations are integers, but HiGHS's objectives are exact only to a millionth.
  const double ticks = std::ceil(objective * ticks_unit_ * (1 - kTolerance) - kTolerance);
  if (!(ticks < static_cast<double>(Ticks::max().count()))) return graph_.total_time();
  return std::max(graph_.total_time(), Ticks(static_cast<std::int64_t>(ticks)));
}

std::vector<std::vector<double>> Program::kept(std::span<const double> values) const {
  std::vector<std::vector<double>> shares(stages() + 1,
                                          std::vector<double>(graph_.tensor_count(), 0));
  for (std::size_t t = 0; t <= stages(); ++t)
    for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
      if (keeps_[t][x] != kNone) shares[t][x] = values[static_cast<std::size_t>(keeps_[t][x])];
  return shares;
}

std::vector<OpId> Program::completed(const Checkpoints& kept) const {
  std::vector<OpId> computed;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    std::vector<std::uint8_t> run(stages(), 0);
    run[stage] = 1;
    // Compute the tensors that are kept but not available; then, from the last to the first, their
    // inputs.
    for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
      if (kept[stage + 1][x] != 0 && kept[stage][x] == 0 && charged(TensorId(x)))
        run[position_[graph_.producer(TensorId(x)).index()]] = 1;
    for (std::size_t j = stage + 1; j > 0; --j) {
      if (run[j - 1] == 0) continue;
      for (const TensorId read : graph_.inputs(order_[j - 1]))
        if (charged(read) && kept[stage][read.index()] == 0)
          run[position_[graph_.producer(read).index()]] = 1;
    }
    for (std::size_t i = 0; i <= stage; ++i)
      if (run[i] != 0) computed.push_back(order_[i]);
  }
  return computed;
}

}  // namespace lowtide::solve::exact::checkmate
