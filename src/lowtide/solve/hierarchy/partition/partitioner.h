// The interface of partitioners, and their table.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/solve/interface/options.h"

namespace lowtide::solve::partition {

class Partitioner {
 public:
  virtual ~Partitioner() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // its purpose, in one line
  virtual std::span<const OptionSpec> options() const { return {}; }
  // The same result for the same graph and options. `options` were made for options(). Near-linear.
  // Returns nullopt if `stop` returned true, and polls it at intervals of at most about a
  // microsecond for each op.
  virtual std::optional<Partition> partition(const Graph& graph, const Options& options,
                                             const std::function<bool()>& stop = {}) const = 0;
};

class PartitionerTable {
 public:
  void add(std::unique_ptr<Partitioner> one) { all_.push_back(std::move(one)); }
  std::span<const std::unique_ptr<Partitioner>> all() const { return all_; }
  const Partitioner* find(std::string_view name) const;  // null if there is none

 private:
  std::vector<std::unique_ptr<Partitioner>> all_;
};

// All built-in partitioners, in the order of the documentation.
PartitionerTable make_partitioners();

}  // namespace lowtide::solve::partition
