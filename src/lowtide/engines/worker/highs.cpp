// HiGHS through its C interface, with its own declarations, so that compiling needs no headers of
// HiGHS. Improving solutions and bounds arrive by callbacks, on the thread that runs it.
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <dlfcn.h>

#include "lowtide/engines/mip_model.h"
#include "lowtide/engines/worker/engines.h"

namespace lowtide::engines {

namespace {

using Int = std::int32_t;  // checked by Highs_getSizeofHighsInt
struct DataIn;             // never read
using Callback = void (*)(int type, const char* message, const void* out, DataIn* in, void* user);

struct Api {
  void* (*create)() = nullptr;
  void (*destroy)(void*) = nullptr;
  const char* (*version)() = nullptr;
  Int (*size_of_int)(const void*) = nullptr;
  Int (*run)(void*) = nullptr;
  Int (*model_status)(const void*) = nullptr;
  Int (*pass_mip)(void*, Int, Int, Int, Int, Int, double, const double*, const double*,
                  const double*, const double*, const double*, const Int*, const Int*,
                  const double*, const Int*) = nullptr;
  Int (*pass_lp)(void*, Int, Int, Int, Int, Int, double, const double*, const double*,
                 const double*, const double*, const double*, const Int*, const Int*,
                 const double*) = nullptr;
  Int (*set_sparse_solution)(void*, Int, const Int*, const double*) = nullptr;
  Int (*set_bool)(void*, const char*, Int) = nullptr;
  Int (*set_int)(void*, const char*, Int) = nullptr;
  Int (*set_double)(void*, const char*, double) = nullptr;
  Int (*get_double)(const void*, const char*, double*) = nullptr;
  Int (*get_int)(const void*, const char*, Int*) = nullptr;
  Int (*get_solution)(const void*, double*, double*, double*, double*) = nullptr;
  Int (*set_callback)(void*, Callback, void*) = nullptr;
  Int (*start_callback)(void*, int) = nullptr;
  const void* (*out_item)(const void*, const char*) = nullptr;

  bool load(void* library) {
    const auto find = [&](auto& into, const char* name) {
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(dlsym(library, name));
      return into != nullptr;
    };
    return find(create, "Highs_create") && find(destroy, "Highs_destroy") &&
           find(version, "Highs_version") && find(size_of_int, "Highs_getSizeofHighsInt") &&
           find(run, "Highs_run") && find(model_status, "Highs_getModelStatus") &&
           find(pass_mip, "Highs_passMip") && find(pass_lp, "Highs_passLp") &&
           find(set_sparse_solution, "Highs_setSparseSolution") &&
           find(set_bool, "Highs_setBoolOptionValue") && find(set_int, "Highs_setIntOptionValue") &&
           find(set_double, "Highs_setDoubleOptionValue") &&
           find(get_double, "Highs_getDoubleInfoValue") && find(get_int, "Highs_getIntInfoValue") &&
           find(get_solution, "Highs_getSolution") && find(set_callback, "Highs_setCallback") &&
           find(start_callback, "Highs_startCallback") &&
           find(out_item, "Highs_getCallbackDataOutItem");
  }
};

enum CallbackType { kImproving = 4, kMipLogging = 5, kMipInterrupt = 6 };
enum ModelStatus { kOptimal = 7, kInfeasible = 8 };

struct Watch {
  const Api& api;
  Channel& channel;
  std::size_t columns;
  double objective = INFINITY, bound = -INFINITY;

  const double* item(const void* out, const char* name) const {
    return static_cast<const double*>(api.out_item(out, name));
  }
  void solution(std::span<const double> values, double found) {
    if (!(found < objective)) return;
    objective = found;
    EngineReport report;
    report.kind = EngineReport::incumbent;
    report.value = found;
    report.reals.assign(values.begin(), values.end());
    channel.send(report);
  }
  void raise(double proven) {
    if (!is_sane(proven) || proven <= bound) return;
    bound = proven;
    EngineReport report;
    report.kind = EngineReport::bound;
    report.value = proven;
    channel.send(report);
  }
};

void on_event(int type, const char*, const void* out, DataIn*, void* user) {
  auto& watch = *static_cast<Watch*>(user);
  if (type == kImproving) {
    const double* values = watch.item(out, "mip_solution");
    const double* objective = watch.item(out, "objective_function_value");
    if (values != nullptr && objective != nullptr)
      watch.solution({values, watch.columns}, *objective);
  }
  if (const double* bound = watch.item(out, "mip_dual_bound")) watch.raise(*bound);
}

EngineReport failure(std::string why) {
  EngineReport report;
  report.kind = EngineReport::failed;
  report.text = std::move(why);
  return report;
}

std::vector<Int> narrow(std::span<const std::int64_t> list) {
  std::vector<Int> result;
  result.reserve(list.size());
  for (const std::int64_t value : list) result.push_back(static_cast<Int>(value));
  return result;
}

void set_options(const Api& api, void* highs, const EngineRequest& request) {
  api.set_bool(highs, "output_flag", 0);
  api.set_int(highs, "threads", static_cast<Int>(request.threads));
  api.set_int(highs, "random_seed", static_cast<Int>(request.seed));
  if (request.seconds > 0) api.set_double(highs, "time_limit", request.seconds);
  api.set_double(highs, "mip_rel_gap", 0);
  api.set_double(highs, "mip_abs_gap", 1e-6);
}

}  // namespace

EngineReport run_highs(const EngineRequest& request, Channel& channel) {
  std::string why;
  void* library = open_library(request.library, why);
  if (library == nullptr) return failure(why);
  Api api;
  if (!api.load(library)) return failure("lacks the functions that are needed");
  void* highs = api.create();
  // Memory is not returned, since the process ends anyway.
  const auto destroy = [&](void* it) {
    if (request.more) api.destroy(it);
  };
  const std::unique_ptr<void, decltype(destroy)> owned(highs, destroy);
  if (api.size_of_int(highs) != sizeof(Int)) return failure("counts in integers of 64 bits");
  EngineReport last;
  last.kind = EngineReport::opened;
  last.text = api.version();
  channel.send(last);
  last.kind = EngineReport::done;
  if (request.probe) return last;

  MipModel model;
  if (!model.decode(request.model)) return failure("its model cannot be read");
  const MipModel::View view = model.view();
  const auto columns = static_cast<Int>(view.cost.size());
  const auto rows = static_cast<Int>(view.row_low.size());
  const auto entries = static_cast<Int>(view.values.size());
  const std::vector<Int> begin = narrow(view.row_begin), index = narrow(view.columns);
  const std::vector<Int> integer = narrow(view.integer);
  set_options(api, highs, request);
  constexpr Int kRowwise = 2, kMinimise = 1;
  const bool mip = model.has_integers();
  // HiGHS treats 1e30 and beyond as infinity.
  const Int passed =
      mip ? api.pass_mip(highs, columns, rows, entries, kRowwise, kMinimise, 0, view.cost.data(),
                         view.low.data(), view.high.data(), view.row_low.data(),
                         view.row_high.data(), begin.data(), index.data(), view.values.data(),
                         integer.data())
          : api.pass_lp(highs, columns, rows, entries, kRowwise, kMinimise, 0, view.cost.data(),
                        view.low.data(), view.high.data(), view.row_low.data(),
                        view.row_high.data(), begin.data(), index.data(), view.values.data());
  if (passed < 0) return failure("it does not take the model");
  if (!view.start_columns.empty()) {
    const std::vector<Int> start = narrow(view.start_columns);
    api.set_sparse_solution(highs, static_cast<Int>(start.size()), start.data(),
                            view.start_values.data());
  }
  if (request.effort > 0) {
    const double iterations = std::min(2e9, request.effort * 1000);
    api.set_int(highs, "simplex_iteration_limit", static_cast<Int>(iterations));
    api.set_int(highs, "mip_max_nodes", static_cast<Int>(iterations / 100) + 1);
  }
  Watch watch{api, channel, view.cost.size()};
  api.set_callback(highs, on_event, &watch);
  if (mip)
    for (const int type : {kImproving, kMipLogging, kMipInterrupt}) api.start_callback(highs, type);
  api.run(highs);

  const Int status = api.model_status(highs);
  double objective = 0, bound = -INFINITY;
  Int solution = 0, iterations = 0;
  api.get_double(highs, "objective_function_value", &objective);
  api.get_double(highs, "mip_dual_bound", &bound);
  api.get_int(highs, "primal_solution_status", &solution);
  api.get_int(highs, "simplex_iteration_count", &iterations);
  last.status = status == kOptimal      ? EngineStatus::optimal
                : status == kInfeasible ? EngineStatus::infeasible
                : solution == 2         ? EngineStatus::feasible
                                        : EngineStatus::unknown;
  if (solution == 2) {
    std::vector<double> values(view.cost.size()), row_values(view.row_low.size());
    std::vector<double> duals(view.cost.size()), row_duals(view.row_low.size());
    api.get_solution(highs, values.data(), duals.data(), row_values.data(), row_duals.data());
    watch.solution(values, objective);
  }
  if (!mip && status == kOptimal) bound = objective;
  last.value = std::max(bound, watch.bound);
  last.has_bound = is_sane(last.value) && (mip || status == kOptimal);
  if (!last.has_bound) last.value = 0;
  last.effort = static_cast<double>(iterations) / 1000;
  return last;
}

}  // namespace lowtide::engines
