// Problem: given a sequence of computations, and the tensors that are on the host between given
// uses, choose the times of their frees and fetches, so that the compute lane waits little and the
// budget is kept.
//
// Idea: a free right after the last use and a fetch right before the next use need the least
// memory, so a budget that can be kept is kept by that placement. From there one pass along the
// computations, with the clocks of the three lanes, delays every free while its copy to the host
// runs and its memory is not needed. It moves every fetch forward to the time at which the lane
// must start it, if its bytes fit from there until its use. A backward pass computes that time
// from the computations alone; where these stall, the host-to-device lane has spare time.
//
// Invariant: `needed_` is the memory at every position with all delayed frees already done.
//
// Loses: fetches do not overtake each other, so a large one that does not fit yet delays small
// ones behind it. If waiting for either of two frees would suffice, the choice is arbitrary.
// Compared with every placement of tiny cases it is optimal in three of four.
#include "lowtide/solve/sequence/placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>

#include "lowtide/solve/sequence/in_place.h"
#include "lowtide/solve/sequence/range_max.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve {

namespace {

// Positions: i is the i-th computation, their number is the end.
struct Stay {  // of a tensor on the device
  TensorId tensor;
  std::size_t from = 0, past = 0;  // needed at [from, past)
  bool kept = false;               // live at the end
};

struct Fetch {
  TensorId tensor;
  std::size_t before;  // stay that it follows; SIZE_MAX: the tensor was at home on the host
  std::size_t stay;    // that it begins
  double latest = 0;   // when the lane must begin, by the times of computations
};

// The copies out that the fetches need, as plan_from_events makes them. Bits: of the tensor as it
// is at first, as it is after an op has changed it.
constexpr std::uint8_t kAtFirst = 1, kChanged = 2;

class Placer {
 public:
  Placer(const Problem& problem, std::span<const Event> events)
      : problem_(problem),
        graph_(problem.graph),
        copies_(graph_.tensor_count(), 0),
        current_(graph_.tensor_count(), SIZE_MAX),
        out_end_(graph_.tensor_count(), 0),
        in_end_(graph_.tensor_count(), 0),
        waits_(graph_.tensor_count(), Wait::none),
        since_(graph_.tensor_count(), 0),
        needed_(std::vector<std::int64_t>{}) {
    read(events);
    measure();
  }

  std::optional<Placement> run(Limits& limits);
  // Whether a tensor stayed that the events would have had away.
  bool dropped() const { return dropped_; }

 private:
  void read(std::span<const Event> events);
  void measure();
  void copy_out(TensorId id, std::uint8_t state) {
    if ((copies_[id.index()] & state) == 0) return;
    out_ = std::max(out_, exists_) +
           static_cast<double>(
               problem_.machine->device_to_host.transfer_time(graph_.bytes(id)).count());
    out_end_[id.index()] = out_;
  }
  // What is needed at the position, with all that still waits to be freed.
  Bytes use_at(std::size_t at) const { return Bytes(needed_.largest(at, at + 1)) + waiting_; }

  // The tensor has had its last use before the position `at`. `aside`: an op that could overwrite
  // it there must not.
  void end_stay(TensorId id, std::size_t at, bool aside);
  void release(TensorId id, std::size_t at);
  void release_ended(std::size_t at);
  void make_room(std::size_t at);
  void fetch_due(std::size_t at);
  void compute(std::size_t at);

  const Problem& problem_;
  const Graph& graph_;
  std::vector<OpId> ops_;
  std::vector<double> start_;  // of each position, by the times of computations alone
  std::vector<Stay> stays_;
  std::vector<Fetch> fetches_;                  // in order of need
  std::vector<std::vector<std::size_t>> ends_;  // stays by position after which they end
  std::vector<std::uint8_t> copies_;
  std::vector<std::size_t> current_;  // stay of each tensor
  std::vector<std::uint8_t> computed_;

  // While it runs. Clocks are doubles, exact for times that are not too long.
  double device_ = 0, out_ = 0, in_ = 0, exists_ = 0;
  std::vector<double> out_end_, in_end_;  // of the last copy of each tensor
  enum class Wait : std::uint8_t { none, free, free_aside };
  std::vector<Wait> waits_;         // of tensors to be freed once their copy has ended
  std::vector<std::size_t> since_;  // the position after their last use
  using Entry = std::pair<double, TensorId>;
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::pair(a.first, a.second.index()) > std::pair(b.first, b.second.index());
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> queue_;
  Bytes waiting_;
  RangeMax needed_;
  std::size_t next_fetch_ = 0;
  bool dropped_ = false;
  std::vector<Event> events_;
};

void Placer::read(std::span<const Event> events) {
  const std::size_t computations = static_cast<std::size_t>(
      std::ranges::count_if(events, [](const Event& event) { return event.is_compute(); }));
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (const TensorId id(i); graph_.is_input(id) && !graph_.on_host(id)) {
      current_[i] = stays_.size();
      stays_.push_back({id, 0, 0});
    }
  std::vector<std::uint8_t> away(graph_.tensor_count(), 0), changed(graph_.tensor_count(), 0);
  const auto read_at = [&](TensorId id, std::size_t at) {
    std::size_t& stay = current_[id.index()];
    if (std::exchange(away[id.index()], 0) != 0) {
      fetches_.push_back({id, stay, stays_.size(), 0});
      stay = stays_.size();
      stays_.push_back({id, at, at});
    }
    stays_[stay].past = at + 1;
  };
  for (const Event& event : events) {
    if (!event.is_compute()) {
      const TensorId id = event.tensor();
      away[id.index()] = 1;
      if (changed[id.index()] != 0)
        copies_[id.index()] |= kChanged;
      else if (!graph_.on_host(id))
        copies_[id.index()] |= kAtFirst;
      continue;
    }
    const OpId op = event.op();
    const std::size_t at = ops_.size();
    ops_.push_back(op);
    for (TensorId input : graph_.inputs(op)) read_at(input, at);
    for (TensorId output : graph_.outputs(op)) {
      away[output.index()] = 0;
      current_[output.index()] = stays_.size();
      stays_.push_back({output, at, at + 1});
    }
    for (TensorId id : graph_.mutates(op)) {
      changed[id.index()] = 1;
      if (graph_.on_host(id)) copies_[id.index()] |= kChanged;
    }
  }
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i) {
    const TensorId id(i);
    const bool wanted = graph_.is_output(id) || !(graph_.freeable(id) || graph_.on_host(id)) ||
                        (graph_.stays(id) && current_[i] != SIZE_MAX);
    if (!wanted || (current_[i] == SIZE_MAX && away[i] == 0)) continue;
    read_at(id, computations);
    stays_[current_[i]].kept = true;
  }
}

void Placer::measure() {
  const std::size_t end = ops_.size();
  start_.assign(end + 1, 0);
  for (std::size_t at = 0; at < end; ++at)
    start_[at + 1] = start_[at] + static_cast<double>(graph_.time(ops_[at]).count());
  std::stable_sort(fetches_.begin(), fetches_.end(), [&](const Fetch& a, const Fetch& b) {
    return stays_[a.stay].from < stays_[b.stay].from;
  });
  double latest = start_[end];
  for (std::size_t k = fetches_.size(); k-- > 0;) {
    const Fetch& fetch = fetches_[k];
    latest = std::min(latest, start_[stays_[fetch.stay].from]);
    latest -= static_cast<double>(
        problem_.machine->host_to_device.transfer_time(graph_.bytes(fetch.tensor)).count());
    fetches_[k].latest = latest;
  }

  std::vector<std::int64_t> use(end + 2, 0);
  use[0] = graph_.resident().count();
  ends_.resize(end + 1);
  std::vector<std::size_t> past(graph_.tensor_count(), 0);
  for (std::size_t k = 0; k < stays_.size(); ++k) {
    const Stay& stay = stays_[k];
    use[stay.from] += graph_.bytes(stay.tensor).count();
    use[stay.kept ? end + 1 : stay.past] -= graph_.bytes(stay.tensor).count();
    if (!stay.kept) ends_[stay.past].push_back(k);
  }
  for (std::size_t at = 0; at <= end; ++at) use[at + 1] += use[at];
  use.pop_back();
  // What ends at a position may be overwritten there; what has a copy may have to be.
  std::vector<std::size_t> ending(graph_.tensor_count(), SIZE_MAX);
  for (std::size_t at = 0; at < end; ++at) {
    for (const std::size_t k : ends_[at + 1]) ending[stays_[k].tensor.index()] = at;
    use[at] += (graph_.workspace(ops_[at]) - overwritten_bytes(graph_, ops_[at], [&](TensorId id) {
                  return ending[id.index()] == at;
                })).count();
  }
  needed_ = RangeMax(use);
}

std::optional<Placement> Placer::run(Limits& limits) {
  const std::size_t end = ops_.size();
  computed_.assign(graph_.op_count(), 0);
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (graph_.is_input(TensorId(i))) copy_out(TensorId(i), kAtFirst);
  for (const std::size_t k : ends_[0]) end_stay(stays_[k].tensor, 0, false);
  for (std::size_t at = 0; at <= end; ++at) {
    std::size_t done = 1;
    if (at < end) done += graph_.inputs(ops_[at]).size() + graph_.outputs(ops_[at]).size();
    if (limits.spend(static_cast<std::int64_t>(done))) return std::nullopt;
    release_ended(at);
    make_room(at);
    fetch_due(at);
    if (at < end) compute(at);
  }
  while (!queue_.empty()) {
    release(queue_.top().second, end + 1);
    queue_.pop();
  }
  // What is there at the start counts, also what is freed before the first computation.
  Bytes start = graph_.resident();
  for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
    if (const TensorId id(i); graph_.is_input(id) && !graph_.on_host(id)) start += graph_.bytes(id);
  return Placement{std::move(events_),
                   std::max(start, Bytes(needed_.largest())) <= problem_.budget};
}

void Placer::end_stay(TensorId id, std::size_t at, bool aside) {
  if (out_end_[id.index()] > device_) {
    waits_[id.index()] = aside ? Wait::free_aside : Wait::free;
    since_[id.index()] = at;
    waiting_ += graph_.bytes(id);
    queue_.emplace(out_end_[id.index()], id);
  } else if (aside) {
    events_.push_back(Event::hold(id));
  }
}

void Placer::release(TensorId id, std::size_t at) {
  const Wait wait = std::exchange(waits_[id.index()], Wait::none);
  if (wait == Wait::none) return;
  waiting_ -= graph_.bytes(id);
  device_ = std::max(device_, out_end_[id.index()]);
  // Right behind its last use it is freed anyway.
  if (wait == Wait::free_aside || at != since_[id.index()]) events_.push_back(Event::hold(id));
}

void Placer::release_ended(std::size_t at) {
  while (!queue_.empty() && queue_.top().first <= device_) {
    const TensorId id = queue_.top().second;
    queue_.pop();
    release(id, at);
  }
}

void Placer::make_room(std::size_t at) {
  if (at < ops_.size())
    for (TensorId output : graph_.outputs(ops_[at])) release(output, at);
  while (!queue_.empty() && use_at(at) > problem_.budget) {
    const TensorId id = queue_.top().second;
    queue_.pop();
    release(id, at);
  }
}

void Placer::fetch_due(std::size_t at) {
  for (; next_fetch_ < fetches_.size(); ++next_fetch_) {
    const Fetch& fetch = fetches_[next_fetch_];
    const TensorId id = fetch.tensor;
    const Stay& stay = stays_[fetch.stay];
    const Bytes bytes = graph_.bytes(id);
    if (stay.from == at) {
      // Nobody has needed its bytes so far.
      if (std::exchange(waits_[id.index()], Wait::none) != Wait::none) {
        waiting_ -= bytes;
        dropped_ = true;
        continue;
      }
    } else {
      const bool away = fetch.before == SIZE_MAX || stays_[fetch.before].past <= at;
      if (!away || waits_[id.index()] != Wait::none) break;
      if (start_[at + 1] <= fetch.latest) break;
      if (use_at(at) + bytes > problem_.budget ||
          Bytes(needed_.largest(at, stay.from)) + bytes > problem_.budget)
        break;
      needed_.add(at, stay.from, bytes.count());
    }
    in_ = std::max(in_, device_) +
          static_cast<double>(problem_.machine->host_to_device.transfer_time(bytes).count());
    in_end_[id.index()] = in_;
    events_.push_back(Event::fetch(id));
  }
}

void Placer::compute(std::size_t at) {
  const OpId op = ops_[at];
  for (TensorId input : graph_.inputs(op)) device_ = std::max(device_, in_end_[input.index()]);
  if (graph_.is_barrier(op)) device_ = std::max({device_, out_, in_});
  // Which inputs end here, and which of them the op overwrites though their copies still run.
  std::vector<TensorId> ending;
  for (const std::size_t k : ends_[at + 1]) ending.push_back(stays_[k].tensor);
  const auto ends = [&](TensorId id) { return std::ranges::find(ending, id) != ending.end(); };
  std::vector<TensorId> overwritten, aside;
  TensorId served;
  for (const InPlacePair& pair : graph_.overwrites(op)) {
    if (pair.output == served || !ends(pair.input)) continue;
    const Bytes bytes = graph_.bytes(pair.output);
    const double until = out_end_[pair.input.index()];
    if (until > device_ && use_at(at) + bytes <= problem_.budget) {
      aside.push_back(pair.input);
      continue;
    }
    device_ = std::max(device_, until);
    served = pair.output;
    overwritten.push_back(pair.input);
  }
  events_.push_back(Event::compute(op));
  device_ += static_cast<double>(graph_.time(op).count());
  if (graph_.is_barrier(op)) out_ = in_ = device_;
  exists_ = device_;
  if (std::exchange(computed_[op.index()], 1) == 0)
    for (TensorId output : graph_.outputs(op)) copy_out(output, kAtFirst);
  for (TensorId changed : graph_.mutates(op)) copy_out(changed, kChanged);
  for (const TensorId id : ending)
    if (std::ranges::find(overwritten, id) == overwritten.end())
      end_stay(id, at + 1, std::ranges::find(aside, id) != aside.end());
}

}  // namespace

std::string too_long(const Problem& problem) {
  constexpr double kMostTicks = 0x1p50;
  const Graph& graph = problem.graph;
  auto time = static_cast<double>(graph.total_time().count());
  for (std::size_t i = 0; problem.machine && i < graph.tensor_count(); ++i)
    // Of one copy out and several in.
    for (const Link& link : {problem.machine->device_to_host, problem.machine->host_to_device})
      time += 4 * (static_cast<double>(link.latency.count()) +
                   static_cast<double>(graph.bytes(TensorId(i)).count()) *
                       static_cast<double>(link.ticks.count()) /
                       static_cast<double>(std::max(link.bytes, Bytes(1)).count()));
  if (time <= kMostTicks) return {};
  return "it counts time in doubles, which are exact only while the ops' times, and the copies of "
         "all tensors, add up to at most 2^50";
}

std::optional<Placement> place(const Problem& problem, std::span<const Event> events,
                               Limits& limits) {
  Placement placed{std::vector<Event>(events.begin(), events.end()), false};
  // What stayed in the end needs no copy out, which leaves the lane to others.
  for (int pass = 0; pass < 3; ++pass) {
    std::erase_if(placed.events,
                  [](const Event& event) { return event.kind == Event::Kind::hold; });
    Placer placer(problem, without_unread(problem, placed.events));
    auto next = placer.run(limits);
    if (!next) return std::nullopt;
    placed = std::move(*next);
    if (!placer.dropped()) break;
  }
  return placed;
}

Placement place(const Problem& problem, std::span<const Event> events) {
  Limits none;
  return *place(problem, events, none);
}

}  // namespace lowtide::solve
