// How instructions and their arrays are called in a graph: in XLA's words. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// Name, kind ("hlo.dot"), phase and origin of an op; its attributes have the operations ("flops"),
// sharding, the kind of a fusion and the target of a custom call.
Op describe(const Instruction& instruction, std::int64_t operations);

// Calls visit(name, leaf) for each array of the shape: "fusion.3", or "fusion.3{1,0}" in a tuple.
template <class Visit>
void for_each_named_leaf(std::string_view name, const Shape& shape, const Visit& visit,
                         const std::string& index = {}) {
  if (!shape.is_tuple()) {
    visit(std::string(name) + (index.empty() ? "" : "{" + index + "}"), shape);
    return;
  }
  for (std::size_t i = 0; i < shape.elements.size(); ++i)
    for_each_named_leaf(name, shape.elements[i], visit,
                        index + (index.empty() ? "" : ",") + std::to_string(i));
}

}  // namespace lowtide::io::hlo
