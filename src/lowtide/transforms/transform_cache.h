// The transformed graphs of lists of transforms, cached: a list that was applied before costs a
// look-up, and a list that extends a cached one is applied from that one's graph on.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "lowtide/transforms/apply.h"

namespace lowtide {

class TransformCache {
 public:
  // The graph must outlive the cache.
  explicit TransformCache(const Graph& graph) : graph_(graph) {}
  TransformCache(const TransformCache&) = delete;
  TransformCache& operator=(const TransformCache&) = delete;

  const Graph& graph() const { return graph_; }
  // What apply_transforms returns or throws. Any thread may call this.
  std::shared_ptr<const Applied> apply(std::span<const Transform> transforms);
  // Adds a list that the caller has applied.
  std::shared_ptr<const Applied> add(Applied applied);

 private:
  using Entry = std::shared_ptr<const Applied>;

  // The cached list that is the longest prefix of this one; null if there is none.
  Entry longest_prefix(std::span<const Transform> transforms);
  void put(Entry entry);

  const Graph& graph_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used comes first
  std::size_t ops_ = 0;       // of all cached graphs together
};

}  // namespace lowtide
