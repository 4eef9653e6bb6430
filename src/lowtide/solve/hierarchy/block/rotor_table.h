// The dynamic program over a chain. Private to rotor; see rotor.cpp.
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
  // Memory up to `most` in so many slots, or in bytes of their greatest common divisor where that
  // takes no more slots. `has_rest`: whether the chain turns at a node of its own behind the last
  // stage. Stops half-way, and is not to be used, if the limits say stop.
  RotorTable(const ChainView& chain, bool has_rest, Bytes most, std::size_t slots, Limits& limits);

  std::size_t slots() const { return slots_; }
  // Whether it makes runs of any length again; with fewer slots it makes longer ones.
  bool is_whole() const { return band_ >= full_; }
  std::size_t slots_of(Bytes bytes) const;  // rounded down, at most all
  // The steps that take the least time with so many slots, of which so many may be held at the
  // turn, the node `rest`; none if there are none.
  std::optional<std::vector<LevelStep>> steps(std::size_t slots, std::size_t held, std::size_t rest,
                                              Limits& limits);

 private:
  // Stages `from` to `to`. `owns`: whether the border in front of `from` counts here, and goes when
  // it is not needed; else somebody holds it anyway. `given`: the border behind `to` is there and
  // counts here, until the backward of `to` has run.
  struct Cell {
    std::size_t from, to;
    bool owns, given = false;
  };
  struct Choice {
    std::size_t until = 0;  // pass the stages before this one; or 0
    std::size_t option = 0;
    bool holds = false;  // the border behind those that are passed
  };
  struct Way {
    Choice choice;
    std::size_t need;  // slots
    float time;
    const float *left = nullptr, *right = nullptr;
    std::size_t shift = 0;
  };

  // How many stages a cell may have, for the memory that the table takes and the work left.
  std::size_t longest(std::int64_t work_left) const;
  std::size_t last() const { return full_; }
  std::size_t up(Bytes bytes) const;  // to slots, rounded up
  void count_slots();
  std::size_t number(const Cell& cell) const;
  float* row(const Cell& cell);
  std::uint32_t& fewest(const Cell& cell);
  // Not for a last stage that has run before and whose backward needs nothing that it makes and
  // that is not there.
  bool runs_forward(const Cell& cell, const StageOption& option) const {
    return cell.from < cell.to || cell.to == last() ||
           (cell.given ? option.needs_inside : option.needs_forward);
  }
  // Calls use(way) for each way to process the stages of a cell: from `need` slots on it takes
  // `time`, and what `left` takes with `shift` less, and what `right` takes.
  template <class Use>
  void for_ways(const Cell& cell, Use use);
  void fill(std::size_t from, std::size_t to);
  void fill(const Cell& cell);
  bool tell(Limits& limits);  // of the work; whether they say stop
  void fill_last(std::size_t needed_at_turn, Limits& limits);
  void emit(const Cell& cell, std::size_t slots, std::vector<LevelStep>& steps);

  const ChainView& chain_;
  bool has_rest_;
  std::size_t stages_, slots_, rest_ = 0;
  std::size_t full_ = 0, band_ = 0;  // stages that cells may end at; at most so many of one
  std::size_t kinds_ = 2;  // of cells for the same stages; four if any are given something
  std::int64_t unit_ = 1;
  // What the chain says, in slots; for stages that run [again, for the first time].
  using Slots = std::array<std::uint32_t, 2>;
  struct OptionSlots {
    std::array<Slots, 2> forward, backward, held;  // without and with the border before the stage
    float forward_time, backward_time;
  };
  struct StageSlots {
    std::vector<OptionSlots> options;
    Slots pass, pass_with_border, border;
    // In use beside it, for the first time: made by stages before that is there until the turn. And
    // for what runs while this stage's backward is to come.
    std::uint32_t lasting, in_use;
    float pass_time;
    bool may_pass;
    bool may_be_given = false;  // the border behind it, with which its backward may begin
    bool is_held = false;       // the border before it, by some way to process the stage before
  };
  std::vector<StageSlots> sizes_;
  std::uint32_t outputs_ = 0;
  std::vector<float> table_;  // of all cells but those to the last
  std::vector<float> last_;   // of those
  std::size_t work_ = 0;      // entries of rows, since the limits were told of them
  std::vector<std::uint32_t> fewest_,
      fewest_last_;  // of each cell: slots with which there is a way
  std::optional<std::size_t> turn_;
};

}  // namespace lowtide::solve::hierarchy
