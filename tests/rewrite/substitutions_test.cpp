// Substitutions that are proposed: legal with their prices, and what they save what the graph that
// they make takes less.
#include "lowtide/rewrite/substitutions.h"

#include <doctest/doctest.h>

#include "lowtide/device/cards.h"
#include "lowtide/plan/transforms/apply.h"
#include "lowtide/rewrite/profile.h"

#include "support/network.h"

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

TEST_CASE("substitutions: what each saves is what the graph that it makes takes less") {
  const Graph graph = attention_like();
  const Transformed now = apply_transforms(graph, {});
  const Device& device = *find_built_in_device("a100");
  const auto found = substitutions(now, PartPricer(now.graph, device, nullptr));
  CHECK(found.size() == 4);  // of each layer the products, and the sum
  for (const Proposed& one : found) {
    const Transformed made = apply_transforms(graph, std::vector<Transform>{one.substitute});
    CHECK(graph.total_time() - made.graph.total_time() == one.saved);
  }
}

TEST_CASE("substitutions: together they save time, and where they are to be lighter hold no more") {
  const Graph graph = attention_like();
  const Device& device = *find_built_in_device("a100");
  const Substituted fast = substituted(graph, {}, device, nullptr, Taken::faster);
  const Substituted light = substituted(graph, {}, device, nullptr, Taken::faster_and_lighter);
  CHECK(fast.transforms.size() >= 2);
  CHECK(fast.now.graph.total_time() < graph.total_time());
  CHECK(fast.now.graph.total_time() <= light.now.graph.total_time());
  CHECK(light.transforms.size() <= fast.transforms.size());
  CHECK(held(light.now.graph) <= held(graph));
  int asked = 0;
  const Substituted none =
      substituted(graph, {}, device, nullptr, Taken::faster, [&] { return ++asked > 0; });
  CHECK(none.transforms.empty());
}

}  // namespace
}  // namespace lowtide
