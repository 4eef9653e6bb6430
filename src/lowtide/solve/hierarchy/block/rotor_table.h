// The table of the dynamic program over a chain. Private to rotor; see rotor.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/hierarchy/block/chain_view.h"

namespace lowtide::solve::hierarchy {

class RotorTable {
 public:
  // Memory up to `most`, in this number of slots, or in units of the greatest common divisor of all
  // sizes if that takes no more slots. `has_rest`: whether a node of its own follows the last
  // stage. If the limits stop the constructor, the table is incomplete and must not be used.
  RotorTable(const ChainView& chain, bool has_rest, Bytes most, std::size_t slots, Limits& limits);

  std::size_t slots() const { return slots_; }
  // Whether ranges of any length may be recomputed. With fewer slots they may be longer.
  bool is_whole() const { return band_ >= full_; }
  std::size_t slots_of(Bytes bytes) const;  // rounded down, at most all
  // The fastest steps within this number of slots, of which `held` may be held at `rest`; nullopt
  // if there are none.
  std::optional<std::vector<LevelStep>> steps(std::size_t slots, std::size_t held, std::size_t rest,
                                              Limits& limits);

 private:
  // A range of stages. `owns`: the border before `from` counts here, and is freed when it is not
  // needed; otherwise the caller holds it anyway. `given`: the border after `to` exists and counts
  // here, until the backward of `to` has run.
  struct Cell {
    std::size_t from, to;
    bool owns, given = false;
  };
  struct Choice {
    std::size_t until = 0;  // pass the stages before this one; or 0
    std::size_t option = 0;
    bool holds = false;  // the border after the passed stages
  };
  struct Way {
    Choice choice;
    std::size_t need;  // slots
    float time;
    const float *left = nullptr, *right = nullptr;
    std::size_t shift = 0;
  };

  // The most stages of a cell, by the memory of the table and the work left.
  std::size_t longest(std::int64_t work_left) const;
  std::size_t last() const { return full_; }
  std::size_t up(Bytes bytes) const;  // to slots, rounded up
  void count_slots();
  std::size_t number(const Cell& cell) const;
  float* row(const Cell& cell);
  std::uint32_t& fewest(const Cell& cell);
  // Whether the forward of the first stage must run. Not for a last stage that has run before, if
  // its backward needs no missing tensor of the forward.
  bool runs_forward(const Cell& cell, const StageOption& option) const {
    return cell.from < cell.to || cell.to == last() ||
           (cell.given ? option.needs_inside : option.needs_forward);
  }
  // Calls use(way) for each way to process the stages of a cell. With `need` slots or more, a way
  // takes `time` plus the time of `left` with `shift` fewer slots plus that of `right`.
  template <class Use>
  void for_ways(const Cell& cell, Use use);
  void fill(std::size_t from, std::size_t to);
  void fill(const Cell& cell);
  bool tell(Limits& limits);  // charges the work; returns whether to stop
  void fill_last(std::size_t needed_at_turn, Limits& limits);
  void emit(const Cell& cell, std::size_t slots, std::vector<LevelStep>& steps);

  const ChainView& chain_;
  bool has_rest_;
  std::size_t stages_, slots_, rest_ = 0;
  std::size_t full_ = 0, band_ = 0;  // stages at which cells may end; the most stages of a cell
  std::size_t kinds_ = 2;            // of cells for the same stages; four if a border may be given
  std::int64_t unit_ = 1;
  // The figures of the chain in slots, for stages that run [again, for the first time].
  using Slots = std::array<std::uint32_t, 2>;
  struct OptionSlots {
    std::array<Slots, 2> forward, backward, held;  // without and with the border before the stage
    float forward_time, backward_time;
  };
  struct StageSlots {
    std::vector<OptionSlots> options;
    Slots pass, pass_with_border, border;
    // Slots in use beside it. lasting, in its first run: tensors of earlier stages that exist until
    // `rest`. in_use: for steps before this stage's backward.
    std::uint32_t lasting, in_use;
    float pass_time;
    bool may_pass;
    bool may_be_given = false;  // the border after it, with which its backward can begin
    bool is_held = false;       // some way to process the stage before holds the border before it
  };
  std::vector<StageSlots> sizes_;
  std::uint32_t outputs_ = 0;
  std::vector<float> table_;  // of all cells, except those that end at the last stage
  std::vector<float> last_;   // of those
  std::size_t work_ = 0;      // entries since the last charge
  std::vector<std::uint32_t> fewest_,
      fewest_last_;  // for each cell: the fewest slots with which a way exists
  std::optional<std::size_t> turn_;
};

}  // namespace lowtide::solve::hierarchy
