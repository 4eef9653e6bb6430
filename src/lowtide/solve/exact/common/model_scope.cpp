// The models allow recomputation only, and fix one order of first computations.
#include "lowtide/solve/exact/common/model_scope.h"

namespace lowtide::solve::exact {

std::string order_words(const Problem& problem, bool started) {
  return started && problem.order == Order::free ? "in the start's order" : "in the given order";
}

Support small_enough(const Problem& problem, std::size_t most, std::string_view model) {
  if (problem.machine) return Support::no("it recomputes only and cannot use a link to the host");
  if (problem.graph.op_count() > most)
    return Support::no("its " + std::string(model) +
                       " grows with the square of the ops, and more than " + std::to_string(most) +
                       " are too many");
  return least_time_only(problem);
}

ProblemWithoutInPlace::ProblemWithoutInPlace(const Problem& problem) : original_(problem) {
  if (problem.graph.has_overwrites()) graph_ = Graph(problem.graph).without_in_place();
}

Problem ProblemWithoutInPlace::problem() const {
  return with_graph(original_, graph_ ? *graph_ : original_.graph);
}

}  // namespace lowtide::solve::exact
