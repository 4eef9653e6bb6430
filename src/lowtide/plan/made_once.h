// What lists of transforms make of a graph, for whoever asks about many lists, and often about the
// same one: each is made once, and one that goes on from another is made from that.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "lowtide/plan/problem.h"
#include "lowtide/plan/transforms/apply.h"

namespace lowtide {

class MadeOnce {
 public:
  // The graph must outlive it.
  explicit MadeOnce(const Graph& graph) : graph_(graph) {}
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;

  const Graph& graph() const { return graph_; }
  // The same as apply_transforms, which throws as well. From any thread.
  std::shared_ptr<const Applied> of(std::span<const Transform> transforms);
  // One that somebody has made.
  std::shared_ptr<const Applied> keep(Applied made);

 private:
  using Kept = std::shared_ptr<const Applied>;

  // Of the longest list that this one begins with.
  Kept longest(std::span<const Transform> transforms);
  void put(Kept made);

  const Graph& graph_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // what was asked for last comes first
  std::size_t ops_ = 0;   // of all of them
};

// What these make of the problem's graph: out of its `made_once`, where it has one of this graph.
std::shared_ptr<const Applied> applied_to(const Problem& problem,
                                          std::span<const Transform> transforms);
std::shared_ptr<const Applied> keep_applied(const Problem& problem, Applied made);

}  // namespace lowtide
