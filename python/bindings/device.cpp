// lowtide/device/device.h, and the files of it.
#include "lowtide/device/device.h"

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/io/device_json.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

namespace {

nb::object link_or_none(const std::optional<LinkSpeed>& link) {
  if (!link) return nb::none();
  return nb::make_tuple(link->bytes_per_second, link->latency_ns);
}

}  // namespace

std::optional<Device> device_from(nb::handle device) {
  if (device.is_none()) return std::nullopt;
  if (nb::isinstance<Device>(device)) return nb::cast<Device>(device);
  return io::device_of(path_of(device));
}

nb::object machine_or_none(const std::optional<Machine>& machine) {
  if (!machine) return nb::none();
  const auto dict_of = [](const Link& link) {
    nb::dict dict;
    dict["latency"] = link.latency.count();
    dict["bytes"] = link.bytes.count();
    dict["ticks"] = link.ticks.count();
    return dict;
  };
  nb::dict dict;
  dict["device_to_host"] = dict_of(machine->device_to_host);
  dict["host_to_device"] = dict_of(machine->host_to_device);
  return dict;
}

std::optional<Machine> machine_from(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  const auto refuse = [](const std::string& what) {
    throw InputError("machine", what + R"(; it is a dict like Problem.machine, {"device_to_host": )"
                                       R"({"latency": 10000, "bytes": 25, "ticks": 1}, )"
                                       R"("host_to_device": ...}, in bytes and the graph's ticks)");
  };
  const auto entry = [&](nb::handle dict, const char* key) {
    if (!nb::isinstance<nb::dict>(dict)) refuse("is no dict of dicts");
    if (!nb::cast<nb::dict>(dict).contains(key)) refuse(fmt::format("\"{}\" is missing", key));
    return nb::object(nb::cast<nb::dict>(dict)[key]);
  };
  const auto link = [&](const char* name) {
    const nb::object dict = entry(given, name);
    const auto count = [&](const char* key, std::int64_t least) {
      std::int64_t value = 0;
      if (!nb::try_cast(entry(dict, key), value) || value < least)
        refuse(fmt::format("\"{}\" of \"{}\" is no integer from {} on", key, name, least));
      return value;
    };
    return Link{Ticks(count("latency", 0)), Bytes(count("bytes", 1)), Ticks(count("ticks", 0))};
  };
  return Machine{link("device_to_host"), link("host_to_device")};
}

void bind_device(nb::module_& module) {
  nb::class_<Device>(module, "Device", "A machine: rates, memory, links. Immutable.")
      .def_static(
          "load", [](nb::handle path) { return io::read_device(path_of(path)); }, nb::arg("path"),
          nb::sig("def load(path: str | os.PathLike[str]) -> Device"),
          "Read a device file. Raises Error.")
      .def_static(
          "from_json",
          [](nb::handle text, const std::string& name) {
            return io::read_device_text(text_or_bytes(text), name);
          },
          nb::arg("text"), nb::arg("name") = "<text>",
          nb::sig("def from_json(text: str | bytes, name: str = \"<text>\") -> Device"),
          "Read a device from the text of a file; errors call it `name`.")
      .def("to_json", &io::write_device, "The text of its file.")
      .def_prop_ro("name", [](const Device& d) { return d.name; })
      .def_prop_ro(
          "title", [](const Device& d) { return d.title; }, "For people.")
      .def_prop_ro(
          "operations_per_second",
          [](const Device& d) {
            nb::dict rates;
            for (const ComputeRate& rate : d.rates)
              rates[rate.dtype.c_str()] = rate.operations_per_second;
            return rates;
          },
          nb::sig("def operations_per_second(self) -> dict[str, int]"),
          "By number type; a multiply-add is two. \"tf32\" is the rate of f32 convolutions.")
      .def_prop_ro(
          "bytes_per_second", [](const Device& d) { return d.bytes_per_second; },
          "Bandwidth of its memory.")
      .def_prop_ro(
          "launch_ns", [](const Device& d) { return d.launch_ns; }, "Time of the smallest kernel.")
      .def_prop_ro(
          "compute_ramp_ns", [](const Device& d) { return d.compute_ramp_ns; },
          "Time that a kernel loses before it computes at the full rate.")
      .def_prop_ro(
          "memory_ramp_ns", [](const Device& d) { return d.memory_ramp_ns; },
          "Time that a kernel loses before it moves bytes at the full rate.")
      .def_prop_ro(
          "multiprocessors", [](const Device& d) { return d.multiprocessors; },
          "Number of multiprocessors that share the tiles of a product; 0: unknown.")
      .def_prop_ro(
          "measured", [](const Device& d) { return d.measured; },
          "Whether the rates were measured.")
      .def_prop_ro(
          "memory", [](const Device& d) { return if_any(d.memory > Bytes(0), d.memory.count()); },
          nb::sig("def memory(self) -> int | None"), "In bytes, or None.")
      .def_prop_ro(
          "host_link", [](const Device& d) { return link_or_none(d.host_link); },
          nb::sig("def host_link(self) -> tuple[int, int] | None"),
          "Each way: bytes a second, and ns of latency. None if there is none.")
      .def_prop_ro(
          "peer_link", [](const Device& d) { return link_or_none(d.peer_link); },
          nb::sig("def peer_link(self) -> tuple[int, int] | None"),
          "To other devices, one way: bytes a second, and latency of a collective in ns.")
      .def("__eq__",
           [](const Device& a, nb::handle b) {
             return nb::isinstance<Device>(b) && a == nb::cast<const Device&>(b);
           })
      .def("__hash__", [](const Device& d) { return std::hash<std::string>()(d.name); })
      .def("__getstate__", &io::write_device)
      .def("__setstate__",
           [](Device* self, const std::string& text) {
             new (self) Device(io::read_device_text(text, "<pickle>"));
           })
      .def("__repr__", [](const Device& d) { return fmt::format("<lowtide.Device: {}>", d.name); });
  module.def(
      "devices",
      [] {
        nb::list list;
        for (const Device& device : built_in_devices()) list.append(nb::cast(device));
        return list;
      },
      nb::sig("def devices() -> list[Device]"), "The built-in devices, by name.");
}

}  // namespace lowtide::python
