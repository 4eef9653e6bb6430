// Transforms, as plan files list them. Private to the room; plan_json.h has the readers of files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/io/json.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/transforms/transform.h"

namespace lowtide::io {

// The index of an op or tensor of any graph.
std::int32_t read_index(JsonValue value);

// A list of transforms. InputError for an unknown kind, a missing field or price, and all that
// check_complete refuses.
std::vector<Transform> read_transforms(JsonValue list, UnknownKeys& unknown);

// The list as it stands under the key of a plan file; "[]" if it is empty.
std::string transforms_json(const std::vector<Transform>& transforms);

}  // namespace lowtide::io
