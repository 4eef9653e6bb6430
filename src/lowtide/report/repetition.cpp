#include "lowtide/report/repetition.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "lowtide/graph/repeats.h"

namespace lowtide::report {

namespace {

constexpr RepeatSettings kSettings{.most = 10, .least_share = 0.01};

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view origin) {
  Parts parts;
  for (std::size_t from = 0; from < origin.size();) {
    const std::size_t end = std::min(origin.find_first_of("./", from), origin.size());
    parts.push_back(origin.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

// The common prefix of the ops' origins; ops without an origin do not count.
Parts shared_origin(const Graph& graph, std::span<const OpId> ops) {
  Parts shared;
  bool first = true;
  for (const OpId op : ops) {
    if (graph.op(op).origin.empty()) continue;
    const Parts parts = parts_of(graph.op(op).origin);
    if (first) shared = parts;
    first = false;
    const auto [mine, theirs] = std::ranges::mismatch(shared, parts);
    shared.erase(mine, shared.end());
  }
  return shared;
}

// Parts in which the blocks differ become '*', as long as there are as many of them.
std::string where(const Graph& graph, const RepeatedBlock& block) {
  Parts common = shared_origin(graph, block.places.front());
  for (const auto& ops : block.places) {
    const Parts parts = shared_origin(graph, ops);
    common.resize(std::min(common.size(), parts.size()));
    for (std::size_t i = 0; i < common.size(); ++i)
      if (common[i] != parts[i]) common[i] = "*";
  }
  std::string text;
  for (const std::string_view part : common) (text += text.empty() ? "" : ".") += part;
  if (!text.empty() && !std::ranges::all_of(common, [](auto part) { return part == "*"; }))
    return text;
  const auto position = [&](OpId op) { return graph.position(op); };
  return "from " + graph.label(std::ranges::min(block.places.front(), {}, position));
}

std::string phase(const Graph& graph, const RepeatedBlock& block) {
  const std::string& first = graph.op(block.places.front().front()).phase;
  for (const auto& ops : block.places)
    for (const OpId op : ops)
      if (graph.op(op).phase != first) return {};
  return first;
}

}  // namespace

std::vector<Repetition> repetitions(const Graph& graph) {
  std::vector<Repetition> found;
  for (const RepeatedBlock& block : repeated_blocks(graph, kSettings))
    found.push_back({.times = block.places.size(),
                     .ops = block.ops(),
                     .share_of_ops = ratio(static_cast<std::int64_t>(block.covered()),
                                           static_cast<std::int64_t>(graph.op_count())),
                     .share_of_time = ratio(block.time.count(), graph.total_time().count()),
                     .phase = phase(graph, block),
                     .where = where(graph, block)});
  return found;
}

}  // namespace lowtide::report
