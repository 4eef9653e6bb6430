#include "lowtide/io/hlo/describe.h"

#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/json.h"

namespace lowtide::io::hlo {

namespace {

// JAX's names of what differentiation made: jit(step)/transpose(jvp())/dot_general.
std::string_view phase_of(std::string_view op_name) {
  if (op_name.find("transpose(") != std::string_view::npos) return "backward";
  if (op_name.find("jvp(") != std::string_view::npos) return "forward";
  return {};
}

}  // namespace

Op describe(const Instruction& one, std::int64_t operations) {
  Op op;
  op.name = one.name;
  op.kind = "hlo." + std::string(one.opcode);
  op.origin = string_under(one.attribute("metadata"), "op_name");
  op.phase = phase_of(op.origin);
  op.attributes = "{\"flops\":" + std::to_string(operations);
  for (const std::string_view name : {"kind", "custom_call_target", "sharding"}) {
    std::string_view value = one.attribute(name);
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    if (!value.empty()) op.attributes += "," + json_string(name) + ":" + json_string(value);
  }
  op.attributes += "}";
  return op;
}

}  // namespace lowtide::io::hlo
