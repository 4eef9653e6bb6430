// What the table of dimensions says about an op.
//
// A letter is like a letter of an einsum: "mk,kn->mn" has three. It joins dimensions of operands
// and results whose indices belong together, so that the op may be run on some of these indices
// alone. An operand that a letter does not name is read whole. A result that it does not name is a
// sum over the letter, or has another stated meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::dimensions {

// A dimension of an operand or result: `item` is the index in the op's list of these.
struct Along {
  std::size_t item = 0, dim = 0;

  bool operator==(const Along&) const = default;
};

// The meaning of a result that a letter does not name.
enum class Unnamed : std::uint8_t {
  sum,     // the whole is the sum of the parts' results
  before,  // depends only on operands known before the parts: made once, whole (a count)
  same,    // equal in every part, of full size
};

// The factor of a part's named and summed results.
enum class Weight : std::uint8_t {
  one,
  share,  // the part's share of the slices: the op divides by their number (a mean)
  total,  // one over the result made before (a count of targets), where the op would divide by the
          // part's: the part is run with "reduction" 2, a sum
};

struct Letter {
  std::vector<Along> operands, results;
  std::vector<Unnamed> unnamed;  // one for each result; ignored for a named result
  Weight weight = Weight::one;
  // A slice has this many neighbouring indices of the results, or a multiple: repeated elements are
  // not divided.
  std::int64_t block = 1;
  // The dimensions differ in extent: one crops another, or is padded to it, at the end.
  bool crops = false;

  bool reduces() const;  // a result is a sum over it
};

struct Rule {
  std::vector<Letter> letters;
  // Operands through which a partial sum may pass: the op is linear in the operands of each list,
  // taken together, if all others are whole.
  std::vector<std::vector<std::size_t>> linear;
  // Operands whose elements are not read.
  std::vector<std::size_t> unread;
  // The op draws a random number for every index and reads nothing. So it is run once, whole,
  // before the parts, which read slices of its result.
  bool drawn = false;
  // What the op does with a dimension that no letter names: "sorts along" (dimension 0 of "self").
  // Empty: "takes all of".
  std::string reason;
  // Whether the table has the kind.
  bool known = false;
};

std::string_view to_string(Weight weight);

}  // namespace lowtide::dimensions
