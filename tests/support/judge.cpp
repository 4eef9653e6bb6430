// One file for the whole program; tests that judge run on one thread.
#include "support/judge.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

#include "support/case_writer.h"
#include "support/print.h"

namespace lowtide {

namespace {

// Whether a plan file can say all that the problem demands.
bool fits_a_file(const Problem& problem, const Plan& plan) {
  return problem.budget >= Bytes(0) && !problem.time_limit &&
         (!plan.machine || problem.machine == plan.machine) &&
         std::all_of(plan.steps.begin(), plan.steps.end(),
                     [](const Step& step) { return step.index >= 0; });
}

class Recorder {
 public:
  Recorder() {
    if (const char* stride = std::getenv("LOWTIDE_RECORD_STRIDE")) stride_ = std::atoi(stride);
    if (const char* path = std::getenv("LOWTIDE_RECORD")) file_.open(path, std::ios::app);
  }
  void record(const Problem& problem, const Plan& plan, const Verdict& verdict) {
    if (file_.is_open() && fits_a_file(problem, plan) && count_++ % stride_ == 0)
      writer_.write(problem, plan, verdict);
  }

 private:
  std::ofstream file_;
  CaseWriter writer_{file_};
  std::int64_t stride_ = 1, count_ = 0;
};

}  // namespace

Verdict judge(const Problem& problem, const Plan& plan) {
  static Recorder recorder;
  Verdict verdict = verify(problem, plan);
  recorder.record(problem, plan, verdict);
  return verdict;
}

Cost accept(const Graph& graph, const Plan& plan) {
  const Verdict verdict =
      judge({.graph = graph, .budget = Bytes::max(), .machine = plan.machine}, plan);
  const std::string why = verdict.violation ? verdict.violation->reason : "";
  CHECK_MESSAGE(verdict.ok, why);
  return verdict.cost;
}

void refuse(const Graph& graph, const Plan& plan, std::size_t step, std::string_view why) {
  const Verdict verdict =
      judge({.graph = graph, .budget = Bytes::max(), .machine = plan.machine}, plan);
  CHECK_FALSE(verdict.ok);
  REQUIRE(verdict.violation);
  CHECK(verdict.violation->step == step);
  CHECK_MESSAGE(verdict.violation->reason.find(why) != std::string::npos,
                verdict.violation->reason);
}

}  // namespace lowtide
