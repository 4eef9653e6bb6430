// One transform after the other, each on the graph of those before it.
#include "lowtide/plan/transforms/apply.h"

#include <string>
#include <utility>

#include "lowtide/plan/transforms/draft.h"
#include "lowtide/plan/transforms/rules.h"

namespace lowtide {

namespace {

// What its links and sums make of it: only prices can be too much for them.
Transformed finished(const Draft& draft) {
  try {
    return draft.finish();
  } catch (const InputError& error) {
    throw TransformRefused("", "the graph that it makes is none: " + error.reason());
  }
}

}  // namespace

Transformed apply_transforms(const Graph& graph, std::span<const Transform> transforms) {
  Draft draft(graph);
  Transformed now = draft.finish();
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    const std::string place = "transforms/" + std::to_string(i);
    try {
      check_complete(transforms[i]);
      std::visit([&](const auto& any) { do_transform(draft, now, any, i); }, transforms[i]);
      now = finished(draft);
    } catch (const TransformRefused& error) {
      throw TransformRefused(place, error.reason());
    } catch (const InputError& error) {
      throw InputError(place + error.place(), error.reason());
    }
  }
  return now;
}

}  // namespace lowtide
