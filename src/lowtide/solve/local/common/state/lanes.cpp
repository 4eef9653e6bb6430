// One loop over the stops.
#include "lowtide/solve/local/common/state/lanes.h"

#include <algorithm>

namespace lowtide::solve::local {

void Lanes::reset(std::size_t blocks) {
  blocks_.resize(blocks);
  for (Block& block : blocks_) block.stale = true;
  marks_.assign(blocks, {});
  first_stale_ = 0;
}

std::size_t Lanes::stale_from(std::size_t block) const {
  block = std::max(block, first_stale_);
  while (block < blocks_.size() && !blocks_[block].stale) ++block;
  return block;
}

std::vector<Lanes::Stop>& Lanes::refill(std::size_t block) {
  blocks_[block].stale = false;
  blocks_[block].stops.clear();
  return blocks_[block].stops;
}

double Lanes::evaluate() {
  if (first_stale_ >= blocks_.size()) return duration_;
  Mark now = marks_[first_stale_];
  out_.resize(std::min(now.outs, out_.size()));
  in_.resize(std::min(now.ins, in_.size()));
  for (std::size_t i = first_stale_; i < blocks_.size(); ++i) {
    marks_[i] = now;
    const Block& block = blocks_[i];
    priced_ += static_cast<std::int64_t>(block.stops.size());
    for (const Stop& stop : block.stops) {
      const double x = now.x + stop.x;
      double& clock = clocks_[static_cast<std::size_t>(stop.clock)];
      switch (stop.kind) {
        case Kind::wait_before:
        case Kind::wait_after: now.stall = std::max(now.stall, clock - x); break;
        case Kind::fetch: {
          const double begin = std::max(now.in, x + now.stall);
          clock = now.in = begin + stop.time;
          in_.push_back({stop.clock, begin, now.in});
          break;
        }
        case Kind::copy: {
          const double begin = std::max(now.out, x + now.stall);
          clock = now.out = begin + stop.time;
          out_.push_back({stop.clock, begin, now.out});
          break;
        }
        case Kind::barrier:
          now.stall = std::max({now.stall, now.out - x, now.in - x});
          now.out = std::max(now.out, x + stop.time + now.stall);
          now.in = std::max(now.in, x + stop.time + now.stall);
          break;
      }
    }
    now.x += block.time;
    now.outs = out_.size();
    now.ins = in_.size();
  }
  first_stale_ = blocks_.size();
  duration_ = std::max({now.x + now.stall, now.out, now.in});
  return duration_;
}

std::size_t Lanes::block_at(double time) const {
  const auto after = std::upper_bound(
      marks_.begin(), marks_.end(), time,
      [](double wanted, const Mark& mark) { return wanted < mark.x + mark.stall; });
  return after == marks_.begin() ? 0 : static_cast<std::size_t>(after - marks_.begin()) - 1;
}

}  // namespace lowtide::solve::local
