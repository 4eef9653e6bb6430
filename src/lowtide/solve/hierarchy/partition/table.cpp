// The table of partitioners: a new one adds a line here.
#include "lowtide/solve/hierarchy/partition/chain.h"
#include "lowtide/solve/hierarchy/partition/h_partition.h"
#include "lowtide/solve/hierarchy/partition/multilevel.h"
#include "lowtide/solve/hierarchy/partition/origin.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"
#include "lowtide/solve/hierarchy/partition/repeat.h"

namespace lowtide::solve::partition {

PartitionerTable make_partitioners() {
  PartitionerTable table;
  table.add(make_h_partition());
  table.add(make_chain());
  table.add(make_repeat());
  table.add(make_origin());
  table.add(make_multilevel());
  return table;
}

const Partitioner* PartitionerTable::find(std::string_view name) const {
  for (const auto& one : all_)
    if (one->name() == name) return one.get();
  return nullptr;
}

}  // namespace lowtide::solve::partition
