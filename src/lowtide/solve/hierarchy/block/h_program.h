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
    Bytes peak;                  // without inputs and resident bytes
    std::optional<Bytes> saved;  // at `rest`
    // Whether tensors that end inside a run are freed there; otherwise they count until its end.
    bool corrections = true;
  };

  // If the limits stop the constructor, the program is incomplete and must not be used.
  HProgram(const LevelView& view, const Settings& settings, Limits& limits);

  // The largest number of rows; the caller checks it before it makes the program.
  static std::size_t most_rows(const LevelView& view);

  const engines::MipModel& model() const { return model_; }
  // Returns false if the level has no such run.
  bool start(std::span<const LevelStep> steps);
  std::vector<LevelStep> steps(std::span<const double> values) const;
  // The time of a solution in the program.
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
  // The uses for which data are held in a phase, as sums of columns: [0] on entry, then after the
  // producer and each reader in turn.
  struct Held {
    std::vector<std::size_t> since;  // positions; the first entry of `terms` is before all of them
    std::vector<Terms> terms;
    const Terms& before(std::size_t position) const;
    const Terms& after(std::size_t position) const;
  };
  Held held(std::size_t phase, std::size_t d);
  void add_peaks(std::size_t phase, std::size_t node, std::int32_t used,
                 const std::vector<Held>& held);

  bool runs(std::size_t phase, std::size_t node) const { return !runs_[phase][node].empty(); }
  double units(Bytes bytes) const { return static_cast<double>(bytes.count()) / bytes_unit_; }
  // Adds `factor` x (the node runs in the phase): the sum over its runs.
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
  bool keeps_all_ = false;  // nothing is recomputed before `rest`
  engines::MipModel model_;
  double ticks_unit_ = 1, bytes_unit_ = 1, capacity_ = 0;
  std::vector<std::vector<std::size_t>> readers_;    // by data, ascending
  std::vector<std::size_t> last_phase_, last_kept_;  // by node; by data: the last with a column
  // Columns: by phase, node and run; by phase and data; by phase, node (a forward half) and run.
  std::vector<std::vector<Columns>> runs_;
  std::vector<Columns> kept_, borrowed_;
  std::vector<std::vector<Columns>> saved_;
};

}  // namespace lowtide::solve::hierarchy
