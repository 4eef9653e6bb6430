// The text of errors: "file: place: reason".
#include "lowtide/base/error.h"

#include <utility>

namespace lowtide {

namespace {
std::string compose(const std::string& file, const std::string& place, const std::string& reason) {
  std::string text = file;
  for (const std::string* part : {&place, &reason}) {
    if (part->empty()) continue;
    if (!text.empty()) text += ": ";
    text += *part;
  }
  return text;
}
}  // namespace

InputError::InputError(std::string place, std::string reason, std::string file)
    : std::runtime_error(compose(file, place, reason)),
      file_(std::move(file)),
      place_(std::move(place)),
      reason_(std::move(reason)) {}

void check(bool condition, std::string_view what, std::source_location where) {
  if (condition) return;
  throw InternalError("broken invariant: " + std::string(what) + " (" + where.file_name() + ":" +
                      std::to_string(where.line()) + ")");
}

}  // namespace lowtide
