// Reads HLO text, as XLA, JAX, torch-xla and TensorFlow write it, as a graph. docs/reference/hlo.md
// says what of a module becomes what of a graph. Private to the room: read_graph calls it.
#pragma once

#include <string_view>

#include "lowtide/io/graph_file.h"

namespace lowtide::io {

// Whether a text begins as a module of HLO does, after comments and white space.
bool is_hlo_text(std::string_view text);

// InputError (place: line and column; the reason names the instruction) for text that is no module,
// that is cut off, or whose parts do not fit. Warns of a module that is not scheduled, of loops
// without a known number of trips, and of opcodes that are not known.
GraphFile read_hlo(std::string_view text, const HloOptions& options);

}  // namespace lowtide::io
