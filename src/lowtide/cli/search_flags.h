// The flags of every command that searches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/cli/app.h"
#include "lowtide/plan/problem.h"

namespace lowtide::cli {

struct SearchFlags {
  std::string solver = "auto";
  std::vector<std::string> options;  // of the solver, as written: NAME=VALUE
  std::string order = "free";
  std::optional<double> time;
  std::optional<std::int64_t> work;
  std::uint64_t seed = 0;
  int threads = 0;

  // `cancel` must outlive the limits.
  LimitSettings limits(const CancelToken& cancel) const;
  int thread_count() const;  // all cores unless --threads is set
  // Names and values; InputError for an entry without an equals sign.
  std::vector<std::pair<std::string, std::string>> solver_options() const;
  Order problem_order() const { return order == "given" ? Order::given : Order::free; }
};

// These must outlive the parsing.
void add_time_flag(CLI::App& command, std::optional<double>& seconds, const std::string& usage);
void add_work_flag(CLI::App& command, std::optional<std::int64_t>& work);
void add_seed_flag(CLI::App& command, std::uint64_t& seed);
void add_search_flags(CLI::App& command, SearchFlags& flags);

}  // namespace lowtide::cli
