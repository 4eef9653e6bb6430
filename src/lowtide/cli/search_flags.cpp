#include "lowtide/cli/search_flags.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/driver.h"

namespace lowtide::cli {

LimitSettings SearchFlags::limits(const CancelToken& cancel) const {
  return driver::limits_or_default(time, work, cancel);
}

int SearchFlags::thread_count() const { return driver::threads_or_all(threads); }

std::vector<std::pair<std::string, std::string>> SearchFlags::solver_options() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& option : options) {
    const auto sign = option.find('=');
    if (sign == std::string::npos)
      throw InputError("--option " + option,
                       "write NAME=VALUE; 'lowtide solvers --options' lists them");
    found.emplace_back(option.substr(0, sign), option.substr(sign + 1));
  }
  return found;
}

namespace {

// CLI11's own check of a number lets nan through, and cuts what is too large.
template <class Number>
CLI::Validator no_less_than_zero(const char* what) {
  return CLI::Validator(
      [what](const std::string& text) {
        Number number{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && number >= 0 && number <= std::numeric_limits<Number>::max())
          return std::string();
        return fmt::format("'{}' is not {}, 0 or more", text, what);
      },
      "");
}

}  // namespace

void add_time_flag(CLI::App& command, std::optional<double>& seconds, const std::string& usage) {
  command.add_option("--time", seconds, usage)
      ->check(no_less_than_zero<double>("a number of seconds"));
}

void add_work_flag(CLI::App& command, std::optional<std::int64_t>& work) {
  command
      .add_option("--work", work,
                  "Limit on counted work instead of time: the same result on every machine")
      ->check(no_less_than_zero<std::int64_t>("a whole number"));
}

void add_seed_flag(CLI::App& command, std::uint64_t& seed) {
  command.add_option("--seed", seed, "Seed of the random numbers")
      ->check(no_less_than_zero<std::uint64_t>("a whole number"))
      ->capture_default_str();
}

void add_search_flags(CLI::App& command, SearchFlags& flags) {
  std::vector<std::string> names;
  const solve::SolverTable solvers = driver::all_solvers();
  for (const auto& solver : solvers.all()) names.emplace_back(solver->name());
  command.add_option("--solver", flags.solver, "Solver; 'lowtide solvers' lists them")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command.add_option("--option", flags.options,
                     "Option of the solver, NAME=VALUE; may be repeated");
  add_time_flag(command, flags.time, "Time limit in seconds (10; none with --work)");
  add_work_flag(command, flags.work);
  command
      .add_option(
          "--order", flags.order,
          "Order of first computations: the graph's (given), or any topological order (free)")
      ->check(CLI::IsMember({"free", "given"}))
      ->capture_default_str();
  add_seed_flag(command, flags.seed);
  command.add_option("--threads", flags.threads, "Number of threads (all cores)")
      ->check(CLI::Range(1, 4096));
}

}  // namespace lowtide::cli
