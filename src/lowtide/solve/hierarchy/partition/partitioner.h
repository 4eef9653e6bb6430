// The interface that every partitioner has, and the table that everything iterates over.
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
  virtual std::string_view summary() const = 0;  // what it is for, in a line
  virtual std::span<const OptionSpec> options() const { return {}; }
  // The same for the same graph and options. `options` were made for options(). Near-linear. Asks
  // `stop` again and again, at the latest after about a microsecond for each op; nothing if that
  // said yes.
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

// Every partitioner of ours, in the order in which people should read of them.
PartitionerTable make_partitioners();

}  // namespace lowtide::solve::partition
