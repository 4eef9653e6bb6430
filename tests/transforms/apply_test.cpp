// Lists of transforms of all kinds, legal and not, made in every way that there is: one by one, as
// a whole, on from any shorter list, and from the cache. All say the same, to the last name.
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/device/cards.h"
#include "lowtide/graph/hash.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/transforms/draft.h"
#include "lowtide/transforms/substitutes.h"
#include "lowtide/transforms/transform_cache.h"

#include "support/network.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using rewrite::hoisted;
using rewrite::Proposed;
using rewrite::split_of;
using rewrite::substitutions;
using rewrite::survey;
using rewrite::Survey;

using List = std::vector<Transform>;

std::string told(const std::vector<Operand>& operands, const TransformedGraph& made) {
  std::string all = " (";
  for (const Operand& operand : operands) {
    all += operand.argument + " " + std::to_string(made.tensor_index[operand.tensor].index());
    for (const auto* numbers : {&operand.shape, &operand.strides})
      for (const std::int64_t number : *numbers) all += " " + std::to_string(number);
    all += "+" + std::to_string(operand.offset) + operand.dtype + ", ";
  }
  return all + ")";
}

std::string told(const TransformedGraph& made) {
  const Graph& graph = made.graph;
  std::string all = graph_hash(graph) + transform_hash(graph) + graph.name();
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    all += "\n" + std::to_string(made.op_index[id].index()) + " of " +
           std::to_string(made.source[id].index()) + " " + op.name + op.kind + op.origin;
    all += told(op.operands, made) + told(op.results, made);
    for (const PartOf& part : made.parts[id])
      all += " " + std::to_string(part.transform) + "/" + std::to_string(part.part);
    for (const InPlacePair& pair : graph.in_place(id))
      all += " over " + graph.tensor(pair.input).name;
  }
  for (const OpId op : made.ops) all += op.valid() ? "o" : "-";
  for (const TensorId tensor : made.tensors) all += tensor.valid() ? "t" : "-";
  return all;
}

std::string told_by(const std::function<TransformedGraph()>& make) {
  try {
    return told(make());
  } catch (const InputError& error) {
    return error.what();
  }
}

// A network of products, sums of them, what works element by element, and updates in place.
Graph products(Random& random) {
  Network net;
  std::vector<Network::Index> all(3);
  for (Network::Index& input : all) input = net.tensor({8, 8}, "f32", Role::input);
  const auto any = [&] { return all[random.below(all.size())]; };
  for (int i = 0; i < 20; ++i) {
    const auto a = any(), b = any();
    if (all.size() > 4 && random.chance(0.1)) {
      net.op("aten.add_", {net.whole("self", all.front()), net.whole("other", all.back())}, {});
      net.mutates(all.front());
      all.erase(all.begin());  // nobody may read it any more
      continue;
    }
    const auto made = net.tensor({8, 8});
    if (random.chance(0.5))
      net.op("aten.mm", {net.whole("self", a), net.whole("mat2", b)}, {made});
    else if (a != b)
      net.op("aten.add", {net.whole("self", a), net.whole("other", b)}, {made});
    else
      net.op("aten.relu", {net.whole("self", a)}, {made});
    net.latest_op().time = Ticks(50'000);
    all.push_back(made);
  }
  net.keep(all.back());
  return net.graph();
}

// One more transform for the list, mostly a legal one.
Transform any_transform(const Graph& graph, const Applied& now, Random& random) {
  const Device& device = *find_built_in_device("a100");
  const std::uint64_t kind = random.below(8);
  if (kind == 0 && !now.transforms.empty())  // what it names may be gone
    return now.transforms[random.below(now.transforms.size())];
  if (kind == 1) {
    const List hoist = hoisted(graph, device, nullptr).transforms;
    if (!hoist.empty()) return hoist.front();
  }
  if (kind < 4) {
    const Survey found = survey(now.now.graph, device, nullptr);
    if (!found.found.empty())
      return split_of(now.now, found.found[random.below(found.found.size())], device, nullptr);
  }
  auto found = substitutions(now.now, PartPricer(now.now.graph, device, nullptr));
  if (found.empty()) return Substitute{"add_into_product", {OpId(0)}, false, {}};
  Substitute one = std::move(found[random.below(found.size())].substitute);
  if (random.chance(0.1)) one.prices.clear();
  if (random.chance(0.1)) one.ops.front() = OpId(random.below(now.now.ops.size() + 1));
  return one;
}

TEST_CASE("apply: results and errors do not depend on how a list is applied") {
  int refused = 0, held = 0;
  for (int sample = 0; sample < samples(40); ++sample) {
    CAPTURE(sample);
    Random random(static_cast<std::uint64_t>(sample));
    const Graph graph = random.chance(0.5) ? step_of(Classifier::random(random)) : products(random);
    TransformCache cache(graph);
    Applied now{{}, apply_transforms(graph, {})};
    for (int step = 0; step < 8; ++step) {
      List list = now.transforms;
      list.push_back(any_transform(graph, now, random));
      const std::string expected = told_by([&] { return apply_one_by_one(graph, list); });
      CHECK(told_by([&] { return apply_transforms(graph, list); }) == expected);
      const std::span<const Transform> all(list);
      const std::size_t cut = random.below(list.size());
      const Applied before{{list.begin(), list.begin() + static_cast<std::ptrdiff_t>(cut)},
                           apply_transforms(graph, all.first(cut))};
      CHECK(told_by([&] { return apply_further(graph, before, all.subspan(cut)); }) == expected);
      for (int time = 0; time < 2; ++time)
        CHECK(told_by([&] { return cache.apply(list)->now; }) == expected);
      if (expected.starts_with("transforms/")) {
        ++refused;
        continue;
      }
      ++held;
      now = {list, apply_transforms(graph, list)};
    }
  }
  CHECK(refused > (kSanitized ? 3 : 10));
  CHECK(held > (kSanitized ? 10 : 100));
}

TEST_CASE("apply: tensors updated after all readers do not separate substitutions") {
  Network net;
  const auto x = net.tensor({96, 64}, "f32", Role::input);
  std::vector<Network::Index> weights;
  for (int layer = 0; layer < 2; ++layer) {
    const auto made = net.tensor({96, 64});
    const auto in = net.tensor({96, 64});
    net.op("aten.relu", {net.whole("self", x)}, {in});
    for (int i = 0; i < 2; ++i) {
      weights.push_back(net.tensor({64, 64}, "f32", Role::parameter));
      const auto product = net.tensor({96, 64});
      net.op("aten.mm", {net.whole("self", in), net.whole("mat2", weights.back())}, {product});
      net.op("aten.relu", {net.whole("self", product)}, {i == 0 ? net.tensor({96, 64}) : made});
    }
    net.keep(made);
  }
  for (const auto weight : weights) {
    net.op("aten.mul_", {net.whole("self", weight)}, {});
    net.mutates(weight);
  }
  const Graph graph = net.graph();
  const TransformedGraph now = apply_transforms(graph, {});
  const Device& device = *find_built_in_device("a100");
  Draft draft(graph);
  Substitutes together(draft, now);
  std::size_t made = 0;
  for (Proposed& one : substitutions(now, PartPricer(now.graph, device, nullptr))) {
    if (one.substitute.rule != "merge_products") continue;
    for (OpPrice& price : one.substitute.prices)
      price.of = OpId(price.of.index() - graph.op_count() + draft.op_count());
    CHECK(together.take(one.substitute, made++));
  }
  CHECK(made == 2);
}

TEST_CASE("transform cache: a cached graph is returned again, until too many ops are cached") {
  Random random(3);
  const Graph graph = products(random);
  TransformCache cache(graph);
  const auto none = cache.apply({});
  CHECK(cache.apply({}) == none);
  const Question question{{.graph = graph, .budget = Bytes::max()}};
  CHECK(apply_cached(question, {}) != apply_cached(question, {}));
  Question cached = question;
  cached.transform_cache = std::make_shared<TransformCache>(graph);
  CHECK(apply_cached(cached, {}) == apply_cached(cached, {}));
  // Of another graph it knows nothing.
  const Graph other = step_of({});
  Question wrong{{.graph = other, .budget = Bytes::max()}};
  wrong.transform_cache = cached.transform_cache;
  CHECK(apply_cached(wrong, {})->now.graph.op_count() == other.op_count());
  // Of more ops than it keeps the last ones stay.
  Network chain;
  auto last = chain.tensor({2}, "f32", Role::input);
  for (int i = 0; i < 40'000; ++i) {
    const auto next = chain.tensor({2});
    chain.op("aten.relu", {chain.whole("self", last)}, {next}).time = Ticks(1);
    last = next;
  }
  chain.keep(last);
  const Graph large = chain.graph();
  TransformCache few(large);
  std::vector<std::weak_ptr<const Applied>> seen;
  for (std::size_t i = 0; i < 5; ++i) {
    Applied made{{}, apply_transforms(large, {})};
    for (std::size_t j = 0; j < i; ++j) made.transforms.emplace_back(Hoist{});
    seen.push_back(few.add(std::move(made)));
  }
  CHECK(seen[0].expired());
  CHECK(seen[1].expired());
  CHECK(!seen[2].expired());
  CHECK(!seen[4].expired());
}

}  // namespace
}  // namespace lowtide
