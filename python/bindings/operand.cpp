// lowtide/graph/operand.h: as a graph file has them.
#include "lowtide/graph/operand.h"

#include "objects.h"

namespace lowtide::python {

namespace {

nb::object literal(const Literal& value);

struct LiteralObject {
  nb::object operator()(std::monostate) const { return nb::none(); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(std::int64_t value) const { return nb::int_(value); }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(const std::string& value) const {
    return nb::str(value.c_str(), value.size());
  }
  nb::object operator()(const Literal::List& list) const {
    nb::list result;
    for (const Literal& item : list) result.append(literal(item));
    return result;
  }
  nb::object operator()(const Literal::Members& members) const {
    nb::dict result;
    for (const auto& [name, item] : members) result[name.c_str()] = literal(item);
    return result;
  }
};

nb::object literal(const Literal& value) { return std::visit(LiteralObject(), value.value); }

}  // namespace

nb::list operand_list(const std::vector<Operand>& list) {
  nb::list result;
  for (const Operand& operand : list) {
    nb::dict entry;
    entry["argument"] = operand.argument;
    if (operand.index >= 0) entry["index"] = operand.index;
    entry["tensor"] = operand.tensor.index();
    entry["shape"] = operand.shape;
    entry["strides"] = operand.strides;
    entry["offset"] = operand.offset;
    entry["dtype"] = operand.dtype;
    result.append(entry);
  }
  return result;
}

nb::dict argument_dict(const std::vector<Argument>& list) {
  nb::dict arguments;
  for (const Argument& argument : list) arguments[argument.name.c_str()] = literal(argument.value);
  return arguments;
}

}  // namespace lowtide::python
