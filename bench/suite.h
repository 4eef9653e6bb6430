// What is measured: graphs with their budgets and orders.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::bench {

struct Row {
  std::string set;    // the table that it belongs to
  std::string graph;  // a file, or a generated graph: "resnet-1000", of seed 7 "resnet-1000-7"
  std::vector<std::string> budgets, orders, solvers;
  bool ablation = false;  // again for every part and every switch of the solvers
};

// A CSV file "set,graph,budgets,orders,solvers,variants" whose lists are separated by spaces and
// whose variants are "base" or "each"; lines that start with # are comments. Throws InputError.
std::vector<Row> read_suite(const std::string& path);

// Puts `data` where a graph's path begins with DATA/, and every graph file of a folder (a path that
// ends in /) in its place. What is not there goes to `absent`.
std::vector<Row> find_graphs(const std::vector<Row>& rows, const std::string& data,
                             std::vector<std::string>& absent);

// "folder/name" of a file: collections name their graphs after the same networks.
std::string graph_name(const std::string& source);
// Throws InputError.
Graph open_graph(const std::string& source);

}  // namespace lowtide::bench
