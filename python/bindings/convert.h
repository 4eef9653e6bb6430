// Python values as the words of the core, refused in the words of the command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>
// A file without these would take the same types for classes of its own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/terms.h"

namespace lowtide::python {

namespace nb = nanobind;

// What a str holds, as long as it lives; UnicodeEncodeError for half a surrogate pair.
std::string_view text_of(nb::handle str);
// The text of a str or bytes; TypeError for anything else.
std::string_view text_or_bytes(nb::handle text);
// A str or os.PathLike, as the file system has it.
std::string path_of(nb::handle path);
// An int (bytes), or a str as the command takes it. InputError whose place is `what` and the value.
Bytes budget_of(nb::handle budget, const Graph& graph, const char* what = "budget");
// None, a Device, a built-in one's name, or the path of a file.
std::optional<Device> device_from(nb::handle device);
// None, a str as the command takes it, or names: see parse_techniques.
Techniques techniques_of(nb::handle techniques, bool has_machine);

// The keyword arguments that say what a plan may use.
struct GivenTerms {
  const std::string& order;
  nb::handle device;
  const std::optional<std::string>& link;
  nb::handle techniques;
  nb::handle derate;       // None, a str as the command takes it ("10%"), or a fraction (0.1)
  nb::handle host_budget;  // None, an int (bytes), or a str as the command takes it
  nb::handle costs;        // None, or the path of a table of measured calls
  nb::handle transforms = nb::none();  // None, or dicts as a plan file has them

  bool any() const {
    return order != "free" || !device.is_none() || link || !techniques.is_none() ||
           !derate.is_none() || !host_budget.is_none() || !costs.is_none() || !transforms.is_none();
  }
};
Terms terms_of(const GivenTerms& given, const Graph& graph);
// None, or the path of a table of measured calls, which is read.
std::shared_ptr<const CostTable> costs_from(nb::handle path);
// A list of dicts as a plan file has them, both ways.
std::vector<Transform> transforms_from(nb::handle list);
nb::object transforms_list(const std::vector<Transform>& transforms);
// "free" or "given"; "time" or "memory".
Order order_of(const std::string& word);
Objective objective_of(const std::string& word);
// A str is a percentage as the command takes it ("5%"), a number a fraction (0.05).
Ticks overhead_limit_of(nb::handle overhead, const Graph& graph);
// An int is ticks, a str the overhead that the plan may have.
std::optional<Ticks> time_limit_of(nb::handle limit, const Graph& graph);

// The dict that a plan file has of it.
nb::object machine_or_none(const std::optional<Machine>& machine);
// The other way round. InputError (place: machine) for what is none.
std::optional<Machine> machine_from(nb::handle dict);

nb::list names_from(const Techniques& techniques);

// As Python warnings.
void warn(const std::string& name, const std::vector<std::string>& warnings);

// A count that is not known is None.
inline nb::object if_any(bool there, std::int64_t value) {
  return there ? nb::object(nb::int_(value)) : nb::object(nb::none());
}
inline nb::object if_any(bool there, double value) {
  return there ? nb::object(nb::float_(value)) : nb::object(nb::none());
}

}  // namespace lowtide::python
