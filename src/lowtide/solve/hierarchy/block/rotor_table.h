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
  std::size_t slots_of(Bytes bytes) const;  // rounded down, at most all
  // The steps that take the least time with so many slots, of which so many may be held at the
  // turn, the node `rest`; none if there are none.
  std::optional<std::vector<LevelStep>> steps(std::size_t slots, std::size_t held, std::size_t rest,
                                              Limits& limits);

 private:
  struct Choice {
    std::size_t until = 0;  // pass so many stages; or 0
    std::size_t option = 0;
  };

  std::size_t last() const { return has_rest_ ? stages_ : stages_ - 1; }
  std::size_t up(Bytes bytes) const;  // to slots, rounded up
  void count_slots();
  // `owns`: whether the border in front of `from` counts here, and goes when it is not needed; else
  // somebody holds it anyway.
  float* cell(std::size_t from, std::size_t to, bool owns);
  // Calls use(choice, need, time, left, right, shift) for each way to process stages `from` to
  // `to`: from `need` slots on it takes `time`, and what `left` takes with `shift` less, and what
  // `right` takes.
  template <class Use>
  void for_ways(std::size_t from, std::size_t to, bool owns, Use use);
  // Not for a last stage that has run before and whose backward needs nothing that it makes.
  bool runs_forward(std::size_t from, std::size_t to, bool needs_forward) const {
    return from < to || to == last() || needs_forward;
  }
  std::size_t number(std::size_t from, std::size_t to, bool owns) const;
  std::uint32_t& fewest(std::size_t from, std::size_t to, bool owns);
  void fill(std::size_t from, std::size_t to);
  void fill(std::size_t from, std::size_t to, bool owns);
  void fill_last(std::size_t needed_at_turn, Limits& limits);
  void emit(std::size_t from, std::size_t to, bool owns, std::size_t slots,
            std::vector<LevelStep>& steps);

  const ChainView& chain_;
  bool has_rest_;
  std::size_t stages_, slots_, rest_ = 0;
  std::int64_t unit_ = 1;
  // What the chain says, in slots; for stages that run [again, for the first time].
  using Slots = std::array<std::uint32_t, 2>;
  struct OptionSlots {
    std::array<Slots, 2> forward, backward, held;  // without and with the border before the stage
    float forward_time, backward_time;
    bool needs_forward, needs_border;
  };
  struct StageSlots {
    std::vector<OptionSlots> options;
    Slots pass, pass_with_border, border;
    // In use beside it, for the first time: made by stages before that is there until the turn. And
    // for what runs while this stage's backward is to come.
    std::uint32_t lasting, in_use;
    float pass_time;
    bool may_pass;
    bool is_held = false;  // the border before it, by some option of the stage before
  };
  std::vector<StageSlots> sizes_;
  std::uint32_t outputs_ = 0;
  std::vector<float> table_;  // of all cells but those to the last
  std::vector<float> last_;   // of those
  std::vector<std::uint32_t> fewest_,
      fewest_last_;  // of each cell: slots with which there is a way
  std::optional<std::size_t> turn_;
};

}  // namespace lowtide::solve::hierarchy
