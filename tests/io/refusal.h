// What a reader says when it refuses.
#pragma once

#include <ostream>
#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

struct Refusal {
  std::string file, place, reason;
  bool operator==(const Refusal&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.file << " | " << refusal.place << " | " << refusal.reason;
}

// Runs `read`; "not refused" is the reason if it does not throw an InputError.
template <class Read>
Refusal refusal_of(Read read) {
  try {
    read();
  } catch (const InputError& error) {
    return {error.file(), error.place(), error.reason()};
  }
  return {"", "", "not refused"};
}

}  // namespace lowtide
