// An engine that lies, and small graphs to catch it with.
#pragma once

#include <doctest/doctest.h>

#include "lowtide/solve/interface/context.h"

#include "oracles/brute_force.h"
#include "support/random_graph.h"
#include "support/variable.h"

namespace lowtide {

// For as long as it lives, the engine whose library `variable` names (LOWTIDE_CPSAT, LOWTIDE_HIGHS)
// behaves as tests/engines/fake_worker.cpp does for `how`.
class FakeEngine {
 public:
  FakeEngine(const char* variable, const char* how, const char* value = "1e9")
      : library_(variable, "fake.so"),
        how_("LOWTIDE_FAKE", how),
        value_("LOWTIDE_FAKE_VALUE", value) {}

 private:
  Variable worker_{"LOWTIDE_WORKER", LOWTIDE_FAKE_WORKER}, library_, how_, value_;
};

// Calls check(problem, settings, best) for graphs in the given order whose budget costs something;
// the settings have a best plan as the start. Says how many told something.
template <class Check>
void on_small_graphs(Check check) {
  int told = 0;
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, RandomGraphSettings::plain(7));
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    if (curve.size() < 2) continue;
    const Problem problem{.graph = graph, .budget = curve[1].peak, .order = Order::given};
    solve::ContextSettings settings;
    settings.starts = {curve[1].plan};
    told += check(problem, settings, curve[1].duration);
  }
  CHECK(told > 0);
}

}  // namespace lowtide
