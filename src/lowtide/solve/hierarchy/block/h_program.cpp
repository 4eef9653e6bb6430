// J. Gusak et al., "HiRemate: Hierarchical Approach for Efficient Re-materialization of Neural
// Networks", ICML 2025, appendix B. A phase for each node of the level; phase t runs node t for the
// first time and whatever it needs again before.
//
// R_{t,k,r}: phase t runs node k in way r. P_{t,d}: data d are there when phase t begins.
// S_{t,j,r}: what forward half j saves in way r is there when phase t begins (the paper's phantom).
//   sum_r R_{t,k,r} <= 1, and = 1 for k = t                                              (5)
//   sum over r that read d of R_{t,k,r} <= R_{t,maker} + P_{t,d}      data, by way of running
//   P_{t+1,d} <= P_{t,d} + R_{t,maker}
//   S_{t,j} + R_{t,j} - R_{t,b} <= S_{t+1,j} <= S_{t,j} + R_{t,j}     b: the backward half (7), (8)
//   R_{t,b,r} <= S_{t,j,r} + R_{t,j,r}                                                    (9)
//   in use before k + what the run takes <= peak, in use at `rest` <= saved
// A run that passes is a forward half with nothing saved; a way that has nothing to save is no
// other, and its backward half needs no forward one.
//
// In place of the paper's A, C and D: H_{t,d,k} says that data d are held in phase t up to reader
// k. H >= R of a reader, H >= the next H, the last H >= P_{t+1,d}. This relaxation is tighter, and
// only R must be an integer: for integral R the least P, S and H are integral.
//
// Rows that some optimum satisfies: a node does not run while one of its results is held or saved;
// data are kept into a phase only if the phase reads them or keeps them further; a node is
// recomputed only if one of its results is read or kept. Variables that no later phase can use have
// no column. If all results of forward nodes fit at once, none of them is recomputed before `rest`.
//
// From `rest` on, the surroundings hold the data that `rest` reads. B_{t,d}: their copy is read in
// phase t or later; not after the producer has run again.
#include "lowtide/solve/hierarchy/block/h_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lowtide::solve::hierarchy {

namespace {

constexpr double kScale = 1e4;       // of both sides of rows, so that tolerances mean little
constexpr double kTolerance = 1e-6;  // of HiGHS, relative
constexpr double kInf = engines::MipModel::kInfinity;

}  // namespace

HProgram::HProgram(const LevelView& view, const Settings& settings, Limits& limits)
    : view_(view), settings_(settings), nodes_(view.node_count()), readers_(view.data().size()) {
  Ticks once;
  Bytes largest = settings.peak, all, most;
  for (std::size_t k = 0; k < nodes_; ++k) {
    once += view.runs(k).front().time;
    for (const NodeRun& run : view.runs(k)) {
      largest = std::max(largest, run.peak());
      for (const std::size_t d : run.reads)
        if (readers_[d].empty() || readers_[d].back() != k) readers_[d].push_back(k);
    }
    if (k >= view.rest()) continue;
    Bytes saved;
    for (const NodeRun& run : view.runs(k)) {
      saved = std::max(saved, run.saved);
      most = std::max(most, run.peak());
    }
    if (view.partner(k) != kNoNode) all += saved;
    for (const std::size_t d : view.makes(k)) all += view.data()[d].bytes;
  }
  ticks_unit_ = std::max(1.0, static_cast<double>(once.count()) / kScale);
  bytes_unit_ = std::max(1.0, std::fabs(static_cast<double>(settings.peak.count())) / kScale);
  // HiGHS is not to refuse what keeps to the byte; what it finds is priced anyway.
  capacity_ = units(settings.peak) + kTolerance * units(largest);
  keeps_all_ = view.rest() != kNoNode && all + most <= settings.peak;
  find_spans();
  add_runs();
  add_kept();
  for (std::size_t phase = 0; phase < nodes_; ++phase) {
    const std::size_t entries = model_.entry_count();
    add_reads(phase);
    add_saved(phase);
    add_habits(phase);
    add_memory(phase);
    if (limits.spend(static_cast<std::int64_t>(model_.entry_count() - entries) / 8 + 1)) return;
  }
}

std::size_t HProgram::most_rows(const LevelView& view) {
  std::size_t reads = 0, ways = 0;
  for (std::size_t k = 0; k < view.node_count(); ++k)
    for (const NodeRun& run : view.runs(k)) {
      reads += run.reads.size();
      ways += run.moments.size();
    }
  // Half of all phases for each; several rows for what is read, kept and held.
  return view.node_count() * (2 * reads + 2 * ways + 2 * view.data().size() + view.node_count()) /
         2;
}

void HProgram::find_spans() {
  last_phase_.assign(nodes_, 0);
  last_kept_.assign(view_.data().size(), 0);
  const auto last_of = [&](std::size_t d) {
    std::size_t last = 0;
    for (const std::size_t reader : readers_[d]) last = std::max(last, last_phase_[reader]);
    return view_.data()[d].kept ? nodes_ - 1 : last;
  };
  for (std::size_t k = nodes_; k > 0; --k) {
    const std::size_t node = k - 1;
    std::size_t last = node;
    for (const std::size_t d : view_.makes(node)) last = std::max(last, last_of(d));
    if (const std::size_t b = view_.partner(node); b != kNoNode && b > node)
      last = std::max(last, last_phase_[b]);
    last_phase_[node] = view_.recomputable(node) ? last : node;
  }
  for (std::size_t d = 0; d < last_kept_.size(); ++d)
    last_kept_[d] = view_.data()[d].kept ? nodes_ : last_of(d);
}

void HProgram::add_runs() {
  runs_.assign(nodes_, std::vector<Columns>(nodes_));
  for (std::size_t phase = 0; phase < nodes_; ++phase)
    for (std::size_t node = 0; node <= phase; ++node) {
      if (phase > last_phase_[node]) continue;
      if (keeps_all_ && phase <= view_.rest() && node != phase) continue;
      const auto& ways = view_.runs(node);
      Terms one;
      for (const NodeRun& way : ways) {
        const double cost = static_cast<double>(way.time.count()) / ticks_unit_;
        const double low = node == phase && ways.size() == 1 ? 1 : 0;
        runs_[phase][node].push_back(model_.add_column(cost, {low, 1}, true));
        one.push_back({runs_[phase][node].back(), 1});
      }
      if (ways.size() > 1) model_.add_row(one, {node == phase ? 1.0 : 0.0, 1});
    }
}

void HProgram::add_run(Terms& terms, std::size_t phase, std::size_t node, double factor) const {
  for (const std::int32_t column : runs_[phase][node]) terms.push_back({column, factor});
}

void HProgram::add_reading(Terms& terms, std::size_t phase, std::size_t node, std::size_t d,
                           double factor) const {
  const auto& ways = view_.runs(node);
  for (std::size_t r = 0; r < runs_[phase][node].size(); ++r)
    if (std::ranges::binary_search(ways[r].reads, d))
      terms.push_back({runs_[phase][node][r], factor});
}

void HProgram::add_kept() {
  const auto& data = view_.data();
  const std::size_t rest = view_.rest();
  kept_.assign(nodes_ + 1, Columns(data.size(), kNone));
  borrowed_ = kept_;
  for (std::size_t d = 0; d < data.size(); ++d) {
    const std::size_t maker = data[d].maker;
    for (std::size_t phase = maker + 1; phase <= last_kept_[d]; ++phase) {
      if (data[d].given && !data[d].kept && phase == rest + 1) continue;
      kept_[phase][d] = model_.add_column(0, {phase == nodes_ ? 1.0 : 0.0, 1}, false);
      Terms terms = {{kept_[phase][d], 1}};
      add(terms, kept_[phase - 1][d], -1);
      add_run(terms, phase - 1, maker, -1);
      at_most(terms, 0);
    }
    if (!data[d].given || data[d].kept) continue;
    for (std::size_t phase = rest + 1; phase < nodes_ && phase <= last_kept_[d]; ++phase) {
      borrowed_[phase][d] = model_.add_column(0, {0, 1}, false);
      Terms once = {{borrowed_[phase][d], 1}};
      add(once, kept_[phase][d], 1);
      add_run(once, phase, maker, 1);
      at_most(once, 1);
      if (phase == rest + 1) continue;
      const engines::MipTerm stays[] = {{borrowed_[phase][d], 1}, {borrowed_[phase - 1][d], -1}};
      model_.add_row(stays, {-kInf, 0});
    }
  }
  saved_.assign(nodes_ + 1, std::vector<Columns>(nodes_));
  for (std::size_t j = 0; j < nodes_; ++j) {
    const std::size_t b = view_.partner(j);
    if (b == kNoNode || b < j) continue;
    for (std::size_t phase = j + 1; phase <= last_phase_[b]; ++phase) {
      Terms one;
      for (const NodeRun& way : view_.runs(j)) {
        saved_[phase][j].push_back(way.passes ? kNone : model_.add_column(0, {0, 1}, false));
        add(one, saved_[phase][j].back(), 1);
      }
      if (one.size() > 1 || runs(phase, j)) {
        for (std::size_t r = 0; r < runs_[phase][j].size(); ++r)
          if (!view_.runs(j)[r].passes) one.push_back({runs_[phase][j][r], 1});
        if (one.size() > 1) at_most(one, 1);
      }
    }
  }
}

void HProgram::add_reads(std::size_t phase) {
  for (std::size_t d = 0; d < readers_.size(); ++d)
    for (const std::size_t node : readers_[d]) {
      if (!runs(phase, node)) continue;
      Terms terms;
      add_reading(terms, phase, node, d, 1);
      add_run(terms, phase, view_.data()[d].maker, -1);
      add(terms, kept_[phase][d], -1);
      add(terms, borrowed_[phase][d], -1);
      at_most(terms, 0);
    }
}

void HProgram::add_saved(std::size_t phase) {
  for (std::size_t j = 0; j <= phase; ++j) {
    const std::size_t b = view_.partner(j);
    if (b == kNoNode || b < j || phase > last_phase_[b]) continue;
    for (std::size_t r = 0; r < view_.runs(j).size(); ++r) {
      const NodeRun& way = view_.runs(j)[r];
      if (way.passes) continue;
      Terms there;  // before the backward half
      if (!saved_[phase][j].empty()) add(there, saved_[phase][j][r], 1);
      if (runs(phase, j)) add(there, runs_[phase][j][r], 1);
      std::int32_t undone = kNone;
      const auto& backward = view_.runs(b);
      for (std::size_t i = 0; i < runs_[phase][b].size(); ++i)
        if (backward[i].option == way.option) undone = runs_[phase][b][i];
      const std::int32_t after = saved_[phase + 1][j].empty() ? kNone : saved_[phase + 1][j][r];
      if (there.empty() && after == kNone && undone == kNone) continue;
      for (const std::int32_t column : {after, undone}) {  // (7), (9)
        if (column == kNone) continue;
        Terms made = {{column, 1}};
        for (const engines::MipTerm& term : there) made.push_back({term.column, -1});
        at_most(made, 0);
      }
      add(there, undone, -1);  // (8)
      add(there, after, -1);
      at_most(there, 0);
    }
  }
}

void HProgram::add_habits(std::size_t phase) {
  const auto add_uses = [&](std::size_t d, Terms& terms) {
    for (const std::size_t reader : readers_[d]) add_reading(terms, phase, reader, d, -1);
    add(terms, kept_[phase + 1][d], -1);
  };
  for (std::size_t d = 0; d < readers_.size(); ++d) {
    if (kept_[phase][d] == kNone) continue;
    Terms terms = {{kept_[phase][d], 1}};
    add_uses(d, terms);
    at_most(terms, 0);
  }
  for (std::size_t node = 0; node < phase; ++node) {
    if (!runs(phase, node)) continue;
    Terms useful;
    const std::size_t partner = view_.partner(node);
    const bool saves = partner != kNoNode && partner > node;
    for (std::size_t r = 0; r < runs_[phase][node].size(); ++r)
      if (!saves || view_.runs(node)[r].passes) useful.push_back({runs_[phase][node][r], 1});
    for (const std::size_t d : view_.makes(node)) {
      add_uses(d, useful);
      if (kept_[phase][d] == kNone) continue;
      Terms either = {{kept_[phase][d], 1}};
      add_run(either, phase, node, 1);
      at_most(either, 1);
    }
    // A reader may read several data of one run; it counts once.
    std::ranges::sort(useful, {}, [](const engines::MipTerm& term) { return term.column; });
    const auto again = std::ranges::unique(useful, {}, &engines::MipTerm::column);
    useful.erase(again.begin(), again.end());
    at_most(useful, 0);
  }
}

const HProgram::Terms& HProgram::Held::before(std::size_t position) const {
  std::size_t i = 0;
  while (i < since.size() && since[i] < position) ++i;
  return terms[i];
}

const HProgram::Terms& HProgram::Held::after(std::size_t position) const {
  return before(position + 1);
}

std::int32_t HProgram::add_held(Terms least) {
  const std::int32_t column = model_.add_column(0, {0, 1}, false);
  least.push_back({column, -1});
  at_most(least, 0);
  return column;
}

HProgram::Held HProgram::held(std::size_t phase, std::size_t d) {
  const LevelData& data = view_.data()[d];
  const std::int32_t come = kept_[phase][d], stays = kept_[phase + 1][d];
  const std::int32_t borrowed = borrowed_[phase][d];
  Held result;
  std::vector<std::size_t> readers;
  for (const std::size_t node : readers_[d]) {
    Terms reads;
    add_reading(reads, phase, node, d, 1);
    if (!reads.empty()) readers.push_back(node);
  }
  // From the last use to the first: what it is held for after each position.
  std::vector<Terms> later(1);
  add(later.back(), stays, 1);
  for (std::size_t i = readers.size(); i > 0; --i) {
    Terms reads;
    add_reading(reads, phase, readers[i - 1], d, 1);
    if (later.back().empty() && borrowed == kNone) {
      later.push_back(std::move(reads));
      continue;
    }
    add(reads, borrowed, -1);
    const std::int32_t both = add_held(reads);
    Terms next = later.back();
    if (!next.empty()) {
      next.push_back({both, -1});
      at_most(next, 0);
    }
    later.push_back({{both, 1}});
  }
  if (come != kNone && !readers.empty()) {
    Terms used = {{come, 1}};
    for (const engines::MipTerm& term : later.back())
      used.push_back({term.column, -term.coefficient});
    at_most(used, 0);
  }
  result.terms.emplace_back();
  add(result.terms.back(), come, 1);
  result.since.push_back(data.maker);
  result.terms.push_back(later.back());
  for (std::size_t i = 0; i < readers.size(); ++i) {
    result.since.push_back(readers[i]);
    result.terms.push_back(later[readers.size() - 1 - i]);
  }
  return result;
}

void HProgram::add_memory(std::size_t phase) {
  const auto& data = view_.data();
  std::vector<Terms> changes(phase + 2);
  const auto change = [&](std::size_t at, const Terms& terms, double bytes) {
    for (const engines::MipTerm& term : terms)
      changes[at].push_back({term.column, bytes * term.coefficient});
  };
  std::vector<Held> all(data.size());
  for (std::size_t d = 0; d < data.size(); ++d) {
    const std::size_t maker = data[d].maker;
    if (maker > phase) continue;
    if (!runs(phase, maker) && kept_[phase][d] == kNone) continue;
    all[d] = held(phase, d);
    const double bytes = units(data[d].bytes);
    change(0, all[d].terms.front(), bytes);
    for (std::size_t i = 0; i < all[d].since.size(); ++i) {
      change(all[d].since[i] + 1, all[d].terms[i], -bytes);
      change(all[d].since[i] + 1, all[d].terms[i + 1], bytes);
    }
  }
  for (std::size_t j = 0; j <= phase; ++j) {
    const std::size_t b = view_.partner(j);
    if (b == kNoNode || b < j) continue;
    for (std::size_t r = 0; r < view_.runs(j).size(); ++r) {
      if (view_.runs(j)[r].passes) continue;
      const double bytes = units(view_.runs(j)[r].saved);
      Terms come, made, after;
      if (!saved_[phase][j].empty()) add(come, saved_[phase][j][r], 1);
      if (runs(phase, j)) add(made, runs_[phase][j][r], 1);
      if (!saved_[phase + 1][j].empty()) add(after, saved_[phase + 1][j][r], 1);
      change(0, come, bytes);
      change(j + 1, made, bytes);
      if (b > phase) continue;
      change(b + 1, come, -bytes);
      change(b + 1, made, -bytes);
      change(b + 1, after, bytes);
    }
  }
  Bytes given;
  for (const LevelData& it : data)
    if (it.given) given += it.bytes;
  Terms terms;  // of what has changed since the node before
  std::int32_t before = kNone;
  for (std::size_t node = 0; node <= phase; ++node) {
    terms.insert(terms.end(), changes[node].begin(), changes[node].end());
    if (!runs(phase, node)) continue;
    double most = capacity_;
    if (node == view_.rest()) {
      most = kInf;
      if (settings_.saved)
        most = units(*settings_.saved + given) + kTolerance * units(settings_.peak);
    }
    const std::int32_t used = model_.add_column(0, {0, std::max(0.0, most)}, false);
    add(terms, before, 1);
    terms.push_back({used, -1});
    model_.add_row(terms, {0, 0});
    terms.clear();
    before = used;
    if (node != view_.rest()) add_peaks(phase, node, used, all);
  }
}

void HProgram::add_peaks(std::size_t phase, std::size_t node, std::int32_t used,
                         const std::vector<Held>& held) {
  const auto& ways = view_.runs(node);
  Terms plain = {{used, 1}};
  for (std::size_t r = 0; r < ways.size(); ++r) {
    const std::int32_t run = runs_[phase][node][r];
    if (!settings_.corrections) {
      plain.push_back({run, units(ways[r].peak())});
      continue;
    }
    for (const NodeRun::Moment& moment : ways[r].moments) {
      if (moment.ended.empty() && moment.unneeded.empty()) {
        plain.push_back({run, units(moment.bytes)});
        continue;
      }
      Terms terms = {{used, 1}, {run, units(moment.bytes)}};
      const auto end = [&](const Terms& of, double factor, std::size_t d) {
        for (const engines::MipTerm& term : of)
          terms.push_back({term.column, factor * term.coefficient * units(view_.data()[d].bytes)});
      };
      for (const std::size_t d : moment.ended) {
        if (held[d].terms.empty()) continue;
        end(held[d].before(node), -1, d);
        end(held[d].after(node), 1, d);
      }
      for (const std::size_t d : moment.unneeded) {
        if (held[d].terms.empty()) continue;
        Terms made;
        add_run(made, phase, node, 1);
        end(made, -1, d);
        end(held[d].before(node), -1, d);
        end(held[d].after(node), 1, d);
      }
      at_most(terms, capacity_);
    }
  }
  at_most(plain, capacity_);
}

bool HProgram::start(std::span<const LevelStep> steps) {
  model_.clear_start();
  std::vector<std::vector<std::vector<std::uint8_t>>> chosen(nodes_);
  for (std::size_t phase = 0; phase < nodes_; ++phase)
    for (std::size_t node = 0; node < nodes_; ++node)
      chosen[phase].emplace_back(runs_[phase][node].size(), 0);
  std::size_t phase = 0;
  for (const auto& [node, run] : view_.runs_of(steps)) {
    if (phase >= nodes_ || run == kNoNode || run >= chosen[phase][node].size()) return false;
    std::ranges::fill(chosen[phase][node], std::uint8_t{0});
    chosen[phase][node][run] = 1;
    if (node == phase) ++phase;
  }
  if (phase < nodes_) return false;
  for (std::size_t t = 0; t < nodes_; ++t)
    for (std::size_t node = 0; node <= t; ++node)
      for (std::size_t r = 0; r < runs_[t][node].size(); ++r)
        model_.add_start(runs_[t][node][r], chosen[t][node][r]);
  return true;
}

std::vector<LevelStep> HProgram::steps(std::span<const double> values) const {
  std::vector<LevelStep> steps;
  for (std::size_t phase = 0; phase < nodes_; ++phase)
    for (std::size_t node = 0; node <= phase; ++node)
      for (std::size_t r = 0; r < runs_[phase][node].size(); ++r)
        if (values[static_cast<std::size_t>(runs_[phase][node][r])] > 0.5)
          steps.push_back({node, view_.runs(node)[r].option});
  return steps;
}

Ticks HProgram::time(std::span<const double> values) const {
  Ticks sum;
  for (std::size_t phase = 0; phase < nodes_; ++phase)
    for (std::size_t node = 0; node <= phase; ++node)
      for (std::size_t r = 0; r < runs_[phase][node].size(); ++r)
        if (values[static_cast<std::size_t>(runs_[phase][node][r])] > 0.5)
          sum += view_.runs(node)[r].time;
  return sum;
}

}  // namespace lowtide::solve::hierarchy
