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

// The ops that a rule makes and removes. All ids are those of the graph. The id of a new tensor is
// the number of the graph's tensors plus its index in `tensors`.
struct Replacement {
  struct Made {
    Op op;  // without a price
    // The op of the graph from whose price the price of this one can be estimated; invalid for a
    // copy.
    OpId like;
    std::vector<TensorId> inputs, outputs;
    std::vector<InPlacePair> in_place;
  };
  struct Reader {
    OpId op;
    std::vector<Operand> operands;  // all operands after the substitution
  };
  std::vector<Tensor> tensors;
  std::vector<Made> ops;  // in topological order
  std::vector<Reader> readers;
  // The ops to remove. Their outputs are removed as well, unless one of `ops` makes them.
  std::vector<OpId> gone;
};

class Rewriting;

struct Rule {
  std::string_view name;
  bool exact;                                 // no bit changes, on any device
  std::span<const std::string_view> anchors;  // kinds of ops
  // The ops of each match at this anchor, in the order of Substitute::ops. `make` may refuse a
  // match. No two anchors return the same match.
  std::vector<std::vector<OpId>> (*matches)(const Graph& graph, OpId anchor);
  void (*make)(Rewriting& rewriting);
  // The rule also inspects the producers and the other readers of what its ops read.
  bool looks_back = false;
};

std::span<const Rule* const> substitution_rules();
const Rule* find_substitution_rule(std::string_view name);  // null if there is none

// Throws TransformRefused, naming the op, if the rule does not apply to these ops, or if an op to
// remove has effects, or if another op must come after it without reading it (Op::after).
Replacement replacement_by(const Rule& rule, const Graph& graph, std::span<const OpId> ops,
                           const Labels& labels);

}  // namespace lowtide
