// Problem: deduplicate and price thousands of states a second, each a graph in parts with
// recomputations and transfers.
//
// Idea: the view has one op for all parts of an op, so a state is a sequence of events on the base
// graph: ops, recomputations, fetches, and ends of regions. The latest value of a slot serves a
// use. So one pass gives the lifetime of every value, and a sum over these the memory. Transfers
// are placed in order of need, as late as they can be hidden (section 6.2). The same events define
// a graph, whose hash covers the computation of each value (downwards) and its users (upwards).
// MAGIS hashes downwards only, and so treats two states as one if other users read the copy.
//
// Loses: properties of the built graph only, such as the exact end of a transfer within a part.
#include "lowtide/solve/magis/evaluate.h"

#include <algorithm>

#include "lowtide/solve/magis/mix.h"

namespace lowtide::solve::magis {

namespace {

using Kind = StateEvent::Kind;

constexpr std::uint64_t kGiven = 11, kFetched = 13, kClosed = 17, kKept = 19;

}  // namespace

Evaluator::Evaluator(const Graph& graph) : graph_(graph), begin_(graph.op_count()) {
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    std::uint64_t label = mix(kGiven, static_cast<std::uint64_t>(graph.bytes(id).count()));
    label = mix(label, graph.freeable(id) ? 1 : 0);
    given_.push_back(mix(label, graph.is_output(id) ? 1 : 0));
  }
}

void Evaluator::make(Slot slot) {
  Instance made;
  made.slot = slot;
  made.before = now_[slot];
  made.first = made.last = events_.size() - 1;
  made.maker = static_cast<std::int32_t>(made.first);
  now_[slot] = static_cast<std::int32_t>(instances_.size());
  instances_.push_back(made);
}

void Evaluator::emit(StateEvent event, std::span<const Slot> reads) {
  event.reads = reads_.size();
  for (const Slot slot : reads) {
    reads_.push_back(now_[slot]);
    instances_[static_cast<std::size_t>(now_[slot])].last = events_.size();
  }
  events_.push_back(event);
}

void Evaluator::run(const View& view, std::span<const Action> actions) {
  events_.clear();
  reads_.clear();
  instances_.clear();
  fetches_.clear();
  stretch_.assign(view.regions.size(), {0, 0});
  now_.assign(view.tensor.size(), Instance::kNone);
  leaves_.assign(view.tensor.size(), 0);
  for (const TensorId id : AllIds<TensorId>(graph_.tensor_count())) {
    if (!graph_.is_input(id)) continue;
    Instance given;
    given.slot = static_cast<Slot>(id.index());
    now_[id.index()] = static_cast<std::int32_t>(instances_.size());
    instances_.push_back(given);
  }
  constexpr std::uint32_t kNothing = UINT32_MAX;
  std::ranges::fill(begin_, kNothing);
  for (std::size_t i = actions.size(); i-- > 0;)
    begin_[actions[i].before.index()] = static_cast<std::uint32_t>(i);
  for (std::size_t place = 0; place < view.order.size(); ++place) {
    const OpId op = view.order[place];
    const std::int32_t of = view.region[op.index()];
    if (of != View::kOutside && view.regions[static_cast<std::size_t>(of)].first == place)
      stretch_[static_cast<std::size_t>(of)].first = events_.size();
    for (std::uint32_t i = begin_[op.index()];
         i != kNothing && i < actions.size() && actions[i].before == op; ++i) {
      const Action& action = actions[i];
      if (action.kind == Action::Kind::recompute) {
        emit({Kind::again, action.index, op, i}, view.reads[action.index]);
        for (const Slot slot : view.makes[action.index]) make(slot);
      } else {
        fetches_.emplace_back(events_.size(), instances_.size());
        leaves_[action.index] = 1;
        emit({Kind::fetch, action.index, op, i}, {});
        make(action.index);
      }
    }
    emit({Kind::compute, static_cast<std::uint32_t>(op.index()), op,
          static_cast<std::uint32_t>(actions.size())},
         view.reads[op.index()]);
    for (const Slot slot : view.makes[op.index()]) make(slot);
    if (of == View::kOutside || view.regions[static_cast<std::size_t>(of)].last != place) continue;
    const RegionOfView& region = view.regions[static_cast<std::size_t>(of)];
    emit({Kind::close, static_cast<std::uint32_t>(of), op}, region.held);
    for (const auto& [part, whole] : region.joined) {
      reads_.push_back(now_[part]);
      make(whole);
    }
    stretch_[static_cast<std::size_t>(of)].second = events_.size();
  }
  StateEvent end;
  end.reads = reads_.size();
  events_.push_back(end);
  const std::size_t last = events_.size() < 2 ? 0 : events_.size() - 2;
  std::vector<Slot> outside;
  for (const TensorId id : AllIds<TensorId>(graph_.tensor_count())) {
    if (!graph_.is_output(id) && graph_.freeable(id)) continue;
    outside.push_back(static_cast<Slot>(id.index()));
  }
  for (Slot slot : outside) {
    for (const RegionOfView& region : view.regions)
      for (const auto& [part, whole] : region.joined)
        if (part == slot) slot = whole;
    instances_[static_cast<std::size_t>(now_[slot])].last = last;
  }
}

// A copy out begins as soon as its value exists, and holds the value. A copy back begins as late as
// it can be hidden. A late copy delays its reader.
double Evaluator::wait(const View& view) {
  double clock = 0;
  clock_.clear();
  for (std::size_t i = 0; i + 1 < events_.size(); ++i) {
    clock_.push_back(clock);
    const StateEvent& event = events_[i];
    if (event.kind == Kind::compute || event.kind == Kind::again)
      clock += static_cast<double>(view.time[event.index]);
    else if (event.kind == Kind::close)
      clock += static_cast<double>(view.regions[event.index].joining);
  }
  clock_.push_back(clock);
  idle_ = clock;
  if (fetches_.empty()) return clock;
  const auto at = [&](double time) {  // the last event that begins by then
    const auto next = std::ranges::upper_bound(clock_, time);
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, next - clock_.begin() - 1));
  };
  stored_.assign(view.tensor.size(), -1);
  double busy_out = 0, busy_in = 0, free = 0;
  for (Instance& one : instances_) {
    if (leaves_[one.slot] == 0 || stored_[one.slot] >= 0) continue;
    const double from =
        one.maker == Instance::kNone ? 0 : clock_[static_cast<std::size_t>(one.maker) + 1];
    free = std::max(free, from) + static_cast<double>(view.out[one.slot]);
    stored_[one.slot] = free;
    busy_out += static_cast<double>(view.out[one.slot]);
    one.last = std::max(one.last, std::min(at(free), clock_.size() - 2));
  }
  std::vector<double> begin(fetches_.size());
  double next = clock;
  for (std::size_t i = fetches_.size(); i-- > 0;) {
    const double takes = static_cast<double>(view.in[events_[fetches_[i].first].index]);
    begin[i] = std::min(next, clock_[fetches_[i].first]) - takes;
    next = begin[i];
  }
  double late = 0, end = 0;
  for (std::size_t i = 0; i < fetches_.size(); ++i) {
    Instance& one = instances_[fetches_[i].second];
    const Slot slot = one.slot;
    const double takes = static_cast<double>(view.in[slot]);
    busy_in += takes;
    end = std::max({end, begin[i] + late, stored_[slot]}) + takes;
    late += std::max(0.0, end - (clock_[fetches_[i].first] + late));
    // The copy takes its bytes from there on, but not before the previous value is gone.
    const Instance& old = instances_[static_cast<std::size_t>(one.before)];
    one.first = std::min(one.first, std::max(at(std::max(0.0, begin[i])), old.last + 1));
  }
  idle_ = clock - std::max(busy_out, busy_in);
  return clock + late;
}

void Evaluator::sum_up(const View& view, Estimate& found, double target) {
  const std::size_t count = events_.size() - 1;
  extra_.assign(count + 1, 0);
  live_.assign(count, 0);
  if (count == 0) {
    found.peak = static_cast<double>(graph_.resident().count() + graph_.input_bytes().count());
    return;
  }
  for (const Instance& one : instances_) {
    const double bytes = static_cast<double>(view.bytes[one.slot]);
    extra_[one.first] += bytes;
    if (one.first <= one.last)
      extra_[one.last + 1] -= bytes;
    else
      extra_[one.first] -= bytes;  // it came back before it went
  }
  for (std::size_t i = 0; i < stretch_.size(); ++i) {
    extra_[stretch_[i].first] += static_cast<double>(view.regions[i].together);
    extra_[stretch_[i].second] -= static_cast<double>(view.regions[i].together);
  }
  double now = static_cast<double>(graph_.resident().count());
  for (std::size_t i = 0; i < count; ++i) {
    now += extra_[i];
    double here = now;
    const StateEvent& event = events_[i];
    if (event.kind == Kind::compute || event.kind == Kind::again) {
      const OpId op(std::size_t{event.index});
      here += static_cast<double>(view.workspace[event.index]);
      TensorId over;
      for (const InPlacePair& pair : graph_.overwrites(op)) {
        if (pair.output == over) continue;
        for (const std::int32_t read : read_at(i)) {
          const Instance& one = instances_[static_cast<std::size_t>(read)];
          if (view.tensor[one.slot] != pair.input || one.last != i) continue;
          here -= static_cast<double>(view.bytes[pair.output.index()]);
          over = pair.output;
          break;
        }
      }
    }
    live_[i] = here;
    if (here > found.peak || i == 0) {
      found.peak = here;
      found.fullest = i;
    }
    found.over += std::max(0.0, here - target);
  }
}

std::uint64_t Evaluator::hash(const View& view) {
  const std::size_t count = events_.size() - 1;
  word_.assign(count, 0);
  down_.assign(instances_.size(), 0);
  up_.assign(instances_.size(), 0);
  first_made_.assign(count + 1, 0);
  std::size_t made = 0;
  while (made < instances_.size() && instances_[made].maker == Instance::kNone) {
    down_[made] = given_[instances_[made].slot];
    ++made;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const StateEvent& event = events_[i];
    std::uint64_t word = kClosed;
    if (event.kind == Kind::compute || event.kind == Kind::again) word = view.label[event.index];
    std::uint64_t from = word;
    if (event.kind == Kind::fetch) word = from = kFetched;
    for (const std::int32_t read : read_at(i))
      from = mix(from, down_[static_cast<std::size_t>(read)]);
    word_[i] = word;
    first_made_[i] = static_cast<std::uint32_t>(made);
    for (std::uint64_t k = 0;
         made < instances_.size() && instances_[made].maker == static_cast<std::int32_t>(i);
         ++made, ++k) {
      if (event.kind == Kind::fetch)
        from = mix(kFetched, down_[static_cast<std::size_t>(instances_[made].before)]);
      down_[made] = mix(from, k);
    }
  }
  first_made_[count] = static_cast<std::uint32_t>(made);
  std::uint64_t all = 0;
  for (std::size_t i = count; i-- > 0;) {
    std::uint64_t back = word_[i];
    for (std::size_t k = first_made_[i]; k < first_made_[i + 1]; ++k) {
      back = mix(back, up_[k]);
      const Instance& one = instances_[k];
      if (one.last + 1 == count) back = mix(back, kKept);
      if (events_[i].kind == Kind::fetch)
        up_[static_cast<std::size_t>(one.before)] += mix(kFetched, up_[k]);
    }
    std::uint64_t j = 0, read = 0;
    for (const std::int32_t at : read_at(i)) {
      up_[static_cast<std::size_t>(at)] += mix(back, j++);
      read = mix(read, down_[static_cast<std::size_t>(at)]);
    }
    all += mix(mix(word_[i], read), back);
  }
  return all;
}

Estimate Evaluator::estimate(const View& view, std::span<const Action> actions, double target,
                             Hash hashed) {
  run(view, actions);
  Estimate found;
  found.time = wait(view);
  sum_up(view, found, target);
  if (hashed == Hash::computed) found.hash = hash(view);
  return found;
}

}  // namespace lowtide::solve::magis
