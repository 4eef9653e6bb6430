// Problem: find the blocks that repeat in a graph of 100,000 ops, in a fraction of a second.
//
// Idea: candidates with equal labels (repeat_candidates.h) are first divided by their links along
// the given order, which takes one pass. One block of each kind is then hashed in full, which joins
// kinds that differ only in their order. The candidate that covers most ops is chosen, its ops are
// removed from all others, and so on. A candidate never covers more ops after that than before, so
// only the best one has to be evaluated again (lazy greedy).
//
// Source: M. Minoux, "Accelerated greedy algorithms", 1978.
//
// Invariant: blocks of one kind have one hash, and no op is in two blocks.
//
// Loses: if a large kind takes ops from two kinds that would cover more together.
#include "lowtide/graph/repeats.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lowtide/base/id_vector.h"
#include "lowtide/graph/digest.h"
#include "lowtide/graph/op_label.h"
#include "lowtide/graph/repeat_candidates.h"

namespace lowtide {

namespace {

constexpr std::size_t kOffsets = 3;     // positions tried for the begin of a run's blocks
constexpr std::size_t kWorkPerOp = 60;  // visits of ops, relative to their number
using Positions = std::vector<std::size_t>;

class Repeats {
 public:
  Repeats(const Graph& graph, const RepeatSettings& settings)
      : graph_(graph),
        most_(settings.most),
        least_(std::max<std::size_t>(
            2, static_cast<std::size_t>(settings.least_share *
                                        static_cast<double>(graph.op_count())))),
        covered_(graph.op_count(), 0),
        index_(graph.op_count(), kOutside),
        numbers_(graph.tensor_count(), kOutside),
        output_(graph.tensor_count(), 0) {
    IdVector<TensorId, Digest> tensors(graph.tensor_count());
    for (const TensorId tensor : tensors.ids())
      tensors[tensor] = tensor_label(graph.tensor(tensor));
    std::vector<Digest> linked;
    for (const OpId op : graph.order()) {
      const auto outputs = graph.outputs(op);
      linked.clear();
      for (const TensorId tensor : graph.inputs(op)) linked.push_back(tensors[tensor]);
      for (const TensorId tensor : outputs) linked.push_back(tensors[tensor]);
      labels_.push_back(op_label(graph, op, linked));
      for (std::size_t i = 0; i < outputs.size(); ++i) output_[outputs[i]] = i;
    }
  }

  std::vector<RepeatedBlock> find() {
    std::vector<std::uint64_t> short_labels;
    for (const Digest& label : labels_) short_labels.push_back(label.a);
    candidates_ = find_candidates(graph_, short_labels, least_);
    for (std::size_t i = 0; i < candidates_.families.size(); ++i) {
      const auto [bound, largest] = most_alike_in_size(candidates_.families[i].members);
      queue_.push({bound, 2, largest, Source::family, i});
    }
    for (std::size_t i = 0; i < candidates_.runs.size(); ++i) {
      const Run& run = candidates_.runs[i];
      queue_.push({run.last - run.first, 1, run.period, Source::run, i});
    }
    for (std::size_t i = 0; i < candidates_.stretches.size(); ++i) {
      const Stretches& equal = candidates_.stretches[i];
      queue_.push({equal.length * equal.starts.size(), 0, equal.length, Source::stretches, i});
    }
    return choose();
  }

 private:
  static constexpr std::size_t kOutside = SIZE_MAX;
  enum class Source : std::uint8_t { family, run, stretches };

  // Equal blocks. The ops of each, in an order of their own, correspond one by one to those of the
  // first.
  struct Kind {
    std::vector<Positions> places;
    BlockHash hash;
    std::size_t covered() const { return places.empty() ? 0 : places.size() * places[0].size(); }
  };

  struct Entry {
    std::size_t covers;  // at most; exactly if no ops have been removed since `round`
    int rank;            // order of candidates that cover as many ops
    std::size_t length;
    Source source;
    std::size_t index;
    std::size_t round = SIZE_MAX;
    Kind kind = {};

    bool operator<(const Entry& other) const {
      return std::tuple(covers, rank, other.length, other.source, other.index) <
             std::tuple(other.covers, other.rank, length, source, index);
    }
  };

  std::vector<RepeatedBlock> choose() {
    std::vector<RepeatedBlock> found;
    while (!queue_.empty() && found.size() < most_) {
      Entry entry = queue_.top();
      queue_.pop();
      if (entry.covers < least_) break;
      if (entry.round != found.size()) {
        if (work_ > kWorkPerOp * graph_.op_count()) break;
        entry.kind = best_kind(entry.source, entry.index);
        entry.covers = entry.kind.covered();
        entry.round = found.size();
        if (entry.covers >= least_) {
          entry.length = entry.kind.places.front().size();
          queue_.push(std::move(entry));
        }
        continue;
      }
      for (const Positions& place : entry.kind.places)
        for (const std::size_t position : place) covered_[position] = 1;
      found.push_back(described(entry.kind));
      entry.kind = {};
      queue_.push(std::move(entry));
    }
    return found;
  }

  RepeatedBlock described(const Kind& kind) const {
    RepeatedBlock block{.hash = kind.hash, .places = {}, .time = {}};
    for (const Positions& place : kind.places) {
      auto& ops = block.places.emplace_back();
      for (const std::size_t position : place) {
        ops.push_back(graph_.order()[position]);
        block.time += graph_.time(ops.back());
      }
    }
    const auto first = [&](const std::vector<OpId>& ops) {
      std::size_t least = kOutside;
      for (const OpId op : ops) least = std::min(least, graph_.position(op));
      return least;
    };
    std::ranges::sort(block.places, {}, first);
    return block;
  }

  Kind best_kind(Source source, std::size_t index) {
    switch (source) {
      case Source::family: {
        Kind kind = best_kind(free_ones(candidates_.families[index].members));
        return kind.covered() > kind.places.size() ? kind : Kind();
      }
      case Source::run: return best_of_run(candidates_.runs[index]);
      case Source::stretches: {
        const Stretches& equal = candidates_.stretches[index];
        return best_kind(stretches(equal.starts, equal.length));
      }
    }
    return {};
  }

  bool is_free(const Positions& place) const {
    return std::ranges::none_of(place, [&](std::size_t at) { return covered_[at] != 0; });
  }
  std::vector<Positions> free_ones(const std::vector<Positions>& places) {
    std::vector<Positions> left;
    for (const Positions& place : places) {
      work_ += place.size();
      if (is_free(place)) left.push_back(place);
    }
    return left;
  }
  std::vector<Positions> stretches(const std::vector<std::size_t>& starts, std::size_t length) {
    std::vector<Positions> places;
    for (const std::size_t start : starts) {
      Positions place(length);
      for (std::size_t i = 0; i < length; ++i) place[i] = start + i;
      places.push_back(std::move(place));
    }
    return free_ones(places);
  }

  // The blocks of a run may begin at any position. The best position is that at which fewest
  // tensors cross. A tensor that is read beyond the next block does not count.
  Kind best_of_run(const Run& run) {
    std::vector<std::int64_t> crossing(run.last - run.first + 1, 0);
    work_ += crossing.size();
    for (std::size_t at = run.first; at < run.last; ++at) {
      for (const TensorId tensor : graph_.outputs(graph_.order()[at])) {
        std::size_t end = at;
        for (const OpId reader : graph_.consumers(tensor))
          if (const std::size_t read = graph_.position(reader);
              read < run.last && read <= at + run.period)
            end = std::max(end, read);
        ++crossing[at + 1 - run.first];
        --crossing[end + 1 - run.first];
      }
    }
    for (std::size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
    struct Offset {
      std::size_t repeats;
      std::int64_t handed_on;
      std::size_t first;
    };
    std::vector<Offset> offsets;
    for (std::size_t first = 0; first < run.period; ++first) {
      Offset offset{(run.last - run.first - first) / run.period, 0, first};
      for (std::size_t k = 0; k < offset.repeats; ++k)
        offset.handed_on += crossing[first + k * run.period];
      offsets.push_back(offset);
    }
    const std::size_t tried = std::min(kOffsets, offsets.size());
    std::ranges::partial_sort(offsets, offsets.begin() + static_cast<std::ptrdiff_t>(tried),
                              [](const Offset& a, const Offset& b) {
                                return std::tuple(b.repeats, a.handed_on, a.first) <
                                       std::tuple(a.repeats, b.handed_on, b.first);
                              });
    Kind best;
    for (std::size_t i = 0; i < tried; ++i) {
      if (offsets[i].repeats < 2) break;
      std::vector<std::size_t> starts;
      for (std::size_t k = 0; k < offsets[i].repeats; ++k)
        starts.push_back(run.first + offsets[i].first + k * run.period);
      Kind kind = best_kind(stretches(starts, run.period));
      if (kind.covered() > best.covered()) best = std::move(kind);
      if (best.covered() == offsets[i].repeats * run.period) break;
    }
    return best;
  }

  // Of at least two blocks with equally many ops: the largest number of ops of all blocks together,
  // and the ops of one.
  static std::pair<std::size_t, std::size_t> most_alike_in_size(
      const std::vector<Positions>& places) {
    std::map<std::size_t, std::size_t> counts;
    for (const Positions& place : places) ++counts[place.size()];
    std::pair<std::size_t, std::size_t> most{0, 0};
    for (const auto& [size, count] : counts)
      if (size > 1 && count > 1 && size * count > most.first) most = {size * count, size};
    return most;
  }

  // Compare the sums of their labels first, which distinguishes most blocks without their links.
  Kind best_kind(std::vector<Positions> places) {
    std::unordered_map<Digest, std::size_t, DigestHash> known;
    std::vector<std::vector<Positions>> groups;
    for (Positions& place : places) {
      work_ += place.size();
      Digest sum;
      for (const std::size_t position : place) sum += labels_[position];
      const auto [entry, added] = known.try_emplace(sum, groups.size());
      if (added) groups.emplace_back();
      groups[entry->second].push_back(std::move(place));
    }
    const auto covers = [](const std::vector<Positions>& group) {
      return group.size() * group.front().size();
    };
    std::ranges::stable_sort(groups, std::greater(), covers);
    Kind best;
    for (std::vector<Positions>& group : groups) {
      const std::size_t most = covers(group);
      if (most < least_ || most <= best.covered()) break;
      if (group.size() < 2) continue;
      Kind kind = best_kind_of_alike(std::move(group));
      if (kind.covered() > best.covered()) best = std::move(kind);
    }
    return best;
  }

  Kind best_kind_of_alike(std::vector<Positions> places) {
    // Divide them by their links along the order, in the order of the first block of each kind.
    std::unordered_map<Digest, std::size_t, DigestHash> known;
    std::vector<std::vector<Positions>> alike;
    for (Positions& place : places) {
      const auto [entry, added] = known.try_emplace(digest_in_order(place), alike.size());
      if (added) alike.emplace_back();
      alike[entry->second].push_back(std::move(place));
    }
    std::map<BlockHash, Kind> kinds;
    for (std::vector<Positions>& same : alike) {
      const BlockForm form = form_of(same.front());
      // All blocks with equal links have equal forms up to their ops.
      IdVector<OpId, std::size_t>& place_of = index_;
      for (std::size_t i = 0; i < same.front().size(); ++i)
        place_of[graph_.order()[same.front()[i]]] = i;
      Kind& kind = kinds[form.hash];
      kind.hash = form.hash;
      for (const Positions& place : same) {
        Positions& arranged = kind.places.emplace_back();
        for (const OpId op : form.ops) arranged.push_back(place[place_of[op]]);
      }
      for (const OpId op : form.ops) place_of[op] = kOutside;
    }
    Kind best;
    for (auto& [hash, kind] : kinds)
      if (kind.places.size() > 1 && kind.covered() > best.covered()) best = std::move(kind);
    return best;
  }

  BlockForm form_of(const Positions& place) {
    std::vector<OpId> ops;
    for (const std::size_t position : place) ops.push_back(graph_.order()[position]);
    work_ += ops.size();
    return block_form(graph_, ops);
  }

  // Two equal lists are the same block. Comparing them is faster than a form, but they are rarely
  // equal.
  Digest digest_in_order(const Positions& place) {
    work_ += place.size();
    for (std::size_t i = 0; i < place.size(); ++i) index_[graph_.order()[place[i]]] = i;
    Digester digest;
    std::vector<TensorId> seen;
    for (const std::size_t position : place) {
      const OpId op = graph_.order()[position];
      digest.add(labels_[position]);
      for (const TensorId tensor : graph_.inputs(op)) {
        const OpId producer = graph_.producer(tensor);
        if (producer.valid() && index_[producer] != kOutside) {
          digest.add(index_[producer]).add(output_[tensor]);
          continue;
        }
        if (numbers_[tensor] == kOutside) {
          numbers_[tensor] = seen.size();
          seen.push_back(tensor);
        }
        digest.add(numbers_[tensor]).add(kOutside);
      }
      for (const TensorId tensor : graph_.outputs(op)) {
        const auto readers = graph_.consumers(tensor);
        digest.add(graph_.is_output(tensor) || std::ranges::any_of(readers, [&](OpId reader) {
                     return index_[reader] == kOutside;
                   }));
      }
      Digest after;
      for (const OpId earlier : graph_.after(op))
        if (index_[earlier] != kOutside) after += Digester().add(index_[earlier]).get();
      digest.add(after);
    }
    for (const std::size_t position : place) index_[graph_.order()[position]] = kOutside;
    for (const TensorId tensor : seen) numbers_[tensor] = kOutside;
    return digest.get();
  }

  const Graph& graph_;
  std::size_t most_, least_;
  std::vector<Digest> labels_;  // by position in the given order
  std::vector<std::uint8_t> covered_;
  // Scratch, kOutside between uses: the position of an op, and the number of a tensor, in the
  // present block.
  IdVector<OpId, std::size_t> index_;
  IdVector<TensorId, std::size_t> numbers_;
  IdVector<TensorId, std::size_t> output_;  // index among the outputs of its producer
  Candidates candidates_;
  std::priority_queue<Entry> queue_;
  std::size_t work_ = 0;
};

}  // namespace

std::vector<RepeatedBlock> repeated_blocks(const Graph& graph, const RepeatSettings& settings) {
  return Repeats(graph, settings).find();
}

}  // namespace lowtide
