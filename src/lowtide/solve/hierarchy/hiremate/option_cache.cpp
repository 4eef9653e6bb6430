// A file has the number of options and their work, then three lines for each option: the ops of
// each half, as indices into the block, and the budget within which the option is the fastest, if
// that is proven.
#include "lowtide/solve/hierarchy/hiremate/option_cache.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <unistd.h>

#include "lowtide/base/error.h"
#include "lowtide/base/version.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr std::string_view kHeader = "lowtide-block-options 3";

std::filesystem::path folder() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  const std::string asked = value("LOWTIDE_CACHE");
  if (asked == "off" || asked == "0" || asked == "no") return {};
  if (!asked.empty()) return std::filesystem::path(asked) / "blocks";
  const std::string cache = value("XDG_CACHE_HOME"), home = value("HOME");
  if (!cache.empty()) return std::filesystem::path(cache) / "lowtide" / "blocks";
  if (!home.empty()) return std::filesystem::path(home) / ".cache" / "lowtide" / "blocks";
  return {};
}

void add(Sha256& hash, std::string_view text) {
  hash.add(static_cast<std::int64_t>(text.size()));
  for (const char c : text) hash.add_byte(static_cast<std::uint8_t>(c));
}

void add(Sha256& hash, std::span<const OpId> ops) {
  hash.add(static_cast<std::int64_t>(ops.size()));
  for (const OpId op : ops) hash.add(static_cast<std::int64_t>(op.index()));
}

}  // namespace

OptionCache::OptionCache(const BlockTask& task, std::span<const std::int64_t> block,
                         std::string_view solver, double seconds)
    : task_(task) {
  const std::filesystem::path base = folder();
  if (base.empty()) return;
  Sha256 hash;
  add(hash, kVersion);
  add(hash, solver);
  for (const std::int64_t number : block) hash.add(number);
  for (const BlockBudget& budget : task.budgets) {
    hash.add(budget.peak.count());
    hash.add(budget.saved.count());
  }
  for (const Child& child : task.level.children) {
    add(hash, child.ops);
    for (const std::size_t i : child.chosen) {
      add(hash, child.options[i].forward);
      add(hash, child.options[i].backward);
    }
  }
  for (const BlockOption& option : task.known) {
    add(hash, option.forward);
    add(hash, option.backward);
    const BlockBudget proven = option.quickest_within.value_or(BlockBudget{Bytes(-1), Bytes(-1)});
    hash.add(proven.peak.count());
    hash.add(proven.saved.count());
  }
  hash.add(static_cast<std::int64_t>(task.seed));
  // Time limits are rounded to powers of two for the key.
  hash.add(seconds > 0 ? std::ilogb(std::max(1e-3, seconds)) : INT64_MAX);
  path_ = (base / (hash.hex().substr(0, 32) + ".txt")).string();
}

std::optional<OptionCache::Kept> OptionCache::read() const {
  std::error_code failed;
  // Other files with that name, such as pipes, might block.
  if (path_.empty() || !std::filesystem::is_regular_file(path_, failed)) return std::nullopt;
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line) || line != kHeader) return std::nullopt;
  std::size_t count = 0;
  Kept kept;
  if (!std::getline(file, line) || !(std::istringstream(line) >> count >> kept.work) ||
      kept.work < 0)
    return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<OpId> halves[2];
    for (std::vector<OpId>& half : halves) {
      if (!std::getline(file, line)) return std::nullopt;
      std::istringstream words(line);
      for (std::int64_t op = 0; words >> op;) {
        if (op < 0 || static_cast<std::size_t>(op) >= task_.block.op_count()) return std::nullopt;
        half.emplace_back(static_cast<std::size_t>(op));
      }
    }
    if (!std::getline(file, line)) return std::nullopt;
    std::int64_t peak = 0, saved = 0;
    const bool proven = static_cast<bool>(std::istringstream(line) >> peak >> saved);
    if (!proven && !line.empty()) return std::nullopt;
    try {
      kept.options.push_back(task_.block.price(std::move(halves[0]), std::move(halves[1])));
      if (proven) kept.options.back().quickest_within = {Bytes(peak), Bytes(saved)};
    } catch (const InputError&) {
      return std::nullopt;
    }
  }
  return kept;
}

void OptionCache::write(std::span<const BlockOption> options, std::int64_t work) const {
  if (path_.empty()) return;
  std::error_code failed;
  const std::filesystem::path path(path_);
  std::filesystem::create_directories(path.parent_path(), failed);
  if (failed) return;
  const std::size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id());
  const std::string part =
      path_ + "." + std::to_string(getpid()) + "-" + std::to_string(thread) + ".part";
  {
    std::ofstream file(part);
    file << kHeader << '\n' << options.size() << ' ' << work << '\n';
    for (const BlockOption& option : options) {
      for (const std::vector<OpId>* half : {&option.forward, &option.backward}) {
        for (const OpId op : *half) file << op.index() << ' ';
        file << '\n';
      }
      if (const auto& within = option.quickest_within)
        file << within->peak.count() << ' ' << within->saved.count();
      file << '\n';
    }
    if (!file.flush()) {
      file.close();
      std::filesystem::remove(part, failed);
      return;
    }
  }
  std::filesystem::rename(part, path, failed);
  if (failed) std::filesystem::remove(part, failed);
}

}  // namespace lowtide::solve::hierarchy
