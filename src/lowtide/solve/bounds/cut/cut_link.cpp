// Problem: until the cut point the link to the host moves so much and no more, and so does the link
// back after it. How much of the plan's time is an hour of either worth?
//
// Idea: at given shares the cut tells its bound and a plane above what any other shares allow
// (cut_search.h). So each share is sought as the multiplier is: between one from which the plane
// rises and one from which it falls, where the two meet. First the share of the link out, then that
// of the link back, then that of the link out once more if there was anything to gain.
//
// Source: as for the multiplier; J. E. Kelley, The cutting-plane method for solving convex
// programs, J. SIAM 1960, in one dimension at a time.
//
// Invariant: whatever shares are tried, what is claimed are the bounds of cut_search.cpp.
//
// Loses: where both shares must move together, one at a time may stand still below the best.
#include "lowtide/solve/bounds/cut/cut_link.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace lowtide::solve::bounds {

namespace {

constexpr std::int64_t kFirst = LinkShares::kAll / 16;
constexpr std::int64_t kLeast = LinkShares::kAll >> 20;
constexpr int kMostTries = 24;

class ShareSearch {
 public:
  ShareSearch(CutSearch& search, const CutScale& scale, const CutAim& aim)
      : search_(search), scale_(scale), aim_(aim), close_(std::ldexp(scale.total, -17)) {
    best_.value = -std::numeric_limits<double>::infinity();
  }

  // Whether it may go on to the other share.
  bool along(std::int64_t LinkShares::*share, double CutFound::*slope, std::int64_t first) {
    struct Line {
      std::int64_t at;
      double limit, slope;
    };
    std::optional<Line> rises, falls;
    LinkShares shares = at_;
    for (int tries = 0; tries < kMostTries; ++tries) {
      shares.*share = first;
      search_.set_shares(shares);
      const CutFound found = search_.maximise({}, {multiplier_, aim_.worth, aim_.enough});
      if (found.stopped || found.infeasible) {
        best_ = found;
        return false;
      }
      if (found.multiplier > 0) multiplier_ = found.multiplier;
      if (found.value > best_.value) {
        best_ = found;
        at_ = shares;
        if (found.extra >= aim_.enough) return false;
      }
      const double now = std::ldexp(found.*slope, -LinkShares::kBits);
      (now > 0 ? rises : falls) = Line{first, found.limit, now};
      const double best = std::max(best_.value, 0.0);
      double limit = 0;
      if (rises && falls) {
        const double width = static_cast<double>(falls->at - rises->at);
        const double step =
            (falls->limit - rises->limit - falls->slope * width) / (rises->slope - falls->slope);
        limit = rises->limit + rises->slope * step;
        // Not at either end, where it would learn little.
        first =
            rises->at + static_cast<std::int64_t>(std::clamp(step, width / 16, width * 15 / 16));
        if (first <= rises->at || first >= falls->at) return true;
      } else if (rises) {
        if (first == LinkShares::kAll) return true;
        limit = rises->limit + rises->slope * static_cast<double>(LinkShares::kAll - first);
        first = std::min(first * 3, LinkShares::kAll);
      } else {
        if (first <= kLeast) return true;
        limit = falls->limit - falls->slope * static_cast<double>(first);
        first /= 4;
      }
      if (limit - best <= close_ || limit <= static_cast<double>(scale_.scaled(aim_.worth)))
        return true;
    }
    return true;
  }

  CutFound run(const LinkShares& hint) {
    const auto first = [](std::int64_t share) { return share > 0 ? share : kFirst; };
    bool go_on = along(&LinkShares::out, &CutFound::out_slope, first(hint.out));
    if (best_.value <= 0) at_.out = 0;
    if (go_on && best_.in_slope > 0) {
      const Ticks before = best_.extra;
      go_on = along(&LinkShares::in, &CutFound::in_slope, first(hint.in));
      if (go_on && best_.extra > before)
        along(&LinkShares::out, &CutFound::out_slope, first(at_.out));
    }
    search_.set_shares(at_);
    return best_;
  }

 private:
  CutSearch& search_;
  const CutScale& scale_;
  CutAim aim_;
  double close_;
  std::int64_t multiplier_ = aim_.multiplier;
  LinkShares at_;
  CutFound best_;
};

}  // namespace

CutFound maximise_shares(CutSearch& search, const LinkShares& hint, const CutScale& scale,
                         const CutAim& aim) {
  return ShareSearch(search, scale, aim).run(hint);
}

}  // namespace lowtide::solve::bounds
