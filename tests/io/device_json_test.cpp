// Device files: what is read, what is refused and in which words, and devices by name.
#include "lowtide/io/device_json.h"

#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/device/cards.h"

#include "io/refusal.h"
#include "io/temporary_folder.h"

namespace lowtide {
namespace {

const std::string kSmall =
    R"({"format": "lowtide-device", "version": 1, "name": "mine",
        "operations_per_second": {"f32": 5}, "bytes_per_second": 7, "launch_ns": 0})";

std::string with(const std::string& old, const std::string& now) {
  std::string text = kSmall;
  const auto at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), now);
}

TEST_CASE("device file: required and optional keys") {
  const Device device = io::read_device_text(kSmall, "file");
  CHECK(device.name == "mine");
  CHECK(device.title.empty());
  CHECK(device.rates == std::vector<ComputeRate>{{"f32", 5}});
  CHECK(device.bytes_per_second == 7);
  CHECK(device.launch_ns == 0);
  CHECK(device.memory == Bytes(0));
  CHECK_FALSE(device.host_link);
  CHECK_FALSE(device.peer_link);
}

TEST_CASE("device file: every built-in device is one") {
  for (const Device& device : built_in_devices()) {
    CAPTURE(device.name);
    CHECK(io::read_device_text(io::write_device(device), "file") == device);
  }
}

TEST_CASE("device file: the figures of small kernels") {
  Device device = io::read_device_text(kSmall, "file");
  CHECK(device.compute_ramp_ns == 0);
  CHECK_FALSE(device.measured);
  device.compute_ramp_ns = 3;
  device.memory_ramp_ns = 4;
  device.multiprocessors = 5;
  device.measured = true;
  CHECK(io::read_device_text(io::write_device(device), "file") == device);
}

TEST_CASE("device file: refused files") {
  const auto check = [](const std::string& text, const std::string& place,
                        const std::string& reason) {
    CAPTURE(text);
    const Refusal refusal = refusal_of([&] { io::read_device_text(text, "d.json"); });
    CHECK(refusal.file == "d.json");
    CHECK(refusal.place == place);
    CHECK_MESSAGE(refusal.reason.find(reason) != std::string::npos, refusal.reason);
  };
  check("[]", "", "a device file is an object, not a list");
  check("{", "line 1, column 2", "");
  check("{}", "", "has no \"format\": this is not a device file");
  check(with("lowtide-device", "lowtide-graph"), "/format", "this is a graph, not a device");
  check(with("\"version\": 1", "\"version\": 2"), "/version", "unknown version 2");
  check(with("\"name\": \"mine\",", ""), "", "has no \"name\"");
  check(with("\"mine\"", "\"\""), "/name", "must not be empty");
  check(with("\"mine\"", "3"), "/name", "string");
  check(with("\"operations_per_second\": {\"f32\": 5},", ""), "",
        "has no \"operations_per_second\"");
  check(with("{\"f32\": 5}", "{}"), "/operations_per_second", "has no \"f32\"");
  check(with("{\"f32\": 5}", "5"), "/operations_per_second", "object");
  check(with("\"f32\": 5", "\"f32\": 0"), "/operations_per_second/f32", "must be 1 or more");
  check(with("\"f32\": 5", "\"f32\": -5"), "/operations_per_second/f32", "negative");
  check(with("\"f32\": 5", "\"f32\": 1.5e12"), "/operations_per_second/f32",
        "written without fraction or exponent, not 1.5e12");
  check(with("\"f32\": 5", "\"f32\": 9223372036854775808"), "/operations_per_second/f32",
        "below 2^63");
  check(with("\"f32\": 5", "\"f32\": NaN"), "line 2, column 42", "");
  check(with("\"f32\": 5", "\"f32\": 5, \"fp16\": 5"), "/operations_per_second/fp16",
        "unknown number type \"fp16\"; must be one of f64, f32, tf32");
  check(with("\"bytes_per_second\": 7,", ""), "", "has no \"bytes_per_second\"");
  check(with("\"bytes_per_second\": 7", "\"bytes_per_second\": 0"), "/bytes_per_second",
        "must be 1 or more");
  check(with(", \"launch_ns\": 0", ""), "", "has no \"launch_ns\"");
  check(with("\"launch_ns\": 0", "\"launch_ns\": -1"), "/launch_ns", "negative");
  check(with("\"launch_ns\"", "\"memory_bytes\": 0, \"launch_ns\""), "/memory_bytes",
        "must be 1 or more");
  check(with("\"launch_ns\"", "\"multiprocessors\": 0, \"launch_ns\""), "/multiprocessors",
        "must be 1 or more");
  check(with("\"launch_ns\"", "\"measured\": 1, \"launch_ns\""), "/measured", "");
  check(with("\"launch_ns\"", "\"bandwidth\": 3, \"launch_ns\""), "/bandwidth",
        "unknown key \"bandwidth\"; there are: name, title, operations_per_second");
  check(with("\"launch_ns\"", "\"host_link\": {\"latency_ns\": 1}, \"launch_ns\""), "/host_link",
        "has no \"bytes_per_second\"");
  check(with("\"launch_ns\"", "\"peer_link\": {\"bytes_per_second\": 1}, \"launch_ns\""),
        "/peer_link", "has no \"latency_ns\"");
  check(with("\"launch_ns\"", "\"host_link\": {\"speed\": 1}, \"launch_ns\""), "/host_link/speed",
        "unknown key \"speed\"; there are: bytes_per_second, latency_ns");
  check(with("\"launch_ns\"", "\"launch_ns\": 1, \"launch_ns\""), "/launch_ns", "twice");
}

TEST_CASE("devices are found by name or read from a file") {
  CHECK(io::device_of("h100").title == "NVIDIA H100 80GB");
  const TemporaryFolder folder;
  const std::string path = folder / "mine.json";
  std::ofstream(path) << kSmall;
  CHECK(io::device_of(path).name == "mine");
  const Refusal unknown = refusal_of([] { io::device_of("h1000"); });
  CHECK(unknown.place == "device \"h1000\"");
  CHECK(unknown.reason.find("a10, a100, ") != std::string::npos);
  CHECK(unknown.reason.find("./FILE") != std::string::npos);
  CHECK(refusal_of([&] { io::device_of(path + ".gone"); }).file == path + ".gone");
}

TEST_CASE("operations stated in the graph") {
  const auto stated = [](const std::string& attributes) {
    Op op;
    op.name = "mm";
    op.attributes = attributes;
    return io::stated_operations(op);
  };
  CHECK(stated(R"({"flops": 12, "source": "a.py:1"})") == 12);
  CHECK(stated(R"({"flops": 0})") == 0);
  CHECK(stated("") == std::nullopt);
  CHECK(stated(R"({"source": "flops.py:3"})") == std::nullopt);
  const Refusal wrong = refusal_of([&] { stated(R"({"flops": -1})"); });
  CHECK(wrong.place == "op \"mm\"");
  CHECK(wrong.reason.find("attributes/flops") != std::string::npos);
}

}  // namespace
}  // namespace lowtide
