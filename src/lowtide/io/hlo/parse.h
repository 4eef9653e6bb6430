// HLO text as XLA writes it (--xla_dump_hlo_as_text, as_text("hlo"), compiled.as_text()): with
// and without '%', types of operands, layouts and metadata. Private to the room.
#pragma once

#include <string_view>

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// InputError (place: line and column; the reason names the instruction) for broken syntax, unknown
// number types, names that are used twice or before they are defined, computations that are not in
// the text, parameters whose numbers have gaps, and a module without instructions.
Module parse_module(std::string_view text);

}  // namespace lowtide::io::hlo
