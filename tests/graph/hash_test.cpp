#include "lowtide/graph/hash.h"

#include <functional>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"

#include "support/random_graph.h"

namespace lowtide {

namespace {

// A graph as plain data, to change one thing at a time.
struct Parts {
  std::string name = "g";
  TickUnit tick = TickUnit::ns;
  Bytes resident;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<OpLinks> links;
  std::vector<std::int64_t> outputs, order;

  Parts() {
    for (std::int64_t bytes : {10, 20, 30, 40}) {
      tensors.emplace_back();
      tensors.back().bytes = Bytes(bytes);
      tensors.back().name = "t";
    }
    for (std::int64_t time : {1, 2, 3}) {
      ops.emplace_back();
      ops.back().time = Ticks(time);
      ops.back().name = "f";
    }
    links = {OpLinks{{0}, {1}, {}, {}}, OpLinks{{0}, {2}, {}, {}}, OpLinks{{1, 2}, {3}, {}, {}}};
    outputs = {3};
    order = {0, 1, 2};
  }
  std::string hash() const {
    GraphBuilder builder;
    builder.set_name(name);
    builder.set_tick(tick);
    builder.set_resident(resident);
    for (const Tensor& tensor : tensors) builder.add_tensor(tensor);
    for (std::size_t i = 0; i < ops.size(); ++i) builder.add_op(ops[i], links[i]);
    builder.set_outputs(outputs);
    builder.set_order(order);
    return graph_hash(builder.build());
  }
};

std::string changed(const std::function<void(Parts&)>& change) {
  Parts parts;
  change(parts);
  return parts.hash();
}

}  // namespace

TEST_CASE("the form and the value of the hash never change") {
  // Both computed by other means from the layout that the reference gives.
  CHECK(Parts().hash() ==
        "sha256:0646dba769ef1ca5ffe976f96ce02433af8fbfe844f01a5c83559a49e1d49cfc");
  CHECK(graph_hash(GraphBuilder().build()) ==
        "sha256:b68f593141969cfeddf2011667ccdca92d2d22b414194bdf4ccbaa2833c85be2");
}

TEST_CASE("names, shapes, roles and the unit of time do not change the hash") {
  const std::string hash = Parts().hash();
  CHECK(changed([](Parts& p) { p.name = "other"; }) == hash);
  CHECK(changed([](Parts& p) { p.tick = TickUnit::flop; }) == hash);
  CHECK(changed([](Parts& p) { p.tensors[1].name = "other"; }) == hash);
  CHECK(changed([](Parts& p) { p.tensors[1].shape = {5}; }) == hash);
  CHECK(changed([](Parts& p) { p.tensors[1].dtype = "f32"; }) == hash);
  CHECK(changed([](Parts& p) { p.tensors[0].role = Role::parameter; }) == hash);
  CHECK(changed([](Parts& p) { p.ops[1].name = "other"; }) == hash);
  CHECK(changed([](Parts& p) { p.ops[1].kind = "aten.mm"; }) == hash);
  CHECK(changed([](Parts& p) { p.ops[1].phase = "forward"; }) == hash);
  CHECK(changed([](Parts& p) { p.ops[1].origin = "layer1"; }) == hash);
  CHECK(changed([](Parts& p) { p.ops[1].attributes = "{}"; }) == hash);
  CHECK(changed([](Parts& p) { p.links[2].inputs = {1, 2, 1}; }) == hash);
}

TEST_CASE("every property that planning uses changes the hash") {
  std::set<std::string> hashes = {Parts().hash()};
  const std::vector<std::function<void(Parts&)>> changes = {
      [](Parts& p) { p.resident = Bytes(1); },
      [](Parts& p) { p.tensors[1].bytes = Bytes(21); },
      [](Parts& p) { std::swap(p.tensors[1].bytes, p.tensors[2].bytes); },
      [](Parts& p) { p.tensors[0].releasable = true; },
      [](Parts& p) { p.tensors.emplace_back(); },
      [](Parts& p) { p.ops[0].time = Ticks(5); },
      [](Parts& p) { p.ops[0].workspace = Bytes(5); },
      [](Parts& p) { p.ops[0].recomputable = false; },
      [](Parts& p) { p.ops[0].kind = kBarrierKind; },
      [](Parts& p) { p.ops[0].lane = Lane::network; },
      [](Parts& p) { p.links[1].inputs = {}; },
      [](Parts& p) {
        p.links[2].inputs = {2, 1};
      },
      [](Parts& p) { p.links[1].after = {0}; },
      [](Parts& p) { p.links[2].mutates = {1}; },
      [](Parts& p) {
        p.outputs = {3, 2};
      },
      [](Parts& p) {
        p.outputs = {2, 3};
      },
      [](Parts& p) { p.outputs = {}; },
      [](Parts& p) {
        p.order = {1, 0, 2};
      },
  };
  for (const auto& change : changes) CHECK(hashes.insert(changed(change)).second);
}

TEST_CASE("random graphs differ in their hashes, and the same seed gives the same") {
  std::set<std::string> hashes;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random a(seed), b(seed);
    const std::string hash = graph_hash(random_graph(a));
    CHECK(hash == graph_hash(random_graph(b)));
    hashes.insert(hash);
  }
  CHECK(hashes.size() == 300);
}

}  // namespace lowtide
