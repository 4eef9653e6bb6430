// Substitutions that are proposed: legal with their prices, and what they save what the graph that
// they make takes less.
#include "lowtide/rewrite/substitutions.h"

#include <span>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/device/cards.h"
#include "lowtide/graph/hash.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/transforms/apply.h"

#include "support/network.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using namespace rewrite;

// Queries, keys and values of x, twice; sums of them are kept.
Graph attention_like() {
  Network net;
  auto x = net.tensor({96, 64}, "f32", Role::input);
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<Network::Index> made;
    for (int i = 0; i < 3; ++i) {
      const auto w = net.tensor({64, 64}, "f32", Role::parameter), q = net.tensor({96, 64});
      net.op("aten.mm", {net.whole("self", x), net.whole("mat2", w)}, {q}).time = Ticks(5000);
      made.push_back(q);
    }
    const auto a = net.tensor({96, 64}), b = net.tensor({96, 64});
    net.op("aten.mul", {net.whole("self", made[0]), net.whole("other", made[1])}, {a}).time =
        Ticks(900);
    net.op("aten.add", {net.whole("self", a), net.whole("other", made[2])}, {b}).time = Ticks(900);
    x = b;
  }
  net.keep(x);
  return net.graph();
}

std::int64_t held(const Graph& graph) {
  std::int64_t sum = 0;
  const Profile profile = profile_of(graph);
  for (const Bytes bytes : profile.live) sum += bytes.count();
  return sum / static_cast<std::int64_t>(profile.live.size());
}

TEST_CASE("substitutions: the estimated gain is that of the transformed graph") {
  const Graph graph = attention_like();
  const TransformedGraph now = apply_transforms(graph, {});
  const Device& device = *find_built_in_device("a100");
  const auto found = substitutions(now, PartPricer(now.graph, device, nullptr));
  CHECK(found.size() == 4);  // of each layer the products, and the sum
  for (const Proposed& one : found) {
    const TransformedGraph made = apply_transforms(graph, std::vector<Transform>{one.substitute});
    CHECK(graph.total_time() - made.graph.total_time() == one.saved);
  }
}

TEST_CASE("substitutions: a set saves time, and the lighter set also holds no more bytes") {
  const Graph graph = attention_like();
  const Device& device = *find_built_in_device("a100");
  const Applied fast =
      substituted(graph, {{}, apply_transforms(graph, {})}, device, nullptr, Taken::faster);
  const Applied light = substituted(graph, {{}, apply_transforms(graph, {})}, device, nullptr,
                                    Taken::faster_and_lighter);
  CHECK(fast.transforms.size() >= 2);
  CHECK(fast.now.graph.total_time() < graph.total_time());
  CHECK(fast.now.graph.total_time() <= light.now.graph.total_time());
  CHECK(light.transforms.size() <= fast.transforms.size());
  CHECK(held(light.now.graph) <= held(graph));
  int asked = 0;
  const Applied none = substituted(graph, {{}, apply_transforms(graph, {})}, device, nullptr,
                                   Taken::faster, [&] { return ++asked > 0; });
  CHECK(none.transforms.empty());
}

// As a file would tell of it, and which ops and tensors are called what.
std::string told(const Graph& graph, std::span<const Transform> transforms, bool one_by_one) {
  std::string all;
  try {
    const TransformedGraph made =
        one_by_one ? apply_one_by_one(graph, transforms) : apply_transforms(graph, transforms);
    all = graph_hash(made.graph);
    for (const OpId op : made.graph.order()) {
      all += " " + std::to_string(made.op_index[op].index()) + made.graph.op(op).name;
      for (const Operand& operand : made.graph.op(op).operands)
        all += "," + std::to_string(made.tensor_index[operand.tensor].index());
    }
  } catch (const InputError& error) {
    all = error.what();
  }
  return all;
}

// Products that share inputs and sums of products, whose results are read by some that come before
// them in turn: many of each, in many orders; in half of them some that are changed in place.
Graph tangle(Random& random) {
  const bool updates = random.chance(0.5);
  Network net;
  std::vector<Network::Index> all;
  const auto any = [&] { return all[random.below(all.size())]; };
  for (int i = 0; i < 3; ++i) all.push_back(net.tensor({8, 8}, "f32", Role::input));
  for (int i = 0; i < 40; ++i) {
    const auto a = any(), b = random.chance(0.3) ? all.back() : any();
    if (updates && all.size() > 4 && random.chance(0.15)) {
      const bool both = random.chance(0.5);
      const auto changed = all.front(), read = both ? all[1] : all.back();
      net.op("aten.add_", {net.whole("self", changed), net.whole("other", read)}, {});
      net.mutates(changed);
      if (both) net.mutates(read);
      all.erase(all.begin(), all.begin() + (both ? 2 : 1));  // nobody may read them any more
      continue;
    }
    const auto made = net.tensor({8, 8});
    const std::uint64_t kind = random.below(5);
    if (kind < 2)
      net.op("aten.mm", {net.whole("self", a), net.whole("mat2", b)}, {made});
    else if (kind == 2 && a != b)
      net.op("aten.add", {net.whole("self", a), net.whole("other", b)}, {made});
    else if (kind == 3)
      net.op("aten.clone", {net.transposed("self", a)}, {made});
    else
      net.op("aten.relu", {net.whole("self", a)}, {made});
    net.latest_op().time = Ticks(50'000);
    all.push_back(made);
  }
  net.keep(all.back());
  return net.graph();
}

TEST_CASE("substitutions: many at once are the same as one by one") {
  const Device& device = *find_built_in_device("a100");
  int stops = 0;
  for (int sample = 0; sample < samples(60); ++sample) {
    CAPTURE(sample);
    Random random(static_cast<std::uint64_t>(sample));
    const Graph graph = tangle(random);
    const TransformedGraph now = apply_transforms(graph, {});
    auto found = substitutions(now, PartPricer(now.graph, device, nullptr));
    std::vector<Transform> transforms;
    std::vector<Substitute> asked;
    std::size_t next = graph.op_count();
    while (!found.empty()) {
      const std::size_t at = random.below(found.size());
      for (OpPrice& price : found[at].substitute.prices) price.of = OpId(next++);
      transforms.emplace_back(found[at].substitute);
      asked.push_back(found[at].substitute);
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(at));
      const std::string expected = told(graph, transforms, true);
      CHECK(told(graph, transforms, false) == expected);
      if (!expected.starts_with("transforms/")) continue;
      for (std::size_t i = 0; i < std::get<Substitute>(transforms.back()).prices.size(); ++i)
        --next;
      transforms.pop_back();
    }
    const Applied kept = apply_those_that_hold(graph, {{}, now}, asked);
    CHECK(kept.transforms == transforms);
    CHECK(graph_hash(kept.now.graph) == graph_hash(apply_transforms(graph, transforms).graph));
    bool again = false;
    const Applied stopped =
        apply_those_that_hold(graph, {{}, now}, asked, [&] { return again = true; });
    CHECK(stopped.transforms == (again ? std::vector<Transform>() : transforms));
    stops += again;
  }
  CHECK(stops > 0);
}

}  // namespace
}  // namespace lowtide
