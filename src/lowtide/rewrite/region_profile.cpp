// The memory of the split graph, without building it. The region's ops are consecutive, after the
// ops on which they depend, as in that graph.
#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/rewrite/priced_region.h"

namespace lowtide::rewrite {

namespace {

std::int64_t sum(std::int64_t a, std::int64_t b) { return checked_add(Bytes(a), Bytes(b)).count(); }

}  // namespace

class PricedRegion::Profiler {
 public:
  explicit Profiler(const PricedRegion& priced)
      : priced_(priced), graph_(priced.graph_), region_(priced.region_) {}

  Profile profile() {
    set_order();
    set_times();
    add_extra();
    last_.resize(graph_.tensor_count());
    for (const TensorId id : AllIds<TensorId>(graph_.tensor_count()))
      is_made_in_parts(graph_, region_, id) ? add_in_parts(id) : add_whole(id);
    save_overwritten();
    sum_up(profile_, std::move(extra_));
    return std::move(profile_);
  }

 private:
  struct Uses {
    std::size_t last, last_inside;  // positions; that of the producer if there is no reader
    bool inside;                    // whether an op of the region reads it
  };

  // The order: the ops above the region, the region from position `begin_` to `end_`, and the rest.
  void set_order() {
    std::vector<OpId> rest;
    for (const OpId op : graph_.order())
      if (region_.inside[op.index()] == 0)
        (region_.above[op.index()] != 0 ? profile_.order : rest).push_back(op);
    begin_ = profile_.order.size();
    end_ = begin_ + region_.ops.size() - 1;
    profile_.order.insert(profile_.order.end(), region_.ops.begin(), region_.ops.end());
    profile_.order.insert(profile_.order.end(), rest.begin(), rest.end());
    places_ = profile_.order.size();
    position_.resize(graph_.op_count());
    for (std::size_t at = 0; at < places_; ++at) position_[profile_.order[at].index()] = at;
  }

  void set_times() {
    time_.resize(graph_.op_count());
    for (const OpId op : profile_.order) time_[op.index()] = graph_.time(op);
    for (std::size_t i = 0; i < region_.ops.size(); ++i)
      time_[region_.ops[i].index()] = priced_.all_parts(i);
    for (const OpId op : profile_.order)
      profile_.time = checked_add(profile_.time, time_[op.index()]);
    for (const TensorId tensor : region_.joined)
      profile_.time = checked_add(profile_.time, priced_.joining(tensor));
  }

  // The bytes of ops besides tensors: for the region those of a part, or of a join if that is more.
  void add_extra() {
    const std::int64_t resident = graph_.resident().count();
    for (std::size_t at = 0; at < places_; ++at) {
      const bool inside = begin_ <= at && at <= end_;
      const Bytes workspace = inside ? priced_.costs_.front()[at - begin_].workspace
                                     : graph_.workspace(profile_.order[at]);
      extra_.push_back(sum(resident, workspace.count()));
    }
    for (const TensorId tensor : region_.joined) {
      std::int64_t& there = extra_[place_of(tensor)];
      there = std::max(there, sum(resident, priced_.join_cost(tensor).workspace.count()));
    }
  }

  // The position of the producer; the first position for an input.
  std::size_t place_of(TensorId id) const {
    const OpId maker = graph_.producer(id);
    return maker.valid() ? position_[maker.index()] : 0;
  }

  Uses uses_of(TensorId id) const {
    const std::size_t made = place_of(id);
    Uses uses{.last = made, .last_inside = made, .inside = false};
    for (const OpId op : graph_.consumers(id)) {
      const std::size_t at = position_[op.index()];
      uses.last = std::max(uses.last, at);
      if (region_.inside[op.index()] == 0) continue;
      uses.inside = true;
      uses.last_inside = std::max(uses.last_inside, at);
    }
    return uses;
  }
  // The last position that needs the whole tensor.
  std::size_t needed_until(TensorId id, const Uses& uses) const {
    return graph_.is_output(id) || !graph_.freeable(id) ? places_ - 1 : uses.last;
  }

  // All parts read it: it is live from before the first part until after the last.
  void add_whole(TensorId id) {
    const Uses uses = uses_of(id);
    const OpId maker = graph_.producer(id);
    const bool before = maker.valid() && region_.inside[maker.index()] != 0;
    const std::size_t needed = needed_until(id, uses);
    const std::size_t last = uses.inside ? std::max(needed, end_) : needed;
    last_[id.index()] = last;
    add(id, before ? begin_ : place_of(id), last, graph_.bytes(id), true);
  }

  // A part of it inside, and after that the joined result.
  void add_in_parts(TensorId id) {
    const Uses uses = uses_of(id);
    last_[id.index()] = uses.last_inside;
    add(id, place_of(id), uses.last_inside, priced_.part_bytes(id), true);
    if (region_.is_joined[id.index()] == 0) return;
    const std::size_t needed = needed_until(id, uses);
    add(id, begin_, std::min(end_, needed), priced_.put_together_bytes(id), false);
    add(id, end_ + 1, needed, graph_.bytes(id), true);
  }

  void add(TensorId id, std::size_t first, std::size_t last, Bytes bytes, bool may_go) {
    if (first > last) return;
    const OpId maker = graph_.producer(id);
    profile_.intervals.push_back({.first = first,
                                  .last = last,
                                  .bytes = bytes,
                                  .again = maker.valid() ? time_[maker.index()] : Ticks(0),
                                  .may_go = may_go && maker.valid() && graph_.recomputable(maker),
                                  .tensor = id});
  }

  // If an op overwrites an input at its last use, its output takes no bytes.
  void save_overwritten() {
    for (std::size_t at = 0; at < places_; ++at) {
      TensorId over;
      for (const InPlacePair& pair : graph_.overwrites(profile_.order[at])) {
        if (pair.output == over || last_[pair.input.index()] != at) continue;
        over = pair.output;
        extra_[at] -= (is_made_in_parts(graph_, region_, over) ? priced_.part_bytes(over)
                                                               : graph_.bytes(over))
                          .count();
      }
    }
  }

  const PricedRegion& priced_;
  const Graph& graph_;
  const Region& region_;
  Profile profile_;
  std::size_t begin_ = 0, end_ = 0, places_ = 0;
  std::vector<std::size_t> position_;  // by op
  std::vector<Ticks> time_;            // by op, all parts
  std::vector<std::int64_t> extra_;    // by position, besides tensors
  std::vector<std::size_t> last_;  // position of each tensor; for tensors made in parts, of a part
};

Profile PricedRegion::profile() const { return Profiler(*this).profile(); }

}  // namespace lowtide::rewrite
