// The commands. Each adds its own subcommand, with a callback that throws InputError for bad input
// and otherwise sets the exit status.
#pragma once

#include "lowtide/cli/app.h"

namespace lowtide::cli {

void add_demo(CLI::App& app, int& status);
void add_plan(CLI::App& app, int& status);
void add_curve(CLI::App& app, int& status);
void add_fit(CLI::App& app, int& status);
void add_sweep(CLI::App& app, int& status);
void add_verify(CLI::App& app, int& status);
void add_place(CLI::App& app, int& status);
void add_apply(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_footprint(CLI::App& app, int& status);
void add_snapshot(CLI::App& app, int& status);
void add_solvers(CLI::App& app, int& status);
void add_devices(CLI::App& app, int& status);
void add_dimensions(CLI::App& app, int& status);
void add_regions(CLI::App& app, int& status);
void add_partition(CLI::App& app, int& status);
void add_generate(CLI::App& app, int& status);
void add_convert(CLI::App& app, int& status);
void add_completion(CLI::App& app, int& status);

}  // namespace lowtide::cli
