// Problem: name the few stretches of a long sequence of labels that are worth a closer look.
// Idea: give all stretches of 1, 2, 4, 8, ... labels a number, equal ones the same, each length
// from the two halves of the one before. Where the last equal stretch stands at the same distance
// from one position after another, the sequence repeats with that period; a stretch of which no two
// overlap and that stands in several places grows there in both directions as long as all agree.
// Source: the doubling of R. Karp, R. Miller, A. Rosenberg, "Rapid identification of repeated
// patterns in strings, trees and arrays", 1972. Invariant: what is called equal is equal, but for a
// collision in 64 bits, which whoever looks closer sees. Loses: a block that stands twice on end
// and whose stretches also stand elsewhere may be missed, since the last equal stretch is not the
// one a period before; of each length only some stretches are grown.
#include "lowtide/graph/repeat_candidates.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "lowtide/graph/digest.h"
#include "lowtide/graph/origin.h"

namespace lowtide {

namespace {

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::size_t kLeastStretch = 4;  // shorter ones are too common to mean anything
constexpr std::size_t kGrownOfEachLength = 16;

class Doubling {
 public:
  Doubling(const std::vector<std::uint64_t>& labels, std::size_t least)
      : labels_(labels), least_(least), grams_(labels) {}

  void find(Candidates& found) {
    for (length_ = 1; length_ <= labels_.size() / 2 + 1 && !grams_.empty(); length_ *= 2) {
      if (!number()) break;
      find_runs(found.runs);
      if (length_ >= kLeastStretch) find_stretches(found.stretches);
      if (grams_.size() <= length_) break;
      for (std::size_t i = 0; i + length_ < grams_.size(); ++i)
        grams_[i] = Digester().add(grams_[i]).add(grams_[i + length_]).get().a;
      grams_.resize(grams_.size() - length_);
    }
  }

 private:
  struct Class {
    std::size_t first, last, count = 1, last_counted;
    bool overlaps = false;
  };

  // Fills classes and, for each position, where its stretch stood last; false if none stood twice.
  bool number() {
    classes_.clear();
    class_of_.assign(grams_.size(), 0);
    previous_.assign(grams_.size(), kNone);
    const std::size_t slots = std::bit_ceil(2 * grams_.size());
    table_.assign(slots, kNone);
    bool repeats = false;
    for (std::size_t i = 0; i < grams_.size(); ++i) {
      std::size_t slot = (grams_[i] * 0x9e3779b97f4a7c15u) >> 20 & (slots - 1);
      while (table_[slot] != kNone && grams_[classes_[table_[slot]].first] != grams_[i])
        slot = (slot + 1) & (slots - 1);
      if (table_[slot] == kNone) {
        table_[slot] = classes_.size();
        classes_.push_back({.first = i, .last = i, .last_counted = i});
      }
      class_of_[i] = table_[slot];
      Class& same = classes_[class_of_[i]];
      if (same.first == i) continue;
      repeats = true;
      previous_[i] = same.last;
      same.overlaps = same.overlaps || i - same.last < length_;
      same.last = i;
      if (i - same.last_counted < length_) continue;
      same.last_counted = i;
      ++same.count;
    }
    return repeats;
  }

  void find_runs(std::vector<Run>& runs) {
    for (std::size_t i = 0; i < grams_.size();) {
      if (previous_[i] == kNone) {
        ++i;
        continue;
      }
      const std::size_t period = i - previous_[i];
      std::size_t end = i + 1;
      while (end < grams_.size() && previous_[end] != kNone && end - previous_[end] == period)
        ++end;
      const std::size_t first = i - period, last = end - 1 + length_;
      i = end;
      if (last - first < std::max(2 * period, least_)) continue;
      add_run({first, last, period}, runs);
    }
  }

  void add_run(Run run, std::vector<Run>& runs) {
    std::vector<Run>& known = known_[run.period];
    for (const Run& other : known)
      if (other.first <= run.first && run.last <= other.last) return;
    while (run.first > 0 && labels_[run.first - 1] == labels_[run.first - 1 + run.period])
      --run.first;
    while (run.last < labels_.size() && labels_[run.last] == labels_[run.last - run.period])
      ++run.last;
    known.push_back(run);
    runs.push_back(run);
  }

  void find_stretches(std::vector<Stretches>& stretches) {
    std::vector<std::size_t> best;
    for (std::size_t i = 0; i < classes_.size(); ++i)
      if (classes_[i].count > 1 && !classes_[i].overlaps) best.push_back(i);
    std::ranges::stable_sort(best, std::greater(),
                             [&](std::size_t i) { return classes_[i].count; });
    // A stretch that begins within one that has grown, as often as it, would grow into the same.
    std::vector<std::size_t> claimed(grams_.size(), 0);
    std::size_t grown = 0;
    for (const std::size_t chosen : best) {
      if (grown == kGrownOfEachLength) break;
      if (claimed[classes_[chosen].first] == classes_[chosen].count) continue;
      ++grown;
      Stretches found{.length = length_, .starts = {}};
      for (std::size_t i = classes_[chosen].first; i <= classes_[chosen].last; ++i)
        if (class_of_[i] == chosen) found.starts.push_back(i);
      grow(found);
      for (const std::size_t start : found.starts)
        for (std::size_t i = start; i < std::min(start + found.length, claimed.size()); ++i)
          claimed[i] = found.starts.size();
      if (found.length * found.starts.size() >= least_) stretches.push_back(std::move(found));
    }
  }

  void grow(Stretches& found) const {
    std::size_t room = labels_.size();
    for (std::size_t i = 1; i < found.starts.size(); ++i)
      room = std::min(room, found.starts[i] - found.starts[i - 1]);
    const auto agree = [&](auto at) {
      return std::ranges::all_of(found.starts, [&](std::size_t start) {
        return labels_[at(start)] == labels_[at(found.starts.front())];
      });
    };
    while (found.length < room && found.starts.front() > 0 &&
           agree([](std::size_t start) { return start - 1; })) {
      for (std::size_t& start : found.starts) --start;
      ++found.length;
    }
    while (found.length < room && found.starts.back() + found.length < labels_.size() &&
           agree([&](std::size_t start) { return start + found.length; }))
      ++found.length;
  }

  const std::vector<std::uint64_t>& labels_;
  std::size_t least_, length_ = 1;
  std::vector<std::uint64_t> grams_;
  std::vector<Class> classes_;
  std::vector<std::size_t> class_of_, previous_, table_;
  std::unordered_map<std::size_t, std::vector<Run>> known_;
};

bool separates(char c) { return c == '.' || c == '/'; }

// Every origin stands for itself and for all that it is part of.
std::vector<Family> find_families(const Graph& graph, std::size_t least) {
  struct Place {
    std::size_t family, member;
  };
  std::vector<Family> families;
  std::unordered_map<std::string, std::size_t> patterns;
  std::unordered_map<std::string, Place> members;
  std::unordered_map<std::string, std::vector<Place>> known;
  for (std::size_t position = 0; position < graph.op_count(); ++position) {
    const Op& op = graph.op(graph.order()[position]);
    if (op.origin.empty()) continue;
    const auto [entry, added] = known.try_emplace(op.phase + '\n' + op.origin);
    if (added) {
      for (std::size_t end = 1; end <= op.origin.size(); ++end) {
        if (end < op.origin.size() && !separates(op.origin[end])) continue;
        const std::string part = op.origin.substr(0, end);
        const std::string pattern = origin_pattern(part);
        if (pattern == part) continue;
        const std::size_t family =
            patterns.try_emplace(op.phase + '\n' + pattern, families.size()).first->second;
        if (family == families.size()) families.emplace_back();
        const auto [member, first] = members.try_emplace(
            op.phase + '\n' + part, Place{family, families[family].members.size()});
        if (first) families[family].members.emplace_back();
        entry->second.push_back(member->second);
      }
    }
    for (const Place& place : entry->second)
      families[place.family].members[place.member].push_back(position);
  }
  std::erase_if(families, [&](const Family& family) {
    std::size_t covered = 0;
    for (const auto& member : family.members) covered += member.size();
    return family.members.size() < 2 || covered < least;
  });
  return families;
}

}  // namespace

Candidates find_candidates(const Graph& graph, const std::vector<std::uint64_t>& labels,
                           std::size_t least) {
  Candidates found;
  Doubling(labels, least).find(found);
  found.families = find_families(graph, least);
  return found;
}

}  // namespace lowtide
