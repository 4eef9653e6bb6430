// Named graphs for the conformance suite: each shows one thing that a solver may get wrong. Every
// bug that a random graph finds leaves one here.
#pragma once

#include <string>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

struct Case {
  std::string name;
  Graph graph;
};

// Small enough for brute force.
std::vector<Case> small_cases();

// Training graphs and random layers of about so many ops, one of each generated kind.
std::vector<Case> large_cases(std::size_t ops);

}  // namespace lowtide
