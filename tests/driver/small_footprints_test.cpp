// Budgets of footprints for small graphs, against the plans that compute the ops in every order,
// some of them again.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/driver/curve.h"
#include "lowtide/driver/fit.h"
#include "lowtide/driver/footprint.h"
#include "lowtide/layout/reserved.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using driver::FootprintTerms;

constexpr std::size_t kMostAgain = 2;  // computations beyond one of each op

// Every sequence of computations that is legal, none of them without a use.
class Sequences {
 public:
  explicit Sequences(const Graph& graph) : graph_(graph), ready_(graph.tensor_count(), false) {
    for (const TensorId id : AllIds<TensorId>(graph.tensor_count()))
      ready_[id.index()] = !graph.producer(id).valid();
    extend(graph.op_count(), kMostAgain);
  }
  const std::vector<std::vector<OpId>>& all() const { return all_; }

 private:
  void extend(std::size_t first_times, std::size_t again) {
    if (first_times == 0) all_.push_back(sequence_);
    for (const OpId op : AllIds<OpId>(graph_.op_count())) {
      if (!std::ranges::all_of(graph_.inputs(op), [&](TensorId id) { return ready_[id.index()]; }))
        continue;
      const bool done = std::ranges::find(sequence_, op) != sequence_.end();
      if (done && (again == 0 || first_times == 0 || sequence_.back() == op)) continue;
      sequence_.push_back(op);
      for (const TensorId id : graph_.outputs(op)) ready_[id.index()] = true;
      extend(first_times - (done ? 0 : 1), again - (done ? 1 : 0));
      sequence_.pop_back();
      if (!done)
        for (const TensorId id : graph_.outputs(op)) ready_[id.index()] = false;
    }
  }

  const Graph& graph_;
  std::vector<bool> ready_;
  std::vector<OpId> sequence_;
  std::vector<std::vector<OpId>> all_;
};

// By what they take; plans that nothing beats.
Frontier all_footprints(const Graph& graph, const FootprintTerms& terms) {
  Frontier found;
  Question unlimited{{.graph = graph, .budget = Bytes::max()}};
  const driver::Measure measure = measure_of(graph, terms, Bytes(0), 0);
  const Sequences sequences(graph);
  for (const std::vector<OpId>& sequence : sequences.all()) {
    const auto plan = std::make_shared<const Plan>(plan_from_sequence(graph, sequence));
    const Verdict verdict = verify(unlimited, *plan);
    if (!verdict.ok || !found.improves(verdict.cost)) continue;
    Limits limits({.work = 20'000});
    found.add({verdict.cost, plan, "every order", measure(*plan, limits)});
  }
  return found;
}

struct Kind {
  FootprintTerms terms;
  std::int64_t bytes;  // of a tensor at most
};

std::vector<Kind> kinds() {
  constexpr std::int64_t kMiB = 1 << 20;
  FootprintTerms expandable{.kind = Footprint::reserved};
  expandable.allocator.expandable_segments = true;
  return {{{.kind = Footprint::arena, .alignment = Bytes(1)}, 40},
          {{.kind = Footprint::arena, .alignment = Bytes(16)}, 60},
          {{.kind = Footprint::reserved}, 30 * kMiB},
          {expandable, 60 * kMiB}};
}

// Calls `ask` for small graphs of each kind, with all plans that nothing beats and the sample's
// random numbers.
template <typename Ask>
void for_small_graphs(int count, Ask ask) {
  for (int i = 0; i < count; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    for (const Kind& kind : kinds()) {
      CAPTURE(i);
      RandomGraphSettings settings = RandomGraphSettings::plain(4 + random.below(3));
      settings.bytes = kind.bytes;
      const Graph graph = random_graph(random, settings);
      ask(i, kind.terms, graph, all_footprints(graph, kind.terms), random);
    }
  }
}

TEST_CASE("footprint: small graphs have plans wherever one of every order fits") {
  int asked = 0, missed = 0, longer = 0;
  for_small_graphs(samples(20, 200), [&](int i, const FootprintTerms& terms, const Graph& graph,
                                         const Frontier& all, Random&) {
    const Bytes least = all.smallest()->needs(), most = all.entries().back().needs();
    for (const std::int64_t part : {0, 1, 2}) {
      const Bytes budget = least + Bytes((most - least).count() * part / 3);
      const Question question{{.graph = graph, .budget = budget}};
      driver::Request request;
      request.limits.work = sanitized(30'000, 300'000);
      request.seed = static_cast<std::uint64_t>(i);
      const auto found = driver::solve_within(driver::all_solvers(), question, request, terms);
      ++asked;
      CHECK(found.answer.outcome.status != Status::infeasible);
      if (!found.taken) {
        ++missed;
        continue;
      }
      CHECK(found.taken->bytes <= budget);
      longer += found.answer.outcome.cost.duration > all.best(budget)->cost.duration ? 1 : 0;
    }
  });
  MESSAGE("asked " << asked << " missed " << missed << " longer " << longer);
  // Under a sanitizer the search has a tenth of the work, and only has to keep every rule.
  CHECK(missed <= sanitized(asked, 1 + asked / 500));
  CHECK(longer <= sanitized(asked, asked / 50));
}

// The plan keeps its budget in what is claimed, and the claim is true.
void check_point(const Graph& graph, const FootprintTerms& terms, const TradeoffPoint& point) {
  REQUIRE(point.taken.has_value());
  CHECK(point.needs() == point.taken->bytes);
  CHECK(point.needs() <= point.budget);
  PlanFile file = plan_file({{.graph = graph, .budget = point.budget}}, point.outcome, {});
  driver::claim_footprint(file, terms, point.taken);
  const PlanVerdict verdict = check_plan(graph, file);
  CHECK_MESSAGE(verdict.kind == PlanVerdict::Kind::holds, verdict.reason);
  CHECK_FALSE(layout::reserved_fault(graph, file));
}

TEST_CASE("footprint: curves and fits of small graphs against plans of every order") {
  int asked = 0, missed = 0, larger = 0;
  for_small_graphs(samples(3, 60), [&](int, const FootprintTerms& terms, const Graph& graph,
                                       const Frontier& all, Random& random) {
    driver::CurveRequest request;
    request.footprint = terms;
    request.from = all.smallest()->needs();
    request.to = std::max(request.from, all.entries().back().needs());
    request.points = 4;
    request.settings.limits.work = sanitized(60'000, 500'000);
    const Tradeoff curve = driver::curve(driver::all_solvers(), graph, request);
    CHECK(curve.footprint == terms.kind);
    Ticks before = Ticks::max();
    for (const TradeoffPoint& point : curve.points) {
      ++asked;
      CHECK(point.outcome.status != Status::infeasible);
      missed += point.outcome.plan ? 0 : 1;
      if (!point.outcome.plan) continue;
      check_point(graph, terms, point);
      CHECK(point.outcome.cost.duration <= before);
      before = point.outcome.cost.duration;
    }
    REQUIRE(curve.smallest.has_value());
    check_point(graph, terms, *curve.smallest);

    driver::FitRequest wanted;
    wanted.footprint = terms;
    wanted.settings.limits.work = request.settings.limits.work;
    wanted.time_limit =
        Ticks(graph.total_time().count() * static_cast<std::int64_t>(100 + random.below(60)) / 100);
    const Fit fit = driver::fit(driver::all_solvers(), graph, wanted);
    REQUIRE(fit.point.has_value());
    check_point(graph, terms, *fit.point);
    CHECK(fit.point->needs() == fit.point->budget);
    CHECK(fit.point->outcome.cost.duration <= wanted.time_limit);
    const Bytes least = all.smallest(wanted.time_limit)->needs();
    CHECK(fit.floor <= least);
    larger += fit.point->budget > least ? 1 : 0;
  });
  MESSAGE("asked " << asked << " missed " << missed << " larger " << larger);
  CHECK(missed <= sanitized(asked, 1 + asked / 100));
  CHECK(larger <= sanitized(asked, asked / 40));
}

}  // namespace
}  // namespace lowtide
