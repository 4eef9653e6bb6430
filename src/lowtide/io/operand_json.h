// Operands and arguments of ops, in graph files. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/graph/operand.h"
#include "lowtide/io/json.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io {

// A list of operands; their tensors, as they stand there and not yet checked, go to `tensors`.
// Null: of calls, whose operands are of no graph and name no tensor.
std::vector<Operand> read_operands(JsonValue list, std::vector<std::int64_t>* tensors,
                                   UnknownKeys& unknown);
// with_tensors: of a graph's op, else of a call, without tensors and offsets.
void append_operands(std::string& out, const std::vector<Operand>& operands,
                     bool with_tensors = true);

// An object of literals; {"float": "inf"}, "-inf" or "nan" stands for what JSON cannot write.
std::vector<Argument> read_arguments(JsonValue object);
void append_arguments(std::string& out, const std::vector<Argument>& arguments);

}  // namespace lowtide::io
