// P. Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization",
// MLSys 2020, section 4. One stage for each op of the order; stage t computes op t for the first
// time (the frontier-advancing form, (8) there) and whatever it needs again before.
//
// R_{t,i}: stage t computes op i. S_{t,x}: tensor x is kept from stage t - 1 to stage t.
// FREE_{t,x,k}: x is let go once op k of stage t has run. U_{t,k}: bytes in use while it runs.
//   R_{t,j} <= R_{t,i} + S_{t,x}             an op's inputs are there           (1b)
//   S_{t,x} <= R_{t-1,i} + S_{t-1,x}         what is kept was there             (1c)
//   U_{t,0} = sum S_{t,x}, U_{t,k+1} = U_{t,k} - freed + made <= budget         (2), (3)
//   FREE_{t,x,k} = R_{t,k} (1 - S_{t+1,x}) prod (1 - R_{t,j}) over later readers j   (5)
// So a checkpoint is charged from the begin of its stage, used or not: the optimum of this model is
// at or above that of the problem.
//
// The paper makes (5) linear by a number of hazards and a constant kappa, which needs FREE to be an
// integer and leaves a weak relaxation. The tight form bounds FREE by each factor alone: it may
// then be a fraction, since R and S make it whole. It also says what some optimum obeys
// anyway: nothing is computed again or kept over a begin unless the stage reads it or keeps it on,
// and nothing is computed while all that it makes is kept.
//
// Beyond the paper: an op may make several tensors, each with an S of its own; workspace is in U
// while the op runs; an op that may not be recomputed has one R; the graph's outputs are kept to
// the end. What no later stage can use has no column.
#include "lowtide/solve/checkmate/program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lowtide/solve/sequence.h"

namespace lowtide::checkmate {

namespace {

// Both sides of every row are of this size, so that HiGHS's tolerances mean little of a budget.
constexpr double kScale = 1e4;

}  // namespace

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
  capacity_ = room / bytes_unit_;
  add_computations();
  add_checkpoints();
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    if (limits.spend(static_cast<std::int64_t>(stage) + 1)) return;
    add_memory(stage);
    if (settings_.tight) add_habits(stage);
  }
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

void Program::add_checkpoints() {
  keeps_.assign(stages() + 1, std::vector<std::int32_t>(graph_.tensor_count(), kNone));
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    const TensorId tensor(x);
    if (!charged(tensor)) continue;
    const OpId maker = graph_.producer(tensor);
    std::size_t last = 0;
    for (const OpId reader : graph_.consumers(tensor))
      last = std::max({last, position_[reader.index()], last_stage(reader)});
    if (graph_.is_output(tensor)) last = stages();
    for (std::size_t stage = position_[maker.index()] + 1; stage <= last; ++stage) {
      const double least = stage == stages() ? 1 : 0;
      keeps_[stage][x] = model_.add_column(0, {least, 1}, !settings_.relaxed);
      std::vector<MipTerm> terms = {{keeps_[stage][x], 1}};  // (1c)
      if (const auto made = computes(stage - 1, maker); made != kNone) terms.push_back({made, -1});
      if (const auto before = keeps_[stage - 1][x]; before != kNone) terms.push_back({before, -1});
      model_.add_row(terms, {-MipModel::kInfinity, 0});
    }
  }
  for (std::size_t stage = 0; stage < stages(); ++stage)
    for (std::size_t j = 0; j <= stage; ++j) {
      if (computes_[stage][j] == kNone) continue;
      for (const TensorId read : graph_.inputs(order_[j])) {
        if (!charged(read)) continue;
        std::vector<MipTerm> terms = {{computes_[stage][j], 1}};  // (1b)
        if (const auto made = computes(stage, graph_.producer(read)); made != kNone)
          terms.push_back({made, -1});
        if (const auto kept = keeps_[stage][read.index()]; kept != kNone)
          terms.push_back({kept, -1});
        model_.add_row(terms, {-MipModel::kInfinity, 0});
      }
    }
}

void Program::add_habits(std::size_t stage) {
  const double inf = MipModel::kInfinity;
  const auto add_uses = [&](TensorId x, std::vector<MipTerm>& terms) {
    for (const OpId reader : graph_.consumers(x))
      if (const auto run = computes(stage, reader); run != kNone) terms.push_back({run, -1});
    if (const auto kept = keeps_[stage + 1][x.index()]; kept != kNone) terms.push_back({kept, -1});
  };
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x) {
    if (keeps_[stage][x] == kNone) continue;
    std::vector<MipTerm> terms = {{keeps_[stage][x], 1}};
    add_uses(TensorId(x), terms);
    model_.add_row(terms, {-inf, 0});
  }
  for (std::size_t i = 0; i < stage; ++i) {
    const auto run = computes_[stage][i];
    if (run == kNone) continue;
    const auto made = graph_.outputs(order_[i]);
    std::vector<MipTerm> terms = {{run, 1}}, kept = {{run, 1}};
    for (const TensorId x : made) {
      add_uses(x, terms);
      if (const auto keep = keeps_[stage][x.index()]; keep != kNone) kept.push_back({keep, 1});
    }
    model_.add_row(terms, {-inf, 0});
    if (kept.size() == made.size() + 1)
      model_.add_row(kept, {-inf, static_cast<double>(made.size())});
  }
}

void Program::add_memory(std::size_t stage) {
  const auto units = [&](Bytes bytes) { return static_cast<double>(bytes.count()) / bytes_unit_; };
  const double inf = MipModel::kInfinity;
  // What has been freed since the op before, and what the stage begins with.
  std::vector<MipTerm> change;
  for (std::size_t x = 0; x < graph_.tensor_count(); ++x)
    if (keeps_[stage][x] != kNone && graph_.bytes(TensorId(x)) > Bytes(0))
      change.push_back({keeps_[stage][x], units(graph_.bytes(TensorId(x)))});
  std::int32_t before = kNone;
  for (std::size_t k = 0; k <= stage; ++k) {
    const std::int32_t run = computes_[stage][k];
    if (run == kNone) continue;
    const OpId op = order_[k];
    const double workspace = units(graph_.workspace(op));
    double made = 0;
    for (const TensorId output : graph_.outputs(op)) made += units(graph_.bytes(output));
    const std::int32_t used = model_.add_column(0, {0, std::max(0.0, capacity_)}, false);
    std::vector<MipTerm> terms = std::move(change);
    if (before != kNone) terms.push_back({before, 1});
    terms.push_back({run, made});
    terms.push_back({used, -1});
    model_.add_row(terms, {0, 0});
    if (capacity_ < 0 || workspace > 0) {
      const MipTerm peak[] = {{used, 1}, {run, workspace}};
      model_.add_row(peak, {-inf, capacity_});
    }
    before = used;
    change.clear();
    std::vector<TensorId> candidates(graph_.outputs(op).begin(), graph_.outputs(op).end());
    for (const TensorId read : graph_.inputs(op))
      if (charged(read)) candidates.push_back(read);
    for (const TensorId x : candidates) {
      if (graph_.bytes(x) == Bytes(0)) continue;
      const std::int32_t freed =
          model_.add_column(0, {0, 1}, !settings_.tight && !settings_.relaxed);
      std::vector<std::int32_t> hazards;
      if (const auto kept = keeps_[stage + 1][x.index()]; kept != kNone) hazards.push_back(kept);
      for (const OpId reader : graph_.consumers(x)) {
        const std::size_t j = position_[reader.index()];
        if (j > k && j <= stage && computes_[stage][j] != kNone)
          hazards.push_back(computes_[stage][j]);
      }
      if (settings_.tight) {
        const MipTerm mine[] = {{freed, 1}, {run, -1}};
        model_.add_row(mine, {-inf, 0});
        for (const std::int32_t hazard : hazards) {
          const MipTerm each[] = {{freed, 1}, {hazard, 1}};
          model_.add_row(each, {-inf, 1});
        }
      } else {
        // hazards = (1 - R) + S + sum R; 1 - FREE <= hazards <= kappa (1 - FREE)
        const double kappa = 1 + static_cast<double>(hazards.size());
        std::vector<MipTerm> low = {{freed, 1}, {run, -1}}, high = {{freed, kappa}, {run, -1}};
        for (const std::int32_t hazard : hazards) {
          low.push_back({hazard, 1});
          high.push_back({hazard, 1});
        }
        model_.add_row(low, {0, inf});
        model_.add_row(high, {-inf, kappa - 1});
      }
      change.push_back({freed, -units(graph_.bytes(x))});
    }
  }
}

void Program::start(std::span<const OpId> sequence) {
  // For each tensor the stages in which it is made and read, and so over which it is kept.
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
  const double ticks = std::floor(objective * ticks_unit_ * (1 - 1e-9));
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
    // What is to be kept and is not there is made; then, from the last to the first, what that
    // reads.
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

}  // namespace lowtide::checkmate
