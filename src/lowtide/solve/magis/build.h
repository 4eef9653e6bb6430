// Turns a state into a plan: builds the transformed graph, and applies the state's actions in each
// part. See build.cpp. Private to `magis`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/device/device.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/rewrite/fission_tree.h"
#include "lowtide/solve/magis/evaluate.h"

namespace lowtide::solve::magis {

// The start of a search: the problem's graph, after transforms that all states share.
struct Base {
  std::vector<Transform> transforms;
  std::optional<TransformedGraph> made;  // there if transforms may be used
  const Graph* graph = nullptr;          // the made graph, or the problem's
};

struct BuiltPlan {
  Plan plan;
  Cost cost;
  Ticks least;  // of the made graph, with all ops once
};

class Builder {
 public:
  // All arguments must outlive it. `costs` may be null.
  Builder(const Problem& problem, const Base& base, const rewrite::FissionTree& tree,
          const Device& device, const CostTable* costs)
      : problem_(problem), base_(base), tree_(tree), device_(device), costs_(costs) {}

  // The plan, on the problem's own graph, with its transforms; transfers are placed within `budget`
  // where possible. Empty if the splits are refused together, if the limits stop it, or if more ops
  // than rewrite::kMostMadeOps would be made.
  std::optional<BuiltPlan> plan(const View& view, const Actions& actions, Bytes budget,
                                Limits& limits);

 private:
  // The graph that a fission makes, and how its ops relate to those of the base.
  struct MadeView {
    std::vector<Transform> transforms;
    std::optional<TransformedGraph> made;  // none: the base itself
    const Graph* graph = nullptr;
    std::vector<std::vector<OpId>> parts;               // by the base's op; one outside of regions
    std::vector<std::vector<std::vector<OpId>>> joins;  // by the base's op and part
    std::vector<std::vector<OpId>> before;              // by region: made once, ahead of all parts
    std::vector<OpId> base;                             // by op; invalid for what is none's part
    std::vector<std::size_t> part;
  };
  const MadeView* made(const View& view, Limits& limits);
  std::optional<MadeView> make(const View& view, Limits& limits) const;
  bool find_parts(const View& view, MadeView& found) const;
  std::vector<Event> in_order_of_view(const View& view, const MadeView& on,
                                      const Actions& actions) const;
  std::vector<Event> events(const View& view, const MadeView& on, const Actions& actions) const;
  void add(const View& view, const MadeView& on, const Actions& actions, OpId op, std::size_t part,
           std::vector<Event>& events) const;
  TensorId tensor(const View& view, const MadeView& on, Slot slot, std::size_t part) const;

  const Problem& problem_;
  const Base& base_;
  const rewrite::FissionTree& tree_;
  const Device& device_;
  const CostTable* costs_;
  std::map<rewrite::Fission, std::unique_ptr<const MadeView>> made_;  // a few
  std::set<rewrite::Fission> refused_;
};

}  // namespace lowtide::solve::magis
