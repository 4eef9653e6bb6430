// Times are those of the simulation, which knows when each step begins and ends on its lane.
#include "lowtide/report/lanes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include <fmt/format.h>

#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

// How long the device has computed by some time.
class Computing {
 public:
  void add(Ticks begin, Ticks end) {
    if (begin == end) return;
    spans_.push_back({begin, end, sum_});
    sum_ += end - begin;
  }
  Ticks before(Ticks time) const {
    const auto after =
        std::ranges::partition_point(spans_, [&](const Span& span) { return span.begin < time; });
    if (after == spans_.begin()) return Ticks();
    const Span& last = *std::prev(after);
    return last.before + (std::min(time, last.end) - last.begin);
  }

 private:
  struct Span {
    Ticks begin, end, before;
  };
  std::vector<Span> spans_;  // ascending
  Ticks sum_;
};

// Sums of a plan that anybody wrote: what is beyond all numbers stays at the largest.
template <class Tag>
void add(Unit<Tag>& sum, Unit<Tag> value) {
  std::int64_t whole = 0;
  sum = __builtin_add_overflow(sum.count(), value.count(), &whole) ? Unit<Tag>::max()
                                                                   : Unit<Tag>(whole);
}

Moved described(const Graph& graph, TensorId id) {
  const std::string& name = graph.tensor(id).name;
  const OpId maker = graph.producer(id);
  return {.tensor = id,
          .name = name.empty() ? graph.label(id) : name,
          .origin = maker.valid() ? graph.op(maker).origin : std::string()};
}

std::string waiting_text(const Lanes& lanes, TickUnit tick) {
  return lanes.stalled == Ticks() ? "computing never waits"
                                  : "computing waits for " + ticks_text(lanes.stalled, tick);
}

// In stretches, of which the duration has `count`.
double position(Ticks time, Ticks duration, std::size_t count) {
  const auto all = static_cast<double>(std::max<std::int64_t>(duration.count(), 1));
  return static_cast<double>(time.count()) / all * static_cast<double>(count);
}

// Adds to each stretch the part of it that lies between two times.
void cover(std::vector<double>& stretches, Ticks begin, Ticks end, Ticks duration,
           std::size_t count) {
  const double from = position(begin, duration, count), to = position(end, duration, count);
  for (auto at = static_cast<std::size_t>(from);
       at < stretches.size() && static_cast<double>(at) < to; ++at)
    stretches[at] +=
        std::min(to, static_cast<double>(at + 1)) - std::max(from, static_cast<double>(at));
}

}  // namespace

Moved moved_by(const Graph& graph, const Copy& copy) {
  return {.tensor = copy.tensor,
          .out = copy.out ? 1u : 0u,
          .in = copy.out ? 0u : 1u,
          .bytes = graph.bytes(copy.tensor),
          .time = copy.end - copy.begin,
          .hidden = copy.hidden};
}

void add_up(Moved& sum, const Moved& other) {
  sum.out += other.out;
  sum.in += other.in;
  add(sum.bytes, other.bytes);
  add(sum.time, other.time);
  add(sum.hidden, other.hidden);
}

Lanes lanes_of(const Graph& graph, const Plan& plan, const Timeline& timeline) {
  Lanes lanes;
  if (!transfers(plan) && !graph.has_network_ops()) return lanes;
  const std::size_t count = timeline.end.size();
  Computing computing;
  Ticks now;
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = plan.steps[i];
    if (!on_compute_lane(graph, step)) continue;
    const bool computes = step.is_compute();
    const Ticks waited = computes ? timeline.begin[i] : timeline.end[i];
    if (waited > now) lanes.stalls.push_back({i, now, waited});
    if (computes) computing.add(timeline.begin[i], timeline.end[i]);
    now = timeline.end[i];
  }
  if (timeline.cost.duration > now) lanes.stalls.push_back({count, now, timeline.cost.duration});
  for (const Stall& stall : lanes.stalls) lanes.stalled += stall.end - stall.begin;

  std::unordered_map<std::size_t, std::size_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = plan.steps[i];
    if (on_compute_lane(graph, step)) continue;
    const Ticks begin = timeline.begin[i], end = timeline.end[i];
    const Ticks hidden = computing.before(end) - computing.before(begin);
    if (!step.is_transfer()) {
      lanes.sent.push_back({i, step.op(), begin, end, hidden});
      add(lanes.sending, end - begin);
      add(lanes.sent_hidden, hidden);
      continue;
    }
    const bool out = step.kind == StepKind::offload;
    lanes.copies.push_back({i, step.tensor(), out, begin, end, hidden});
    const Bytes bytes = graph.bytes(step.tensor());
    add(out ? lanes.out : lanes.in, bytes);
    add(lanes.copying, end - begin);
    add(lanes.hidden, hidden);
    const TensorId tensor = step.tensor();
    const auto [place, added] = places.try_emplace(tensor.index(), lanes.moved.size());
    if (added) lanes.moved.push_back(described(graph, tensor));
    add_up(lanes.moved[place->second], moved_by(graph, lanes.copies.back()));
  }
  std::ranges::stable_sort(lanes.moved, std::greater(), &Moved::bytes);
  return lanes;
}

double hidden_share(Ticks hidden, Ticks copying) {
  return copying.count() == 0
             ? 1
             : static_cast<double>(hidden.count()) / static_cast<double>(copying.count());
}

std::string copied_text(const Lanes& lanes, TickUnit tick) {
  return fmt::format("{} out, {} in, {:.1f} % of the time hidden; {}", bytes_text(lanes.out),
                     bytes_text(lanes.in), 100 * hidden_share(lanes.hidden, lanes.copying),
                     waiting_text(lanes, tick));
}

std::string network_text(const Lanes& lanes, TickUnit tick) {
  return fmt::format(
      "{} on the network, {:.1f} % of the time hidden; {}", ticks_text(lanes.sending, tick),
      100 * hidden_share(lanes.sent_hidden, lanes.sending), waiting_text(lanes, tick));
}

std::size_t stretch_of(Ticks time, Ticks duration, std::size_t count) {
  const double place = position(time, duration, count);
  return std::min(count - 1, static_cast<std::size_t>(place));
}

std::vector<Bytes> live_by_time(const Timeline& timeline, Ticks duration, std::size_t count) {
  std::vector<Bytes> most(count, Bytes(0));
  Ticks now;
  Bytes last = timeline.start;
  std::size_t filled = 0;  // stretches
  for (std::size_t i = 0; i < timeline.live.size(); ++i) {
    last = timeline.live[i];
    const Ticks end = timeline.clock[i];
    const std::size_t to = stretch_of(end, duration, count);
    for (std::size_t at = stretch_of(now, duration, count); at <= to; ++at)
      most[at] = std::max(most[at], last);
    filled = to + 1;
    now = end;
  }
  const std::size_t end = stretch_of(timeline.cost.duration, duration, count) + 1;
  std::fill(most.begin() + static_cast<std::ptrdiff_t>(filled),
            most.begin() + static_cast<std::ptrdiff_t>(std::max(end, filled)), last);
  most.resize(std::max(end, filled));
  return most;
}

std::vector<double> computing_by_time(const Lanes& lanes, const Timeline& timeline, Ticks duration,
                                      std::size_t count) {
  std::vector<double> waiting(stretch_of(timeline.cost.duration, duration, count) + 1, 0);
  for (const Stall& stall : lanes.stalls) cover(waiting, stall.begin, stall.end, duration, count);
  for (double& share : waiting) share = std::clamp(1 - share, 0.0, 1.0);
  return waiting;
}

std::vector<double> copying_by_time(const Lanes& lanes, bool out, Ticks duration,
                                    std::size_t count) {
  std::vector<double> busy(count, 0);
  for (const Copy& copy : lanes.copies)
    if (copy.out == out) cover(busy, copy.begin, copy.end, duration, count);
  for (double& share : busy) share = std::min(share, 1.0);
  return busy;
}

std::vector<double> sending_by_time(const Lanes& lanes, Ticks duration, std::size_t count) {
  std::vector<double> busy(count, 0);
  for (const Sent& one : lanes.sent) cover(busy, one.begin, one.end, duration, count);
  for (double& share : busy) share = std::min(share, 1.0);
  return busy;
}

}  // namespace lowtide::report
