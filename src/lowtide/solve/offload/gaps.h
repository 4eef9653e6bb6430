// Which tensors are away, and when, so that a sequence of computations keeps a budget.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::offload {

// relief: the most time above the budget, times bytes, for a tick of transfer. farthest: that which
// is needed last (L. A. Belady, "A study of replacement algorithms", 1966).
enum class Score { relief, farthest };

class Gaps {
 public:
  // The computations must be ones that can be run in this order; the problem has a machine.
  Gaps(const Problem& problem, std::span<const OpId> sequence);

  // The most that the sequence needs at any moment without transfers, but for those of tensors
  // whose home is the host.
  Bytes peak() const { return peak_; }

  // The sequence with a fetch right before each use ahead of which a tensor is to be away, chosen
  // so that no moment needs more than the target, or as little more as it can. Tensors at home on
  // the host are fetched in any case. None if the limits stop it.
  std::optional<std::vector<Event>> choose(Bytes target, Score score, Limits& limits) const;

 private:
  struct Gap {
    TensorId tensor;
    std::size_t from, until;  // positions: away at [from, until), read at `until`
  };
  std::vector<Event> with_fetches(const std::vector<std::uint8_t>& away) const;

  const Problem& problem_;
  const Graph& graph_;
  std::vector<OpId> sequence_;
  std::vector<Gap> gaps_;          // by `from`
  std::vector<std::uint8_t> due_;  // gaps of tensors at home on the host, before their first use
  std::vector<Bytes> use_;         // at each position, the end included
  Bytes peak_;
};

}  // namespace lowtide::solve::offload
