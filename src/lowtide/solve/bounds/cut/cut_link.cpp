// Problem: until the cut point the link to the host moves a limited number of bytes, and so does
// the link back after it. Find the multipliers (shares) of these two capacity constraints: the
// value of an hour of each link, in hours of the plan.
//
// Idea: at given shares the cut gives a bound, and a plane above the bound at any other shares
// (cut_search.h). Each share is found like the multiplier of the memory: by bracketing between a
// share at which the plane rises and one at which it falls, where the two planes meet. First the
// share of the link out, then that of the link back, then that of the link out again if this helps.
//
// Source: as for the multiplier; J. E. Kelley, The cutting-plane method for solving convex
// programs, J. SIAM 1960, in one dimension at a time.
//
// Invariant: every claimed bound is that of cut_search.cpp, which is valid at any shares.
//
// Loses: coordinate ascent may stop below the optimum if both shares must change together.
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

  // Returns whether the search may continue with the other share.
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
        // Stay away from both ends, where a cut gives little information.
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
