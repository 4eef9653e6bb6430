// `lowtide snapshot`: what a job has allocated, from a snapshot of PyTorch's CUDA allocator.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/base/limits.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/snapshot_pickle.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/snapshot_text.h"

namespace lowtide::cli {

namespace {

struct SnapshotArguments {
  std::string file, html;
  std::int64_t work = 200'000;
  std::size_t owners = 12;
  bool json = false;
};

std::vector<report::RecordedDevice> devices_of(const layout::Snapshot& snapshot,
                                               std::int64_t work) {
  std::vector<report::RecordedDevice> found;
  for (const std::size_t device : layout::recorded_devices(snapshot)) {
    Limits limits({.work = work});
    layout::Record record = layout::record_of(snapshot, device);
    layout::RecordedPeak peak = layout::peak_of(snapshot, record);
    layout::SnapshotSavings savings = layout::savings_of(snapshot, record, limits);
    found.push_back({device, std::move(record), std::move(peak), std::move(savings)});
  }
  return found;
}

std::string title_of(const std::string& path) {
  return std::filesystem::path(io::name_of_file(path)).filename().string();
}

int run(const SnapshotArguments& given) {
  require_writable(given.html);
  const layout::Snapshot snapshot = io::read_snapshot(given.file);
  const auto devices = [&] {
    try {
      return devices_of(snapshot, given.work);
    } catch (const InputError& error) {
      throw error.in_file(io::name_of_file(given.file));
    } catch (const OverflowError&) {
      throw InputError("", "its sizes add up to 2^63 bytes or more", io::name_of_file(given.file));
    }
  }();
  fmt::print("{}", given.json ? report::snapshot_json(devices)
                              : report::snapshot_text(devices, given.owners, output_style()));
  if (!given.html.empty())
    io::write_text_file(given.html, report::snapshot_html(devices, title_of(given.file)));
  if (!given.html.empty() && !given.json) fmt::print("\nwritten    {}\n", given.html);
  return kPlanFound;
}

}  // namespace

void add_snapshot(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "snapshot", "Say who owns the peak of a PyTorch job, from a snapshot of its CUDA memory");
  const auto given = std::make_shared<SnapshotArguments>();
  command
      ->add_option("file", given->file,
                   "What torch.cuda.memory._dump_snapshot() has written; no code of it is run")
      ->required();
  command->add_option("--owners", given->owners, "Places in the program that are listed (12)");
  command->add_option("--work", given->work, "Work for planned offsets, on each device (200000)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--html", given->html, "Write a self-contained page");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
