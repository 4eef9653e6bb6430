// Python values as what a JSON file holds, without a text of them.
#pragma once

#include <nanobind/nanobind.h>

#include "lowtide/io/json.h"

namespace lowtide::python {

// Of dicts with keys that are str, lists, tuples, str, int, float, bool and None. InputError, with
// a JSON pointer to the place, for anything else, and for floats that JSON has no number for.
io::JsonDocument document_of(nanobind::handle value);

}  // namespace lowtide::python
