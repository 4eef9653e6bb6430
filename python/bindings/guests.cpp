// lowtide/solve/hierarchy/hiremate/hiremate.h: with parts that are written in Python.
#include "guests.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/solve/hierarchy/hiremate/hiremate.h"

#include "convert.h"

namespace lowtide::python {

namespace {

std::string class_of(nb::handle object) {
  return nb::borrow<nb::str>(object.type().attr("__name__")).c_str();
}

bool has_method(nb::handle object, const char* name) {
  return nb::hasattr(object, name) && PyCallable_Check(object.attr(name).ptr()) != 0;
}

}  // namespace

bool Guests::may_be(const std::string& solver, std::string_view option) {
  return solver == "hiremate" && (option == "partition" || option == "block" || option == "top");
}

std::string Guests::text_of_option(std::string_view option, nb::handle value) {
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value))
    return word(option, value);
  std::string text;
  for (nb::handle entry : value) text += (text.empty() ? "" : ",") + word(option, entry);
  return text;
}

std::string Guests::word(std::string_view option, nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return std::string(text_of(value));
  const bool partitions = option == "partition";
  const char* method = partitions ? "partition" : "options";
  const std::string place = fmt::format("option {}", option);
  if (PyType_Check(value.ptr()) != 0)
    throw InputError(place, fmt::format("{} is a class; give an object of it",
                                        nb::str(value.attr("__name__")).c_str()));
  if (!has_method(value, method))
    throw InputError(place,
                     fmt::format("{} is neither a name nor an object with a method {}({})",
                                 kind_of(value), method, partitions ? "graph" : "block, budgets"));
  std::vector<Guest>& guests = partitions ? partitioners_ : block_solvers_;
  for (const Guest& guest : guests)
    if (guest.is.is(value)) return guest.name;
  const auto ours = solve::hierarchy::make_block_solvers();
  const auto cutters = solve::partition::make_partitioners();
  const auto taken = [&](const std::string& name) {
    return (partitions ? cutters.find(name) != nullptr : ours.find(name) != nullptr) ||
           std::ranges::any_of(guests, [&](const Guest& guest) { return guest.name == name; });
  };
  const std::string kind = class_of(value);
  std::string name = kind;
  for (int i = 2; taken(name); ++i) name = fmt::format("{}-{}", kind, i);
  guests.push_back({name, nb::borrow(value)});
  return name;
}

std::unique_ptr<solve::Solver> Guests::make_hiremate(const GraphObject& graph) const {
  auto partitioners = solve::partition::make_partitioners();
  auto block_solvers = solve::hierarchy::make_block_solvers();
  for (const Guest& guest : partitioners_) partitioners.add(make_guest_partitioner(guest, graph));
  for (const Guest& guest : block_solvers_)
    block_solvers.add(make_guest_block_solver(guest, graph));
  return solve::hierarchy::make_hiremate(std::move(partitioners), std::move(block_solvers));
}

std::string kind_of(nb::handle object) { return object.is_none() ? "None" : class_of(object); }

OpId op_from(nb::handle index, const Graph& graph, const std::string& place) {
  if (PyIndex_Check(index.ptr()) == 0)
    throw InputError(place, fmt::format("{} where the index of an op should be", kind_of(index)));
  const nb::object number = nb::steal(PyNumber_Index(index.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || value < 0 || static_cast<std::size_t>(value) >= graph.op_count())
    throw InputError(
        place, fmt::format("{} is no op; there are {}", nb::str(number).c_str(), graph.op_count()));
  return OpId(static_cast<std::size_t>(value));
}

nb::iterator elements_of(nb::handle list, const std::string& place, const char* of) {
  if (list.is_none() || nb::isinstance<nb::str>(list) || nb::isinstance<nb::dict>(list) ||
      !nb::hasattr(list, "__iter__"))
    throw InputError(place, fmt::format("{} where a list of {} should be", kind_of(list), of));
  return nb::iter(list);
}

}  // namespace lowtide::python
