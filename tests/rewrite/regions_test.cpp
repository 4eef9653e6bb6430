// Regions that are proposed: legal, priced whole, and what is estimated of them beside the graph
// that they make.
#include <doctest/doctest.h>

#include "lowtide/device/cards.h"
#include "lowtide/rewrite/convex.h"
#include "lowtide/rewrite/priced_region.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/transforms/apply.h"

#include "support/network.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using namespace rewrite;

TEST_CASE("convex sets: all ops, each set convex, in the given order") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random);
    Members among(graph.op_count(), 0);
    std::size_t wanted = 0;
    for (auto& member : among) wanted += member = random.below(3) > 0;
    std::size_t found = 0;
    for (const auto& set : convex_sets(graph, among, Members(graph.op_count(), 0))) {
      found += set.size();
      const Members members = members_of(graph, set);
      CHECK(hull(graph, members) == members);
      for (std::size_t i = 1; i < set.size(); ++i)
        CHECK(graph.position(set[i - 1]) < graph.position(set[i]));
    }
    CHECK(found == wanted);
  }
}

TEST_CASE("parts: the numbers of parts that leave the last part two slices") {
  CHECK(parts_for(3).empty());
  CHECK(parts_for(4) == std::vector<std::int64_t>{2});
  CHECK(parts_for(16) == std::vector<std::int64_t>{2, 3, 4, 8});
  // Of four parts of three slices the last would be left with one.
  CHECK(parts_for(10) == std::vector<std::int64_t>{2, 3, 5});
}

TEST_CASE("profile: the peak and the time of the given order") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Graph graph = step_of(Classifier::random(random)).without_in_place();
    const Profile profile = profile_of(graph);
    CHECK(profile.peak() == own_peak(graph));
    CHECK(profile.time == graph.total_time());
    const Shortfall none = shortfall(graph, profile, profile.peak(), std::nullopt);
    CHECK(none.again == Ticks(0));
    CHECK(none.missing == Bytes(0));
  }
}

TEST_CASE("priced region: none for too many parts, or beyond 63 bits") {
  const Graph graph = step_of(Classifier());
  const Device& device = *find_built_in_device("a100");
  const Candidate candidate = propose(graph).front();
  const auto is_made = [&](const Graph& of, std::int64_t parts) {
    const PartPricer pricer(of, device, nullptr);
    return PricedRegion::make(of, candidate, parts, pricer).has_value();
  };
  CHECK(is_made(graph, 2));
  CHECK_FALSE(is_made(graph, candidate.slices + 1));
  // As much as a graph may have.
  const auto count = static_cast<std::int64_t>(graph.op_count());
  const Bytes left = Bytes::max() - Bytes(std::int64_t{1} << 40);
  const std::vector<Bytes> large(graph.op_count(), Bytes(left.count() / count));
  CHECK_FALSE(is_made(Graph(graph).with_workspaces(large), 2));
}

TEST_CASE("propose: a suffix excludes the backward of earlier ops") {
  // The barrier, which the hoist puts last, reads the loss.
  Classifier classifier;
  classifier.widths = {4, 60, 61, 62, 63, 64, 10};
  classifier.in_place = false;
  const Graph graph = step_of(classifier);
  const std::vector<Transform> hoist{hoist_of(graph)};
  const TransformedGraph now = apply_transforms(graph, hoist);
  const auto candidates = propose(now.graph);
  const auto whole = std::ranges::find(candidates, Candidate::Kind::whole_graph, &Candidate::kind);
  REQUIRE(whole != candidates.end());
  std::size_t suffixes = 0;
  for (const Candidate& candidate : candidates)
    if (candidate.kind == Candidate::Kind::suffix && candidate.sums) {
      ++suffixes;
      CHECK(candidate.ops.back() != whole->ops.back());
    }
  CHECK(suffixes > 1);
}

TEST_CASE("propose: proposed regions are legal, with exact time and approximate peak") {
  const Device& device = *find_built_in_device("a100");
  std::size_t done = 0, crops = 0, without_sums = 0;
  for (std::uint64_t seed = 0; seed < (kSanitized ? 12 : 60); ++seed) {
    Random random(seed);
    Classifier classifier = Classifier::random(random);
    classifier.batch = 8 + static_cast<std::int64_t>(random.below(12));
    classifier.in_place = false;
    classifier.shifted = random.chance(0.3);
    const Graph graph = step_of(classifier);
    TransformedGraph now = apply_transforms(graph, {});
    std::vector<Transform> before;
    {
      const PartPricer pricer(now.graph, device, nullptr);
      if (const auto hoist = priced_hoist(now, pricer)) before.emplace_back(*hoist);
    }
    CHECK(before.size() == (classifier.barrier ? 1 : 0));
    now = apply_transforms(graph, before);
    const PartPricer pricer(now.graph, device, nullptr);
    const auto candidates = propose(now.graph);
    CHECK(!candidates.empty());
    for (const Candidate& candidate : candidates) {
      CAPTURE(describe(now.graph, candidate));
      for (const std::int64_t parts : parts_for(candidate.slices)) {
        CAPTURE(parts);
        const auto made_region = PricedRegion::make(now.graph, candidate, parts, pricer);
        if (!made_region) {
          REQUIRE(classifier.shifted);  // the crop leaves the last part fewer than two rows
          continue;
        }
        const PricedRegion& region = *made_region;
        std::vector<Transform> transforms = before;
        transforms.emplace_back(region.split(now));
        const TransformedGraph made = apply_transforms(graph, transforms);
        const Profile guessed = region.profile();
        CHECK(guessed.time == made.graph.total_time());
        const auto peak = static_cast<double>(own_peak(made.graph).count());
        CHECK(static_cast<double>(guessed.peak().count()) > 0.6 * peak);
        CHECK(static_cast<double>(guessed.peak().count()) < 1.6 * peak);
        ++done;
        crops += classifier.shifted;
        without_sums += candidate.sums ? 0 : 1;
      }
    }
  }
  CHECK(done > (kSanitized ? 40 : 200));
  CHECK(crops > (kSanitized ? 5 : 40));
  CHECK(without_sums > (kSanitized ? 1 : 10));
}

}  // namespace
}  // namespace lowtide
