// Problem: until the cut point the link to the host moves a limited number of bytes, and so does
// the link back after it. Find the multipliers of these two capacity constraints. A multiplier,
// here called a share, is the dual value of a unit of time of the link, in units of the plan's
// duration. It is between 0 and 1.
//
// Idea: at given shares the cut gives a bound, and a plane above the bound at any other shares
// (CutFound in cut_search.h). Each share is found like the multiplier of the memory. It is
// bracketed between a share at which the plane rises and one at which it falls, and the next
// candidate is where these two planes meet. The first search is over the share of the link to the
// host, the second over that of the link back. If the second has raised the bound, the first is
// repeated.
//
// Source: that of cut_search.cpp; and, in one dimension at a time, J. E. Kelley, The cutting-plane
// method for solving convex programs, J. SIAM 1960.
//
// Invariant: only CutSearch claims bounds, and its bounds are valid at any shares. Planes are in
// floating point and decide only which shares are tried.
//
// Loses: coordinate ascent may stop below the optimum if both shares must change together.
#include "lowtide/solve/bounds/cut/cut_link.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace lowtide::solve::bounds {

namespace {

constexpr std::int64_t kFirstShare = LinkShares::kAll / 16;  // without a hint
constexpr std::int64_t kLeastShare = LinkShares::kAll >> 20;
constexpr int kMostTries = 24;  // shares of one link

class ShareSearch {
 public:
  ShareSearch(CutSearch& search, const CutScale& scale, const CutAim& aim)
      : search_(search), scale_(scale), aim_(aim), close_(std::ldexp(scale.total, -17)) {
    best_.value = -std::numeric_limits<double>::infinity();
  }

  // Maximizes the bound over one share, from `candidate`, with the other share fixed.
  // Returns false if the whole search is over: stopped, infeasible, or the bound is enough.
  bool maximise_along(std::int64_t LinkShares::*share, double CutFound::*slope,
                      std::int64_t candidate) {
    struct Line {  // the plane of a candidate, restricted to this share
      std::int64_t at;
      double limit, slope;
    };
    std::optional<Line> rises, falls;
    LinkShares shares = at_;
    for (int tries = 0; tries < kMostTries; ++tries) {
      shares.*share = candidate;
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
      (now > 0 ? rises : falls) = Line{candidate, found.limit, now};
      const double best = std::max(best_.value, 0.0);
      double limit = 0;  // upper bound on the value at any share not yet excluded
      if (rises && falls) {
        const double width = static_cast<double>(falls->at - rises->at);
        const double step =
            (falls->limit - rises->limit - falls->slope * width) / (rises->slope - falls->slope);
        limit = rises->limit + rises->slope * step;
        // A candidate close to an end of the bracket would shorten the bracket by little.
        candidate =
            rises->at + static_cast<std::int64_t>(std::clamp(step, width / 16, width * 15 / 16));
        if (candidate <= rises->at || candidate >= falls->at) return true;
      } else if (rises) {
        if (candidate == LinkShares::kAll) return true;
        limit = rises->limit + rises->slope * static_cast<double>(LinkShares::kAll - candidate);
        candidate = std::min(candidate * 3, LinkShares::kAll);
      } else {
        if (candidate <= kLeastShare) return true;
        limit = falls->limit - falls->slope * static_cast<double>(candidate);
        candidate /= 4;
      }
      if (limit - best <= close_ || limit <= static_cast<double>(scale_.scaled(aim_.worth)))
        return true;
    }
    return true;
  }

  CutFound run(const LinkShares& hint) {
    const auto first = [](std::int64_t share) { return share > 0 ? share : kFirstShare; };
    bool go_on = maximise_along(&LinkShares::out, &CutFound::out_slope, first(hint.out));
    if (best_.value <= 0) at_.out = 0;
    if (go_on && best_.in_slope > 0) {
      const Ticks before = best_.extra;
      go_on = maximise_along(&LinkShares::in, &CutFound::in_slope, first(hint.in));
      if (go_on && best_.extra > before)
        maximise_along(&LinkShares::out, &CutFound::out_slope, first(at_.out));
    }
    search_.set_shares(at_);
    return best_;
  }

 private:
  CutSearch& search_;
  const CutScale& scale_;
  CutAim aim_;
  double close_;  // a gain that is not worth another candidate, scaled
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
