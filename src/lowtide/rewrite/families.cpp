// Selects the axes to follow. The batch reaches a network from its inputs; large tensors in the
// middle (logits over tokens) may have axes that the inputs do not have.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

#include "lowtide/rewrite/candidate.h"

namespace lowtide::rewrite {

namespace {

constexpr std::size_t kInputs = 6, kLargest = 4;  // tensors

bool is_data(const Graph& graph, TensorId id) {
  return graph.is_input(id) && graph.tensor(id).role == Role::input && !graph.consumers(id).empty();
}

// Inputs in file order, then the largest tensors of each size that ops make.
std::vector<TensorId> sources(const Graph& graph) {
  std::vector<TensorId> found, made;
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    if (is_data(graph, id) && found.size() < kInputs) found.push_back(id);
    if (!graph.is_input(id) && graph.tensor(id).shape.size() > 1) made.push_back(id);
  }
  std::ranges::stable_sort(made, std::greater{}, [&](TensorId id) { return graph.bytes(id); });
  std::set<Bytes> sizes;
  for (const TensorId id : made) {
    if (sizes.size() == kLargest) break;
    if (sizes.insert(graph.bytes(id)).second) found.push_back(id);
  }
  return found;
}

}  // namespace

std::vector<Family> families(const Graph& graph, const std::function<bool()>& stops) {
  std::vector<Family> found;
  std::set<std::vector<bool>> seen;
  for (const TensorId tensor : sources(graph)) {
    const auto& shape = graph.tensor(tensor).shape;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (shape[dim] < kFewestSlices) continue;
      if (stops && stops()) return found;
      Family family{.seed = {tensor, static_cast<std::int64_t>(dim)}, .reach = {}};
      if (!dimensions::find_axis(graph, family.seed)) continue;
      family.reach = dimensions::follow(graph, std::span(&family.seed, 1));
      std::vector<bool> carries;
      carries.reserve(family.reach.carries.size());
      for (const auto& carry : family.reach.carries) carries.push_back(carry.has_value());
      const auto count = std::ranges::count(carries, true);
      if (count > 1 && seen.insert(std::move(carries)).second) found.push_back(std::move(family));
    }
  }
  return found;
}

std::vector<std::int64_t> parts_for(std::int64_t slices) {
  constexpr std::int64_t kMost = 64;
  std::vector<std::int64_t> found;
  // All numbers of parts for a short axis, since one slice more or less may change the number of
  // rounds of tiles. Four numbers for each doubling of a long axis.
  const auto step = [&](std::int64_t parts) {
    const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(parts)));
    return slices <= kMost ? 1 : std::max<std::int64_t>(1, below / 4);
  };
  for (std::int64_t parts = 2; parts <= std::min(kMost, slices / 2); parts += step(parts)) {
    const std::int64_t most = (slices + parts - 1) / parts;
    // The last part has the remaining slices.
    if (slices - (parts - 1) * most >= 2) found.push_back(parts);
  }
  return found;
}

}  // namespace lowtide::rewrite
