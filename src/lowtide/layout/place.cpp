#include "lowtide/layout/place.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/layout/canonical_search.h"
#include "lowtide/layout/partial_placement.h"
#include "lowtide/layout/parts.h"
#include "lowtide/layout/ranking.h"
#include "lowtide/layout/sections.h"
#include "lowtide/layout/skyline.h"
#include "lowtide/layout/squeaky_wheel.h"

namespace lowtide::layout {

namespace {

// One part and what is known of it. Heights are above the part's base but in `height` and `bound`.
class PartPlacer {
 public:
  PartPlacer(Part part, std::uint64_t seed)
      : part_(std::move(part)), seed_(seed), skyline_(part_.items, part_.sections) {
    of_sections_ = loads(part_.items, part_.sections);
    loads_ = load_over(part_.items, of_sections_);
    bound_ = *std::ranges::max_element(of_sections_);
    for (const Item& item : part_.items) unit_ = std::gcd(unit_, item.size);
  }

  std::int64_t height() const { return part_.base + lowest_.height; }
  std::int64_t bound() const { return part_.base + bound_; }

  // One dive by each rule, until one is low enough, then dives with a look ahead. The first is
  // finished whatever the limits: the answer must have offsets.
  void dive(std::int64_t goal, Limits& limits) {
    Limits none;
    for (const Rule& rule : kRules) {
      const std::vector<std::int32_t> ranks = ranks_by(rule, part_.items, loads_);
      const bool first = lowest_.height == INT64_MAX;
      const std::int64_t most = first ? INT64_MAX - 1 : lowest_.height - 1;
      const std::int64_t found = skyline_.dive(ranks, most, first ? none : limits);
      if (first) limits.spend_all(none.work());
      if (found != Skyline::kGaveUp) lowest_ = {found, skyline_.offsets()};
      if (height() <= std::max(goal, bound()) || limits.stopped()) return;
    }
    dive_ahead(std::max(goal - part_.base, bound_), limits);
  }

  // Within the goal, or else within capacities between it and the lowest height so far.
  void dive_ahead(std::int64_t goal, Limits& limits) {
    Limits part(limits.remaining(kAheadShare));
    if (!dive_within(goal, part)) {
      std::int64_t low = goal;  // nothing was found within it
      while (lowest_.height - low > 1 + low / kFine && !part.stopped()) {
        const std::int64_t capacity = low + (lowest_.height - low) / 2;
        if (!dive_within(capacity, part)) low = capacity;
      }
    }
    limits.spend_all(part.work());
  }

  // Tries for `work` units to come down to the goal, or to raise the bound above it. Where every
  // byte counts (`lower_helps`), heights above the goal are searched for as well.
  void improve(std::int64_t goal, bool lower_helps, std::int64_t work, Limits& limits) {
    const std::int64_t target = std::max(goal - part_.base, bound_);
    LimitSettings settings = limits.remaining();
    // Enough for some dives at least.
    const auto dives = kDives * static_cast<std::int64_t>(part_.items.size());
    settings.work = std::min(std::max(work, dives), limits.work_left());
    Limits slice(settings);
    const int turn = turn_++;
    if ((turn % 2 == 1 || part_.items.size() <= kFew) && is_searched()) {
      const bool between = lower_helps && turn % 4 == 3;
      search(between ? target + (lowest_.height - target) / 2 : target, slice);
    } else {
      if (!wheel_) wheel_ = std::make_unique<SqueakyWheel>(part_.items, loads_, skyline_, seed_);
      wheel_->run(target, lowest_, slice);
    }
    limits.spend_all(slice.work());
  }

  void write_offsets(std::vector<std::int64_t>& offsets) const {
    for (std::size_t i = 0; i < part_.ids.size(); ++i)
      offsets[static_cast<std::size_t>(part_.ids[i])] = part_.base + lowest_.offsets[i];
  }

 private:
  static constexpr std::size_t kFew = 24;
  static constexpr std::int64_t kDives = 16;
  static constexpr double kAheadShare = 0.5;    // of the limits left
  static constexpr std::int64_t kFine = 1'000;  // a part of the height
  // Of a partial placement: a hundred MB.
  static constexpr std::int64_t kMostLive = 4'000'000;

  // By each rule, until one is within the capacity.
  bool dive_within(std::int64_t capacity, Limits& limits) {
    for (const Rule& rule : kRules) {
      const std::vector<std::int32_t> ranks = ranks_by(rule, part_.items, loads_);
      const std::int64_t found = skyline_.dive_within(ranks, capacity, of_sections_, limits);
      if (found != Skyline::kGaveUp) {
        lowest_ = {found, skyline_.offsets()};
        return true;
      }
      if (limits.stopped()) return false;
    }
    return false;
  }

  bool is_searched() const {
    return part_.items.size() <= CanonicalSearch::kMostItems &&
           PartialPlacement::live_of(part_.items) <= kMostLive;
  }
  PartialPlacement& partial() {
    if (!partial_) partial_ = std::make_unique<PartialPlacement>(part_.items, part_.sections);
    return *partial_;
  }

  void take(const std::vector<std::int64_t>& offsets) {
    std::int64_t height = 0;
    for (std::size_t i = 0; i < part_.items.size(); ++i)
      height = std::max(height, offsets[i] + part_.items[i].size);
    if (height < lowest_.height) lowest_ = {height, offsets};
  }

  void search(std::int64_t capacity, Limits& slice) {
    if (!exact_)
      exact_ = std::make_unique<CanonicalSearch>(part_.items, part_.sections, partial(), seed_);
    switch (exact_->run(capacity, slice)) {
      case CanonicalSearch::Answer::found: take(exact_->offsets()); break;
      // Heights of canonical placements are sums of sizes.
      case CanonicalSearch::Answer::none: bound_ = (capacity / unit_ + 1) * unit_; break;
      case CanonicalSearch::Answer::stopped: break;
    }
  }

  Part part_;
  std::uint64_t seed_;
  Skyline skyline_;
  std::vector<std::int64_t> of_sections_, loads_;  // of each section; over each item
  std::int64_t bound_ = 0, unit_ = 0;
  Lowest lowest_;
  std::unique_ptr<SqueakyWheel> wheel_;
  std::unique_ptr<PartialPlacement> partial_;
  std::unique_ptr<CanonicalSearch> exact_;
  int turn_ = 0;
};

constexpr std::int64_t kFirstSlice = 20'000;

std::int64_t bound_of(const std::vector<std::unique_ptr<PartPlacer>>& parts, std::int64_t least) {
  for (const auto& part : parts) least = std::max(least, part->bound());
  return least;
}

// The highest part is worked on until it is low enough.
void improve(const std::vector<std::unique_ptr<PartPlacer>>& parts, std::int64_t least,
             std::optional<Bytes> capacity, Limits& limits) {
  for (std::int64_t slice = kFirstSlice; !limits.stopped();) {
    const auto highest =
        std::ranges::max_element(parts, {}, [](const auto& part) { return part->height(); });
    if (highest == parts.end()) return;
    const std::int64_t bound = bound_of(parts, least);
    const std::int64_t goal = capacity ? std::max(capacity->count(), bound) : bound;
    if ((*highest)->height() <= goal) return;
    if (capacity && bound > capacity->count()) return;
    (*highest)->improve(goal, !capacity, slice, limits);
    slice += slice / 4;
  }
}

Status status_of(const Placement& found, const std::optional<Bytes>& capacity) {
  if (capacity && found.bound > *capacity) return Status::infeasible;
  if (found.height == found.bound) return Status::optimal;
  return !capacity || found.height <= *capacity ? Status::feasible : Status::unknown;
}

}  // namespace

Placement place(std::span<const Buffer> buffers, const PlaceSettings& settings, Limits& limits) {
  if (settings.alignment < Bytes(1)) throw InputError("alignment", "must be at least 1");
  const Sections sections = make_sections(buffers, settings.alignment.count());
  std::vector<std::int64_t> offsets(buffers.size(), 0);
  std::vector<std::unique_ptr<PartPlacer>> parts;
  for (Part& part : split_into_parts(sections, offsets))
    parts.push_back(std::make_unique<PartPlacer>(std::move(part), settings.seed + parts.size()));

  std::int64_t load = 0;
  for (const std::int64_t sum : loads(sections.items, sections.count)) load = std::max(load, sum);
  const std::int64_t goal = settings.capacity ? std::max(load, settings.capacity->count()) : load;
  for (const auto& part : parts) part->dive(goal, limits);
  improve(parts, load, settings.capacity, limits);

  Placement found;
  for (const auto& part : parts) part->write_offsets(offsets);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    found.offsets.push_back(Bytes(offsets[i]));
    found.height = std::max(found.height, Bytes(offsets[i] + sections.items[i].size));
  }
  found.load = Bytes(load);
  found.bound = Bytes(bound_of(parts, load));
  found.status = status_of(found, settings.capacity);
  found.stopped_by = limits.reason();
  return found;
}

}  // namespace lowtide::layout
