// What the table of dimensions says of an op.
//
// Like the letters of an einsum: "mk,kn->mn" has three. A letter says that the indices along those
// dimensions of operands and results belong together and to no others, so that the op may be run
// on some of them alone. Operands that a letter does not name are taken whole; results that it does
// not name are sums over it, or say otherwise what they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  same,    // every part makes the same, of full size
};

// By what a part's named and summed results are multiplied.
enum class Weight : std::uint8_t {
  one,
  share,  // the part's share of the slices: the op divides by how many there are (a mean)
  total,  // one over the result made before (a count of targets), where the op would divide by the
          // part's: the part is run with "reduction" 2, a sum
};

struct Letter {
  std::vector<Along> operands, results;
  std::vector<Unnamed> unnamed;  // one for each result; of those that are named, without meaning
  Weight weight = Weight::one;
  // A slice holds so many neighbouring indices of the results, or a multiple: what is repeated is
  // not cut.
  std::int64_t block = 1;
  // The dimensions are of several extents: one crops another or is padded to it, at the end.
  bool crops = false;

  bool reduces() const;  // a result is a sum over it
};

struct Rule {
  std::vector<Letter> letters;
  // A sum that is still to be made may go through: the op is linear in the operands of one of these
  // lists, taken together, if all others are whole.
  std::vector<std::vector<std::size_t>> linear;
  // Operands of which no element is read.
  std::vector<std::size_t> unread;
  // It draws random numbers for every index, reads nothing, and so is run once, whole, before the
  // parts, which read slices of it.
  bool drawn = false;
  // What the op does with a dimension that no letter names: "sorts along" (dimension 0 of "self").
  // Empty: it "takes all of" it.
  std::string reason;
  // The kind is in the table.
  bool known = false;
};

std::string_view to_string(Weight weight);

}  // namespace lowtide::dimensions
