// Problem: select the few stretches of a long sequence of labels that are worth hashing.
//
// Idea: number all stretches of 1, 2, 4, 8, ... labels such that equal stretches have equal
// numbers; each length follows from the two halves of the one before. If the last equal stretch is
// at the same distance for consecutive positions, the sequence is periodic there. A stretch that
// occurs in several places without overlap is extended in both directions as long as all places
// agree.
//
// Source: the doubling of R. Karp, R. Miller, A. Rosenberg, "Rapid identification of repeated
// patterns in strings, trees and arrays", 1972.
//
// Invariant: stretches that are called equal are equal, except for a collision of 64 bits, which
// hashing the blocks detects.
//
// Loses: a block that occurs twice in succession, and whose stretches also occur elsewhere, may be
// missed, since the last equal stretch is not the one a period before. Of each length only some
// stretches are extended.
#include "lowtide/graph/repeat_candidates.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lowtide/graph/digest.h"
#include "lowtide/graph/origin.h"

namespace lowtide {

namespace {

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::size_t kLeastStretch = 4;  // shorter stretches are too common to be useful
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

  // Fills in the classes and, for each position, the last position of an equal stretch. Returns
  // false if no stretch occurs twice.
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
    // A stretch that begins within an extended one and occurs as often would be extended to the
    // same one.
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

// Every origin stands for itself and for all modules that contain it: a tree whose levels are the
// names between separators. Each node has a counterpart in a second tree, with '*' in place of
// numbers; the members of a family share it.
class Origins {
 public:
  std::vector<Family> find(const Graph& graph, std::size_t least) {
    const Op* last = nullptr;
    for (std::size_t position = 0; position < graph.op_count(); ++position) {
      const Op& op = graph.op(graph.order()[position]);
      if (op.origin.empty()) continue;
      if (last == nullptr || last->origin != op.origin || last->phase != op.phase) descend(op);
      last = &op;
      for (const Place& place : places_)
        families_[place.family].members[place.member].push_back(position);
    }
    std::erase_if(families_, [&](const Family& family) {
      std::size_t covered = 0;
      for (const auto& member : family.members) covered += member.size();
      return family.members.size() < 2 || covered < least;
    });
    return std::move(families_);
  }

 private:
  static bool separates(char c) { return c == '.' || c == '/'; }

  struct Place {
    std::size_t family, member;
  };
  struct Piece {
    std::size_t number, pattern;  // the node's own number, and that of its counterpart with '*'
  };
  // Nodes are numbered from 1 on, below the root. A node without number has kNone.
  struct Tree {
    std::size_t child(std::size_t node, std::size_t piece) {
      const auto [entry, added] =
          children.try_emplace(Digester().add(node).add(piece).get(), carried.size());
      if (added) carried.push_back(kNone);
      return entry->second;
    }
    std::unordered_map<Digest, std::size_t, DigestHash> children;
    std::vector<std::size_t> carried{kNone};
  };

  // Adds the op to its origin and to all modules that contain it.
  void descend(const Op& op) {
    places_.clear();
    const std::size_t phase = piece_of(op.phase).number;
    std::size_t part = parts_.child(0, phase), pattern = patterns_.child(0, phase);
    bool numbered = false;
    const std::string_view origin = op.origin;
    for (std::size_t begin = 0, end = 1; begin < origin.size(); begin = end++) {
      while (end < origin.size() && !separates(origin[end])) ++end;
      const Piece piece = piece_of(origin.substr(begin, end - begin));
      part = parts_.child(part, piece.number);
      pattern = patterns_.child(pattern, piece.pattern);
      numbered = numbered || piece.number != piece.pattern;
      if (numbered) places_.push_back(place(part, pattern));
    }
  }

  Place place(std::size_t part, std::size_t pattern) {
    std::size_t& family = patterns_.carried[pattern];
    if (family == kNone) {
      family = families_.size();
      families_.emplace_back();
    }
    std::size_t& member = parts_.carried[part];
    if (member == kNone) {
      member = families_[family].members.size();
      families_[family].members.emplace_back();
    }
    return {family, member};
  }

  // `text` lies in the graph, or in texts_.
  Piece piece_of(std::string_view text) {
    const auto [entry, added] = pieces_.try_emplace(text, Piece{pieces_.size(), pieces_.size()});
    if (!added) return entry->second;
    Piece piece = entry->second;
    if (std::string with_star = origin_pattern(text); with_star != text) {
      const auto known = pieces_.find(with_star);
      piece.pattern = known != pieces_.end()
                          ? known->second.number
                          : piece_of(texts_.emplace_back(std::move(with_star))).number;
      pieces_[text] = piece;
    }
    return piece;
  }

  std::unordered_map<std::string_view, Piece> pieces_;
  std::deque<std::string> texts_;
  Tree parts_, patterns_;  // whose nodes have the number of their member and of their family
  std::vector<Family> families_;
  std::vector<Place> places_;  // for the last op
};

}  // namespace

Candidates find_candidates(const Graph& graph, const std::vector<std::uint64_t>& labels,
                           std::size_t least) {
  Candidates found;
  Doubling(labels, least).find(found);
  found.families = Origins().find(graph, least);
  return found;
}

}  // namespace lowtide
