// `lowtide devices`: the built-in ones, or one of the user's own, as a table or as device files.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/cli/commands.h"
#include "lowtide/device/cards.h"
#include "lowtide/io/device_json.h"
#include "lowtide/report/units_text.h"

namespace lowtide::cli {

namespace {

// Operations a second in units of 10^12, as data sheets print them.
std::string tera(std::int64_t rate) {
  return fmt::format("{:.4g}", static_cast<double>(rate) / 1e12);
}

std::string giga(std::int64_t rate) {
  return fmt::format("{:.4g} GB/s", static_cast<double>(rate) / 1e9);
}

void print_table(std::span<const Device> devices) {
  constexpr const char* kRow = "{:<10} {:<24} {:>5} {:>6} {:>10} {:>9} {:>8}\n";
  fmt::print(kRow, "", "", "f32", "f16", "memory", "", "to host");
  for (const Device& device : devices)
    fmt::print(kRow, device.name, device.title, tera(device.rate("f32")), tera(device.rate("f16")),
               giga(device.bytes_per_second),
               device.memory > Bytes(0) ? report::bytes_text(device.memory) : "-",
               device.host_link ? giga(device.host_link->bytes_per_second) : "-");
  fmt::print("\nf32, f16: 10^12 operations a second. As a file: lowtide devices NAME --json\n");
}

}  // namespace

void add_devices(CLI::App& app, int& status) {
  struct Arguments {
    std::string device;
    bool json = false;
  };
  CLI::App* command = app.add_subcommand("devices", "List the devices: rates, memory, links");
  const auto given = std::make_shared<Arguments>();
  command->add_option("device", given->device, "Show only this device: a name, or a file to check");
  command->add_flag("--json", given->json,
                    "Print a JSON list of device files, or the file of the named device");
  command->callback([given, &status] {
    const bool all = given->device.empty();
    const Device one = all ? Device() : io::device_of(given->device);
    const auto devices = all ? built_in_devices() : std::span<const Device>(&one, 1);
    if (!given->json) {
      print_table(devices);
    } else if (!all) {
      fmt::print("{}", io::write_device(one));
    } else {
      std::string text;
      for (const Device& device : devices)
        text += (text.empty() ? "[" : ",\n") + io::write_device(device);
      text.pop_back();
      fmt::print("{}]\n", text);
    }
    status = 0;
  });
}

}  // namespace lowtide::cli
