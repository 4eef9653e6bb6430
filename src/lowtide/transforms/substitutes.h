// Consecutive substitutions, applied together if none inspects what another has changed. Private to
// the folder. See substitutes.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/transforms/draft.h"
#include "lowtide/transforms/substitution.h"

namespace lowtide {

// The replacement that a substitution makes, in ids of `now`. `now` is the graph of the draft, or
// of the draft before other substitutions whose ops this one does not inspect. Throws
// TransformRefused for an illegal substitution.
Replacement replacement_by(const Draft& draft, const TransformedGraph& now,
                           const Substitute& substitute);
// Puts the replacement into the draft, except into its order. Throws InputError (with a JSON
// pointer into the transform) if a price is missing.
void put(Draft& draft, const TransformedGraph& now, const Substitute& substitute, std::size_t index,
         const Replacement& made);

class Substitutes {
 public:
  // `now` is the graph of the draft; both must outlive this object.
  Substitutes(Draft& draft, const TransformedGraph& now);

  // Applies one more substitution. Returns false, without any change, if the ones before must be
  // finished first; never for the first one. Throws as replacement_by and put.
  bool take(const Substitute& substitute, std::size_t index);
  std::size_t count() const { return count_; }
  // Whether a substitution threw after it had begun to change the draft, which is then unusable.
  bool is_spoiled() const { return begun_; }
  // Inserts the new ops into the draft's order.
  void finish();

 private:
  bool sees_none(const Substitute& substitute) const;
  bool moves_none(const Replacement& made);
  void touch(const Replacement& made);

  Draft& draft_;
  const TransformedGraph& now_;
  const std::size_t first_made_;  // file index of the first op that the substitutions make
  std::size_t count_ = 0;
  bool moves_ = false;  // the last substitution moves ops that it does not make
  bool begun_ = false;
  std::string last_rule_;
  // Marks by id of the graph. ops_: removed, with other operands, or with another position.
  // tensors_: removed, or with another producer or other readers.
  std::vector<std::uint8_t> ops_, tensors_;
  // The op that mutates each tensor. There is at most one, since a mutating op also reads.
  std::vector<OpId> mutators_;
  // Mutators that must come directly after ops which the last substitution makes.
  std::vector<OpId> before_;
};

}  // namespace lowtide
