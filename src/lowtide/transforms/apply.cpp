// Applies transforms in sequence. Independent substitutions are applied to one graph together.
#include "lowtide/transforms/apply.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/transforms/draft.h"
#include "lowtide/transforms/rules.h"
#include "lowtide/transforms/substitutes.h"

namespace lowtide {

namespace {

// The graph of the draft. Its sums may overflow, but only if prices are too large.
TransformedGraph graph_of(const Draft& draft) {
  try {
    return draft.finish();
  } catch (const InputError& error) {
    throw TransformRefused("", "the transformed graph is not valid: " + error.reason());
  }
}

// Applies transforms one after the other.
class Application {
 public:
  Application(const Graph& graph, bool one_by_one)
      : draft_(graph), made_(draft_.finish()), one_by_one_(one_by_one) {}
  // Continues after the transforms of `before`, which must outlive this object.
  Application(const Graph& graph, const Applied& before, bool one_by_one)
      : draft_(graph, before.now),
        before_(&before.now),
        count_(before.transforms.size()),
        one_by_one_(one_by_one) {}

  void add(const Transform& transform) {
    const std::size_t index = count_++;
    check_complete(transform);
    if (const auto* substitute = std::get_if<Substitute>(&transform)) {
      if (!pending_) pending_.emplace(draft_, now());
      if (!pending_->take(*substitute, index)) {
        finish_pending();
        pending_.emplace(draft_, now()).take(*substitute, index);
      }
      if (one_by_one_) finish_pending();
      return;
    }
    finish_pending();
    if (const auto* split = std::get_if<Split>(&transform))
      do_transform(draft_, now(), *split, index);
    if (const auto* hoist = std::get_if<Hoist>(&transform))
      do_transform(draft_, now(), *hoist, index);
    made_ = graph_of(draft_);
  }
  // Whether substitutions are pending. If so, an exception may be caused by one before the last.
  bool has_pending() const { return pending_ && pending_->count() > 0; }
  bool is_spoiled() const { return pending_ && pending_->is_spoiled(); }
  // Does not count the last transform, which was refused before it changed the draft.
  void forget_last() { --count_; }
  std::size_t next_op() const { return draft_.op_count(); }
  void finish_pending() {
    if (!pending_) return;
    pending_->finish();
    TransformedGraph made = graph_of(draft_);
    pending_.reset();
    made_ = std::move(made);
  }
  TransformedGraph take() {
    if (made_) return std::move(*made_);
    return *before_;
  }

 private:
  const TransformedGraph& now() const { return made_ ? *made_ : *before_; }

  Draft draft_;
  const TransformedGraph* before_ = nullptr;  // the start, unless that is the graph itself
  std::optional<TransformedGraph> made_;      // the graph of the draft after the last finish
  std::optional<Substitutes> pending_;        // consecutive substitutions, applied together
  std::size_t count_ = 0;
  bool one_by_one_;
};

// nullopt if one of several substitutions applied together is wrong: the caller applies them one by
// one to learn which.
std::optional<TransformedGraph> applied(const Graph& graph, std::span<const Transform> transforms,
                                        bool one_by_one) {
  Application application(graph, one_by_one);
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    const std::string place = "transforms/" + std::to_string(i);
    try {
      application.add(transforms[i]);
      if (i + 1 == transforms.size()) application.finish_pending();
    } catch (const InputError& error) {
      if (!one_by_one && application.has_pending()) return std::nullopt;
      if (dynamic_cast<const TransformRefused*>(&error) != nullptr)
        throw TransformRefused(place, error.reason());
      throw InputError(place + error.place(), error.reason());
    }
  }
  return application.take();
}

// Applies `given` and those of `more` that are legal. nullopt if a transform was refused after it
// had begun to change the draft: then it is removed from `more`, and the caller starts again.
std::optional<Applied> applied_that_hold(const Graph& graph, const Applied& given,
                                         std::vector<Substitute>& more, bool& one_by_one) {
  Application application(graph, given, one_by_one);
  std::vector<Transform> kept = given.transforms;
  for (std::size_t i = 0; i <= more.size(); ++i) {
    try {
      if (i == more.size()) {
        application.finish_pending();
        break;
      }
      std::size_t next = application.next_op();
      for (OpPrice& price : more[i].prices) price.of = OpId(next++);
      application.add(more[i]);
      kept.emplace_back(more[i]);
    } catch (const InputError&) {
      if (!application.is_spoiled()) {
        application.forget_last();
        continue;
      }
      // Several substitutions were applied together: only one by one shows which is wrong.
      if (one_by_one)
        more.erase(more.begin() + static_cast<std::ptrdiff_t>(std::min(i, more.size() - 1)));
      one_by_one = true;
      return std::nullopt;
    }
  }
  return Applied{std::move(kept), application.take()};
}

}  // namespace

TransformedGraph apply_transforms(const Graph& graph, std::span<const Transform> transforms) {
  std::optional<TransformedGraph> made = applied(graph, transforms, false);
  return made ? std::move(*made) : apply_one_by_one(graph, transforms);
}

TransformedGraph apply_one_by_one(const Graph& graph, std::span<const Transform> transforms) {
  return std::move(applied(graph, transforms, true).value());
}

TransformedGraph apply_further(const Graph& graph, const Applied& before,
                               std::span<const Transform> more) {
  try {
    Application application(graph, before, false);
    for (const Transform& transform : more) application.add(transform);
    application.finish_pending();
    return application.take();
  } catch (const InputError&) {
    // Apply the whole list from the beginning, so that the error names the transform and the ops
    // that were removed before it.
    std::vector<Transform> all = before.transforms;
    all.insert(all.end(), more.begin(), more.end());
    return apply_transforms(graph, all);
  }
}

Applied apply_those_that_hold(const Graph& graph, const Applied& given,
                              std::vector<Substitute> more, const std::function<bool()>& stops) {
  bool one_by_one = false;
  for (;;) {
    if (auto made = applied_that_hold(graph, given, more, one_by_one)) return std::move(*made);
    if (stops && stops()) more.clear();
  }
}

}  // namespace lowtide
