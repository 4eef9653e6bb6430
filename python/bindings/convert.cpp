#include "convert.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lowtide/base/error.h"
#include "lowtide/io/costs_json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/plan/budget.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"

#include "document.h"

namespace lowtide::python {

namespace {

// Any integer as its digits, so that one beyond 64 bits is refused in words too.
std::optional<std::string> digits_of(nb::handle value) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) return std::nullopt;
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  return std::string(nb::str(index).c_str());
}

// The fraction 0.05 as "5%", without the error that 100 x 0.07 has.
std::string percentage(double fraction) {
  char text[512];
  const auto end = std::to_chars(text, text + sizeof text, fraction, std::chars_format::fixed).ptr;
  std::string digits(text, end);
  auto point = digits.find('.');
  if (point == std::string::npos)
    point = digits.size();
  else
    digits.erase(point, 1);
  if (digits.size() < point + 2) digits.append(point + 2 - digits.size(), '0');
  digits.insert(point + 2, ".");
  digits.erase(0, std::min(digits.find_first_not_of('0'), point + 1));
  if (digits.ends_with('.')) digits.pop_back();
  return digits + "%";
}

// A share as the command takes it, which Python may say as a fraction, too.
std::string percentage_text(const std::string& what, nb::handle share) {
  if (nb::isinstance<nb::str>(share)) return std::string(text_of(share));
  const double fraction = PyFloat_AsDouble(share.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const std::string shown = nb::str(share).c_str();
  if (!(fraction >= 0) || !std::isfinite(fraction))
    throw InputError(what + " " + shown,
                     "is no fraction of 0 or more; 0.05 and \"5%\" are the same");
  const std::string text = percentage(fraction);
  try {
    parse_percentage(text, what);
  } catch (const InputError&) {
    throw InputError(what + " " + shown, "too large, or too many digits; write \"5%\" or 0.05");
  }
  return text;
}

// Bytes as the command takes them.
std::string size_text(const char* what, nb::handle size) {
  if (nb::isinstance<nb::str>(size)) return std::string(text_of(size));
  if (auto digits = digits_of(size)) return *digits;
  throw nb::type_error(
      (std::string(what) + " must be an int (bytes) or a str (\"64GiB\")").c_str());
}

// A list with commas.
std::string list_text(nb::handle techniques) {
  if (techniques.is_none()) return "default";
  if (nb::isinstance<nb::str>(techniques)) return std::string(text_of(techniques));
  std::string list;
  for (nb::handle name : techniques) {
    if (!nb::isinstance<nb::str>(name)) throw nb::type_error("techniques are named by str");
    list += (list.empty() ? "" : ",") + std::string(text_of(name));
  }
  return list;
}

}  // namespace

Techniques techniques_of(nb::handle techniques, bool has_machine) {
  return parse_techniques(list_text(techniques), has_machine);
}

std::vector<Transform> transforms_from(nb::handle list) {
  std::vector<std::string> warnings;
  auto file = io::read_transforms(document_of(list), "transforms", warnings);
  warn("transforms", warnings);
  return std::move(file.transforms);
}

nb::object transforms_list(const std::vector<Transform>& transforms) {
  return nb::module_::import_("json").attr("loads")(io::write_transforms(transforms));
}

std::shared_ptr<const CostTable> costs_from(nb::handle path) {
  if (path.is_none()) return nullptr;
  io::CostFile file = io::read_costs(path_of(path));
  warn(path_of(path), file.warnings);
  return std::make_shared<const CostTable>(std::move(file.table));
}

Terms terms_of(const GivenTerms& given, const Graph& graph) {
  AskedTerms asked{.order = order_of(given.order),
                   .device = device_from(given.device),
                   .link = given.link,
                   .techniques = list_text(given.techniques)};
  asked.costs = costs_from(given.costs);
  if (!given.transforms.is_none()) asked.transforms = transforms_from(given.transforms);
  if (!given.host_budget.is_none()) asked.host_budget = size_text("host_budget", given.host_budget);
  if (given.derate.is_none()) return terms_of(asked, graph);
  asked.derate = percentage_text("derate", given.derate);
  return terms_of(asked, graph);
}

std::string_view text_of(nb::handle str) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(str.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return {text, static_cast<std::size_t>(size)};
}

std::string_view text_or_bytes(nb::handle text) {
  if (PyUnicode_Check(text.ptr())) return text_of(text);
  if (!PyBytes_Check(text.ptr())) throw nb::type_error("text must be a str or bytes");
  return {PyBytes_AsString(text.ptr()), static_cast<std::size_t>(PyBytes_Size(text.ptr()))};
}

std::string path_of(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const nb::object owner = nb::steal(bytes);
  return {PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes))};
}

Bytes budget_of(nb::handle budget, const Graph& graph, const char* what) {
  std::string text;
  if (nb::isinstance<nb::str>(budget))
    text = text_of(budget);
  else if (auto digits = digits_of(budget))
    text = *digits;
  else
    throw nb::type_error(
        (std::string(what) + " must be an int (bytes) or a str (\"8GiB\", \"60%\", \"act:50%\")")
            .c_str());
  try {
    return resolve_budget(parse_budget(text), graph);
  } catch (const InputError& error) {
    throw InputError(std::string(what) + " \"" + text + "\"", error.reason());
  }
}

Order order_of(const std::string& word) {
  if (word == to_string(Order::free)) return Order::free;
  if (word == to_string(Order::given)) return Order::given;
  throw InputError("order \"" + word + "\"", "is neither free nor given");
}

Objective objective_of(const std::string& word) {
  if (word == "time") return Objective::least_time;
  if (word == "memory") return Objective::least_memory;
  throw InputError("objective \"" + word + "\"", "is neither time nor memory");
}

Ticks overhead_limit_of(nb::handle overhead, const Graph& graph) {
  return overhead_limit(percentage_text("overhead", overhead), own_duration(graph));
}

std::optional<Ticks> time_limit_of(nb::handle limit, const Graph& graph) {
  if (limit.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(limit)) return overhead_limit_of(limit, graph);
  const auto digits = digits_of(limit);
  if (!digits) throw nb::type_error("time_limit must be an int (ticks) or a str (\"5%\")");
  std::int64_t ticks = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), ticks);
  if (error != std::errc() || ticks < 0)
    throw InputError("time_limit " + *digits, "is no number of ticks from 0 to 2^63 - 1");
  return Ticks(ticks);
}

nb::list names_from(const Techniques& techniques) {
  nb::list names;
  for (const std::string_view name : names_of(techniques))
    names.append(nb::str(name.data(), name.size()));
  return names;
}

void warn(const std::string& name, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    if (PyErr_WarnEx(PyExc_UserWarning,
                     report::clean_text(std::string(name).append(": ").append(warning)).c_str(),
                     1) != 0)
      throw nb::python_error();
}

}  // namespace lowtide::python
