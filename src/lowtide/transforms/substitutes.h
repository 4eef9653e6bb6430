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

// What a substitution puts in the place of its ops, in ids of `now`, the graph of what the draft
// held before it or before some that it does not see; TransformRefused if it is not legal.
Replacement replacement_by(const Draft& draft, const TransformedGraph& now,
                           const Substitute& substitute);
// Puts it into the draft, all but the order. InputError (place: a JSON pointer into the transform)
// if it lacks a price.
void put(Draft& draft, const TransformedGraph& now, const Substitute& substitute, std::size_t index,
         const Replacement& made);

class Substitutes {
 public:
  // `now` is the graph of what the draft holds; both must outlive it.
  Substitutes(Draft& draft, const TransformedGraph& now);

  // Applies one more. Returns false, without any change, if the ones before must be finished first;
  // never for the first one. Throws as replacement_by and put.
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
  const std::size_t first_made_;  // the file's index of the first op that these make
  std::size_t count_ = 0;
  bool moves_ = false;  // the one that was taken moves others
  bool begun_ = false;
  std::string last_rule_;
  // Of the graph: what is gone or is read or made in another way; whose readers are others.
  std::vector<std::uint8_t> ops_, tensors_;
  // Of each tensor of the graph who changes it: one at most, as all who do so read it.
  std::vector<OpId> mutators_;
  // Mutators that what the last one makes has to stand right before.
  std::vector<OpId> before_;
};

}  // namespace lowtide
