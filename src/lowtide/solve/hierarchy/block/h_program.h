// The integer program of a level. Private to h_ilp; see h_program.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/engines/mip_model.h"
#include "lowtide/solve/hierarchy/block/level_view.h"

namespace lowtide::solve::hierarchy {

class HProgram {
 public:
  struct Settings {
    Bytes peak;                  // inputs and what is resident apart
    std::optional<Bytes> saved;  // at `rest`
    bool corrections = true;     // for what ends inside a run; else it counts until the run's end
  };

  // Stops half-way, and is not to be used, if the limits say stop.
  HProgram(const LevelView& view, const Settings& settings, Limits& limits);

  // How many rows there can be: what is too large is better not made.
  static std::size_t most_rows(const LevelView& view);

  const engines::MipModel& model() const { return model_; }
  // False if the level has left out one of the runs.
  bool start(std::span<const LevelStep> steps);
  std::vector<LevelStep> steps(std::span<const double> values) const;
  // Of a solution, as the program counts it.
  Ticks time(std::span<const double> values) const;

 private:
  static constexpr std::int32_t kNone = -1;
  using Terms = std::vector<engines::MipTerm>;
  using Columns = std::vector<std::int32_t>;

  void find_spans();
  void add_runs();
  void add_kept();
  void add_reads(std::size_t phase);
  void add_saved(std::size_t phase);
  void add_habits(std::size_t phase);
  void add_memory(std::size_t phase);
  std::int32_t add_held(Terms least);
  // Up to when data are in use in a phase: [0] what comes in from the phase before, then after the
  // maker and each reader in turn; as sums of columns.
  struct Held {
    std::vector<std::size_t> since;  // positions; the first entry of `terms` is before all
    std::vector<Terms> terms;
    const Terms& before(std::size_t position) const;
    const Terms& after(std::size_t position) const;
  };
  Held held(std::size_t phase, std::size_t d);
  void add_peaks(std::size_t phase, std::size_t node, std::int32_t used,
                 const std::vector<Held>& held);

  bool runs(std::size_t phase, std::size_t node) const { return !runs_[phase][node].empty(); }
  double units(Bytes bytes) const { return static_cast<double>(bytes.count()) / bytes_unit_; }
  // Adds `factor` times whether the node runs in the phase; as what passes and what saves, or one.
  void add_run(Terms& terms, std::size_t phase, std::size_t node, double factor) const;
  void add_reading(Terms& terms, std::size_t phase, std::size_t node, std::size_t d,
                   double factor) const;
  static void add(Terms& terms, std::int32_t column, double factor) {
    if (column != kNone) terms.push_back({column, factor});
  }
  void at_most(const Terms& terms, double high) {
    model_.add_row(terms, {-engines::MipModel::kInfinity, high});
  }

  const LevelView& view_;
  Settings settings_;
  std::size_t nodes_;
  bool keeps_all_ = false;  // nothing runs again before `rest`
  engines::MipModel model_;
  double ticks_unit_ = 1, bytes_unit_ = 1, capacity_ = 0;
  std::vector<std::vector<std::size_t>> readers_;    // of each of the data, ascending
  std::vector<std::size_t> last_phase_, last_kept_;  // of nodes; of data: the last begin
  // By phase and node and run; by phase and data; by phase, node (a forward half) and run.
  std::vector<std::vector<Columns>> runs_;
  std::vector<Columns> kept_, borrowed_;
  std::vector<std::vector<Columns>> saved_;
};

}  // namespace lowtide::solve::hierarchy
