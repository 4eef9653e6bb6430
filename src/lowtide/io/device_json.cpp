// People write device files by hand: an unknown key is a mistake, and refused.
#include "lowtide/io/device_json.h"

#include <algorithm>
#include <array>

#include "lowtide/base/error.h"
#include "lowtide/device/cards.h"
#include "lowtide/io/json.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

constexpr std::array<std::string_view, 15> kTypes = {"f64",      "f32",    "tf32", "bf16", "f16",
                                                     "f8e4m3fn", "f8e5m2", "i64",  "i32",  "i16",
                                                     "i8",       "u8",     "bool", "c64",  "c128"};

std::int64_t positive(JsonValue value) {
  if (value.is(JsonKind::number))
    value.refuse("must be a whole number below 2^63, written without fraction or exponent, not " +
                 std::string(value.number_text()));
  const std::int64_t number = value.as_count();
  if (number == 0) value.refuse("must be 1 or more, not 0");
  return number;
}

[[noreturn]] void refuse_key(JsonValue value, std::string_view key, const std::string& known) {
  value.refuse("unknown key " + quoted(key) + "; there are: " + known);
}

template <class Value>
const Value& required(const std::optional<Value>& value, JsonValue object, std::string_view key) {
  if (!value) object.refuse("has no " + quoted(key));
  return *value;
}

std::vector<ComputeRate> read_rates(JsonValue object) {
  std::vector<ComputeRate> rates;
  for (const auto& [key, value] : object.members()) {
    if (std::ranges::find(kTypes, key) == kTypes.end()) {
      std::string known;
      for (const std::string_view type : kTypes)
        known += (known.empty() ? "" : ", ") + std::string(type);
      value.refuse("unknown number type " + quoted(key) + "; must be one of " + known);
    }
    rates.push_back({std::string(key), positive(value)});
  }
  if (std::ranges::find(rates, "f32", &ComputeRate::dtype) == rates.end())
    object.refuse("has no \"f32\", the rate of number types that are not listed");
  return rates;
}

LinkSpeed read_link(JsonValue object) {
  std::optional<std::int64_t> rate, latency;
  for (const auto& [key, value] : object.members()) {
    if (key == "bytes_per_second")
      rate = positive(value);
    else if (key == "latency_ns")
      latency = value.as_count();
    else
      refuse_key(value, key, "bytes_per_second, latency_ns");
  }
  return {required(rate, object, "bytes_per_second"), required(latency, object, "latency_ns")};
}

Device read_document(const JsonDocument& document) {
  const JsonValue root = document.root();
  check_format(root, "lowtide-device");
  Device device;
  std::optional<std::string> name;
  std::optional<std::vector<ComputeRate>> rates;
  std::optional<std::int64_t> bandwidth, launch;
  for (const auto& [key, value] : root.members()) {
    if (key == "name") {
      name = value.as_string();
      if (name->empty()) value.refuse("must not be empty");
    } else if (key == "title") {
      device.title = value.as_string();
    } else if (key == "operations_per_second") {
      rates = read_rates(value);
    } else if (key == "bytes_per_second") {
      bandwidth = positive(value);
    } else if (key == "launch_ns") {
      launch = value.as_count();
    } else if (key == "compute_ramp_ns") {
      device.compute_ramp_ns = value.as_count();
    } else if (key == "memory_ramp_ns") {
      device.memory_ramp_ns = value.as_count();
    } else if (key == "multiprocessors") {
      device.multiprocessors = positive(value);
    } else if (key == "measured") {
      device.measured = value.as_boolean();
    } else if (key == "memory_bytes") {
      device.memory = Bytes(positive(value));
    } else if (key == "host_link") {
      device.host_link = read_link(value);
    } else if (key == "peer_link") {
      device.peer_link = read_link(value);
    } else if (key != "format" && key != "version") {
      refuse_key(value, key,
                 "name, title, operations_per_second, bytes_per_second, launch_ns, "
                 "compute_ramp_ns, memory_ramp_ns, multiprocessors, measured, memory_bytes, "
                 "host_link, peer_link");
    }
  }
  device.name = required(name, root, "name");
  device.rates = required(rates, root, "operations_per_second");
  device.bytes_per_second = required(bandwidth, root, "bytes_per_second");
  device.launch_ns = required(launch, root, "launch_ns");
  return device;
}

std::string link_json(const LinkSpeed& link) {
  return "{\"bytes_per_second\": " + std::to_string(link.bytes_per_second) +
         ", \"latency_ns\": " + std::to_string(link.latency_ns) + "}";
}

}  // namespace

Device read_device(const std::string& path) {
  return read_device_text(read_text_file(path), name_of_file(path));
}

Device read_device_text(std::string_view text, const std::string& file_name) {
  try {
    return read_document(JsonDocument(text));
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

std::string write_device(const Device& device) {
  std::string out = "{\n  \"format\": \"lowtide-device\",\n  \"version\": 1,\n  \"name\": " +
                    json_string(device.name);
  if (!device.title.empty()) out += ",\n  \"title\": " + json_string(device.title);
  out += ",\n  \"operations_per_second\": {";
  for (const ComputeRate& rate : device.rates)
    out += (&rate == device.rates.data() ? "" : ", ") + json_string(rate.dtype) + ": " +
           std::to_string(rate.operations_per_second);
  out += "},\n  \"bytes_per_second\": " + std::to_string(device.bytes_per_second) +
         ",\n  \"launch_ns\": " + std::to_string(device.launch_ns);
  const auto unless_zero = [&](std::string_view key, std::int64_t value) {
    if (value != 0) out += ",\n  " + json_string(key) + ": " + std::to_string(value);
  };
  unless_zero("compute_ramp_ns", device.compute_ramp_ns);
  unless_zero("memory_ramp_ns", device.memory_ramp_ns);
  unless_zero("multiprocessors", device.multiprocessors);
  if (device.measured) out += ",\n  \"measured\": true";
  if (device.memory > Bytes(0))
    out += ",\n  \"memory_bytes\": " + std::to_string(device.memory.count());
  if (device.host_link) out += ",\n  \"host_link\": " + link_json(*device.host_link);
  if (device.peer_link) out += ",\n  \"peer_link\": " + link_json(*device.peer_link);
  return out + "\n}\n";
}

Device device_of(const std::string& name_or_path) {
  if (const Device* card = find_built_in_device(name_or_path)) return *card;
  if (name_or_path == "-" || name_or_path.find_first_of("/.\\") != std::string::npos)
    return read_device(name_or_path);
  std::string names;
  for (const Device& card : built_in_devices()) names += (names.empty() ? "" : ", ") + card.name;
  throw InputError("device " + quoted(name_or_path),
                   "there is none of that name; there are: " + names +
                       "; a file of your own needs a point or a slash in its name (./FILE)");
}

std::optional<std::int64_t> stated_operations(const Op& op) {
  if (op.attributes.find("flops") == std::string::npos) return std::nullopt;
  const JsonDocument attributes(op.attributes);
  const auto stated = attributes.root().find("flops");
  if (!stated) return std::nullopt;
  try {
    return stated->as_count();
  } catch (const InputError& error) {
    throw InputError("op " + quoted(op.name), "attributes" + error.place() + " " + error.reason());
  }
}

}  // namespace lowtide::io
