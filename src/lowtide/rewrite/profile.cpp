#include "lowtide/rewrite/profile.h"

#include <algorithm>

namespace lowtide::rewrite {

namespace {

// The bytes that a link moves in so many ticks, approximately.
double carried(const Link& link, double ticks) {
  return ticks * static_cast<double>(link.bytes.count()) / static_cast<double>(link.ticks.count());
}

}  // namespace

std::vector<std::size_t> Profile::fullest_by_share(std::size_t shares) const {
  std::vector<std::size_t> found;
  if (live.empty()) return found;
  found.push_back(fullest);
  for (std::size_t share = 0; share < shares; ++share) {
    const std::size_t from = live.size() * share / shares, to = live.size() * (share + 1) / shares;
    if (from == to || (from <= fullest && fullest < to)) continue;
    const auto begin = live.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = live.begin() + static_cast<std::ptrdiff_t>(to);
    found.push_back(static_cast<std::size_t>(std::max_element(begin, end) - live.begin()));
  }
  return found;
}

void sum_up(Profile& profile, std::vector<std::int64_t> extra) {
  const std::size_t places = profile.order.size();
  std::vector<Bytes> begun(places + 1), ended(places + 1);
  for (const Interval& one : profile.intervals) {
    begun[one.first] = checked_add(begun[one.first], one.bytes);
    ended[one.last + 1] = checked_add(ended[one.last + 1], one.bytes);
  }
  Bytes now(0);
  profile.live.clear();
  for (std::size_t at = 0; at < places; ++at) {
    now = checked_add(now - ended[at], begun[at]);
    profile.live.push_back(checked_add(now, Bytes(extra[at])));
    if (profile.live[at] > profile.live[profile.fullest]) profile.fullest = at;
  }
}

Profile profile_of(const Graph& graph) {
  const std::size_t places = graph.op_count();
  Profile profile{.intervals = {}, .live = {}, .order = {}, .time = graph.total_time()};
  profile.order.assign(graph.order().begin(), graph.order().end());
  std::vector<std::int64_t> extra(places, graph.resident().count());
  if (places == 0) return profile;
  std::vector<std::size_t> last(graph.tensor_count());
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    const OpId maker = graph.producer(id);
    const std::size_t first = maker.valid() ? graph.position(maker) : 0;
    std::size_t end = first;
    for (const OpId op : graph.consumers(id)) end = std::max(end, graph.position(op));
    if (graph.is_output(id) || !graph.freeable(id)) end = places - 1;
    last[id.index()] = end;
    profile.intervals.push_back({.first = first,
                                 .last = end,
                                 .bytes = graph.bytes(id),
                                 .again = maker.valid() ? graph.time(maker) : Ticks(0),
                                 .may_go = maker.valid() && graph.recomputable(maker),
                                 .tensor = id});
  }
  for (std::size_t at = 0; at < places; ++at) {
    const OpId op = profile.order[at];
    extra[at] += graph.workspace(op).count();
    TensorId over;
    for (const InPlacePair& pair : graph.overwrites(op)) {
      if (pair.output == over || last[pair.input.index()] != at) continue;
      over = pair.output;
      extra[at] -= graph.bytes(pair.output).count();
    }
  }
  sum_up(profile, std::move(extra));
  return profile;
}

Shortfall shortfall(const Graph& graph, const Profile& profile, Bytes budget,
                    const std::optional<Machine>& machine) {
  constexpr std::size_t kPlaces = 8;
  constexpr double kLinkShare =
      0.5;  // share of the link that is usable: not all tensors exist in time
  Shortfall worst{Ticks(0), Bytes(0)};
  for (const std::size_t at : profile.fullest_by_share(kPlaces)) {
    auto over = static_cast<double>((profile.live[at] - budget).count());
    if (over <= 0) continue;
    const OpId op = profile.order[at];
    std::vector<const Interval*> may_go;
    double all = 0;
    for (const Interval& one : profile.intervals) {
      const auto touches = [&](std::span<const TensorId> list) {
        return std::ranges::find(list, one.tensor) != list.end();
      };
      if (one.first > at || one.last < at || !one.may_go || one.bytes == Bytes(0) ||
          touches(graph.inputs(op)) || touches(graph.outputs(op)))
        continue;
      may_go.push_back(&one);
      all += static_cast<double>(one.bytes.count());
    }
    if (machine) {
      const double time = static_cast<double>(profile.time.count());
      const double before =
          time * static_cast<double>(at) / static_cast<double>(profile.live.size());
      over -= kLinkShare * std::min({all, carried(machine->device_to_host, before),
                                     carried(machine->host_to_device, time - before)});
    }
    std::ranges::sort(may_go, std::less{}, [](const Interval* one) {
      return static_cast<double>(one->again.count()) / static_cast<double>(one->bytes.count());
    });
    double again = 0;
    for (const Interval* one : may_go) {
      if (over <= 0) break;
      const auto bytes = static_cast<double>(one->bytes.count());
      again += static_cast<double>(one->again.count()) * std::min(1.0, over / bytes);
      over -= bytes;
    }
    worst.missing = std::max(worst.missing, Bytes(static_cast<std::int64_t>(std::max(0.0, over))));
    worst.again = std::max(worst.again, Ticks(static_cast<std::int64_t>(std::min(again, 0x1p62))));
  }
  return worst;
}

}  // namespace lowtide::rewrite
