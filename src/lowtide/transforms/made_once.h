// What lists of transforms make of a graph, for whoever asks about many lists, and often about the
// same one: each is made once, and one that goes on from another is made from that.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "lowtide/transforms/apply.h"

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

}  // namespace lowtide
