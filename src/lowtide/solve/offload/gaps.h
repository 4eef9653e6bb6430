// Selects the tensors to offload, and when, so that a sequence of computations keeps a budget.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::offload {

// relief: most time above the budget, times bytes, per tick of transfer. farthest: the tensor with
// the farthest next use (L. A. Belady, "A study of replacement algorithms", 1966).
enum class Score { relief, farthest };

class Gaps {
 public:
  // The computations must be legal in this order; the problem has a machine.
  Gaps(const Problem& problem, std::span<const OpId> sequence);

  // The peak of the sequence without transfers, except for those of tensors at home on the host.
  Bytes peak() const { return peak_; }

  // The sequence with a fetch right before each use before which a tensor is offloaded, chosen such
  // that the peak is at most the target, or as near to it as possible. Tensors at home on the host
  // are fetched in any case. nullopt if the limits stop it.
  std::optional<std::vector<Event>> choose(Bytes target, Score score, Limits& limits) const;

 private:
  struct Gap {
    TensorId tensor;
    std::size_t from, until;  // positions: offloaded in [from, until), read at `until`
  };
  std::vector<Event> with_fetches(const std::vector<std::uint8_t>& away) const;

  const Problem& problem_;
  const Graph& graph_;
  std::vector<OpId> sequence_;
  std::vector<Gap> gaps_;          // by `from`
  std::vector<std::uint8_t> due_;  // gaps of tensors at home on the host, before their first use
  std::vector<Bytes> use_;         // at each position, with the end
  Bytes peak_;
};

}  // namespace lowtide::solve::offload
