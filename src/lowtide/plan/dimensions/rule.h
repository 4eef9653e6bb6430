// The table of dimensions: for each kind of op, which dimensions of its operands and results go
// together (the D-Graph of MAGIS, ASPLOS 2024, section 4.1).
//
// Like the letters of an einsum: "mk,kn->mn" has three. A letter says that index x of the op along
// it takes index x of those operands' dimensions and makes index x of those results' dimensions, so
// that the op may be run on some of the indices alone. Operands that a letter does not name are
// taken whole; results that it does not name are sums over it, or do not depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::dimensions {

// A dimension of an operand or result of an op, both by their places in the op's lists.
struct Along {
  std::size_t item = 0, dim = 0;

  bool operator==(const Along&) const = default;
};

// What becomes of a result that a letter does not name.
enum class Unnamed : std::uint8_t {
  sum,     // the whole's is the sum of those of the parts
  before,  // decided by operands that are known before the parts: made once, whole (a count)
  mixed,   // neither: where it is needed the op does not carry the letter
};

// By what a part's named and summed results are multiplied.
enum class Weight : std::uint8_t {
  one,
  share,  // the part's share of the slices: the op divides by how many there are (a mean)
  total,  // the sum is divided by the result made before (a count of targets), not by the part's
};

struct Letter {
  std::vector<Along> operands, results;
  std::vector<Unnamed> unnamed;  // one for each result; of those that are named, without meaning
  Weight weight = Weight::one;
};

struct Rule {
  std::vector<Letter> letters;
  // A sum over parts may go through the op in place of an operand: the op is linear in the operands
  // listed, taken together; all others are taken whole. Empty for most kinds.
  std::vector<std::size_t> linear;
  // Why no part can make its share of what the op makes, where a part could do without operands:
  // "draws random numbers". Such an op is run whole, before the parts, and they read slices.
  std::string whole;
  // Why a dimension that no letter names is none: "sorts along it". Empty: "takes all of it".
  std::string reason;
};

// Of an op with operands and arguments as the operator's schema has them. A kind without a rule, or
// operands that do not fit the kind: no letters, and `reason` says so. Never throws for a graph
// that was built.
Rule rule_for(const Op& op);

// The kinds that the table knows, sorted.
std::vector<std::string_view> known_kinds();

}  // namespace lowtide::dimensions
