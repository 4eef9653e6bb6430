// The command `lowtide`: arguments in, text out.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/base/version.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/transforms/apply.h"

namespace lowtide::cli {

namespace {

int run(int argc, char** argv) {
  CLI::App app("Plans the computation of a neural network within a memory budget.", "lowtide");
  app.set_version_flag("--version", "lowtide " + std::string(kVersion));
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 a plan within the budget, 1 no plan, 2 bad input, 3 not verified.\n"
      "'lowtide COMMAND --help' lists the options of a command.");
  int status = kPlanFound;
  add_demo(app, status);
  add_plan(app, status);
  add_curve(app, status);
  add_fit(app, status);
  add_sweep(app, status);
  add_verify(app, status);
  add_place(app, status);
  add_apply(app, status);
  add_show(app, status);
  add_footprint(app, status);
  add_snapshot(app, status);
  add_solvers(app, status);
  add_devices(app, status);
  add_dimensions(app, status);
  add_regions(app, status);
  add_partition(app, status);
  add_generate(app, status);
  add_convert(app, status);
  add_completion(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);  // --help, --version
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "lowtide: {}\nRun 'lowtide --help' for the list of commands.\n",
               error.what());
    return kBadInput;
  }
  return status;
}

}  // namespace

}  // namespace lowtide::cli

int main(int argc, char** argv) {
  try {
    const int status = lowtide::cli::run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    fmt::print(stderr, "lowtide: standard output cannot be written: {}\n", std::strerror(errno));
    return lowtide::cli::kBadInput;
  } catch (const lowtide::TransformRefused& error) {
    fmt::print(stderr, "lowtide: {}\n", lowtide::report::clean_text(error.what()));
    return lowtide::cli::kNotVerified;
  } catch (const lowtide::InputError& error) {
    fmt::print(stderr, "lowtide: {}\n", lowtide::report::clean_text(error.what()));
    return lowtide::cli::kBadInput;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "lowtide: this machine has not enough memory for that\n");
    return lowtide::cli::kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lowtide: {}\nThis is a bug in lowtide; please report it with the graph.\n",
               error.what());
    return lowtide::cli::kNotVerified;
  }
}
