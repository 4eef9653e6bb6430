// Substitutions: the table of rules, and the replacement that a rule makes for given ops.
//
// Each rule is a file in rules/. Its opening comment gives pattern, replacement, where it loses,
// and whether bits change. Matching starts from an anchor, an op of one of the rule's kinds, and
// inspects only the neighbours of that op, never pairs of ops of the whole graph.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/transforms/region.h"

namespace lowtide {

// All ids are those of the graph; of a tensor that the rule makes it is the number of the graph's
// tensors plus its place in `tensors`.
struct Replacement {
  struct Made {
    Op op;  // without a price
    // The op of the graph that it is like, as a price can be told by; invalid for a copy.
    OpId like;
    std::vector<TensorId> inputs, outputs;
    std::vector<InPlacePair> in_place;
  };
  struct Reader {
    OpId op;
    std::vector<Operand> operands;  // all of them, as they are now
  };
  std::vector<Tensor> tensors;
  std::vector<Made> ops;  // each after those that it needs
  std::vector<Reader> readers;
  std::vector<OpId> gone;  // with what they made, unless one of `ops` makes it
};

class Rewriting;

struct Rule {
  std::string_view name;
  bool exact;                                 // no bit changes, on any device
  std::span<const std::string_view> anchors;  // kinds of ops
  // The ops of each match at this anchor, as Substitute::ops has them. It may propose what is
  // refused, but the same from no two anchors.
  std::vector<std::vector<OpId>> (*matches)(const Graph& graph, OpId anchor);
  void (*make)(Rewriting& rewriting);
  // It asks who makes what its ops read, and who else reads that.
  bool looks_back = false;
};

std::span<const Rule* const> substitution_rules();
const Rule* find_substitution_rule(std::string_view name);  // null if there is none

// TransformRefused, naming the op, where the rule does not hold for these ops, or an op that it
// takes away has effects or is waited for by others.
Replacement replacement_by(const Rule& rule, const Graph& graph, std::span<const OpId> ops,
                           const Labels& labels);

}  // namespace lowtide
