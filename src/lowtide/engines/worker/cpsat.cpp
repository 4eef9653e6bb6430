// CP-SAT through the C interface of OR-Tools, which takes and returns serialized protocol buffers.
//
// It has no callback: a solution comes only with the response. So objectives and bounds are read
// from its log. When a slice of time has passed and a better solution is known, the search is
// stopped, the solution fetched and reported, and the search restarted with it as a hint. A slice
// lasts at least four times as long as the time to the first line of the search (that is,
// presolve), and each slice three times as long as the one before, so that little is lost by
// restarts. The solution of the last slice is reported at the end.
//
// Loses: solutions found since the last fetch, if the process is killed.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <dlfcn.h>
#include <unistd.h>

#include "lowtide/engines/search_log.h"
#include "lowtide/engines/wire.h"
#include "lowtide/engines/worker/engines.h"

namespace lowtide::engines {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Api {
  void* (*new_env)() = nullptr;
  void (*destroy_env)(void*) = nullptr;
  void (*stop)(void*) = nullptr;
  void (*solve)(void*, const void*, int, const void*, int, void**, int*) = nullptr;
  int (*major)() = nullptr;
  int (*minor)() = nullptr;
  int (*patch)() = nullptr;

  bool load(void* library) {
    const auto find = [&](auto& into, const char* name) {
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(dlsym(library, name));
      return into != nullptr;
    };
    const bool all = find(new_env, "SolveCpNewEnv") && find(destroy_env, "SolveCpDestroyEnv") &&
                     find(stop, "SolveCpStopSearch") && find(solve, "SolveCpInterruptible");
    find(major, "_ZN19operations_research19OrToolsMajorVersionEv");
    find(minor, "_ZN19operations_research19OrToolsMinorVersionEv");
    find(patch, "_ZN19operations_research19OrToolsPatchVersionEv");
    return all;
  }
  std::string version() const {
    if (major == nullptr || minor == nullptr || patch == nullptr) return "of unknown version";
    return std::to_string(major()) + "." + std::to_string(minor()) + "." + std::to_string(patch());
  }
};

struct Response {
  int status = 0;  // 0 unknown, 1 invalid, 2 feasible, 3 infeasible, 4 optimal
  std::vector<std::int64_t> values;
  double objective = 0, bound = -INFINITY, effort = 0;

  static bool decode(std::string_view bytes, Response& into) {
    WireReader in(bytes);
    while (in.next()) switch (in.field()) {
        case 1: into.status = static_cast<int>(in.number()); break;
        case 2: in.numbers(into.values); break;
        case 3: into.objective = in.real(); break;
        case 4: into.bound = in.real(); break;
        case 17: into.effort = in.real(); break;
      }
    return in.ok();
  }
};

// Reads the output of the engine, and stops a slice when it is over.
class Watcher {
 public:
  Watcher(const Api& api, Channel& channel, const EngineRequest& request)
      : api_(api), channel_(channel), request_(request), begin_(Clock::now()) {}

  void start() {
    int ends[2];
    if (pipe(ends) != 0) return;
    dup2(ends[1], 1);
    close(ends[1]);
    std::thread([this, from = ends[0]] { read_log(from); }).detach();
    if (request_.stream) std::thread([this] { end_slices(); }).detach();
  }

  void begin_slice(void* env) {
    const std::scoped_lock lock(mutex_);
    env_ = env;
    slice_begin_ = Clock::now();
    searching_at_ = -1;
    fresh_ = false;
    cut_ = false;
  }
  // Whether the slice ended by this object.
  bool end_slice() {
    const std::scoped_lock lock(mutex_);
    env_ = nullptr;
    return cut_;
  }
  double seconds() const { return seconds_since(begin_); }

 private:
  static constexpr double kFirst = 1.5, kGrowth = 3, kPresolves = 4;

  void read_log(int from) {
    std::string buffer;
    char chunk[4096];
    for (;;) {
      const auto got = read(from, chunk, sizeof chunk);
      if (got <= 0) return;
      buffer.append(chunk, static_cast<std::size_t>(got));
      for (auto end = buffer.find('\n'); end != std::string::npos; end = buffer.find('\n')) {
        take(buffer.substr(0, end));
        buffer.erase(0, end + 1);
      }
    }
  }

  void take(const std::string& line) {
    const LogLine read = read_log_line(line);
    const bool told = read.objective && is_sane(*read.objective);
    const bool proven = read.bound && is_sane(*read.bound);
    if (!told && !proven) return;
    EngineReport report;
    {
      const std::scoped_lock lock(mutex_);
      if (searching_at_ < 0) searching_at_ = seconds_since(slice_begin_);
      if (told && *read.objective < best_) {
        best_ = *read.objective;
        fresh_ = true;
      }
    }
    if (told) {
      report.kind = EngineReport::objective;
      report.value = *read.objective;
      channel_.send(report);
    }
    if (proven) {
      report.kind = EngineReport::bound;
      report.value = *read.bound;
      channel_.send(report);
    }
  }

  void end_slices() {
    double length = kFirst;
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::scoped_lock lock(mutex_);
      if (env_ == nullptr || cut_ || !fresh_ || searching_at_ < 0) continue;
      const double lasted = seconds_since(slice_begin_);
      if (lasted < std::max(length, kPresolves * searching_at_)) continue;
      // The last solution comes with the response.
      if (request_.seconds > 0 && seconds() + 2 * lasted > request_.seconds) continue;
      cut_ = true;
      length = std::max(length, lasted) * kGrowth;
      api_.stop(env_);
    }
  }

  const Api& api_;
  Channel& channel_;
  const EngineRequest& request_;
  const Clock::time_point begin_;
  std::mutex mutex_;
  void* env_ = nullptr;
  Clock::time_point slice_begin_;
  double searching_at_ = -1, best_ = INFINITY;
  bool fresh_ = false, cut_ = false;
};

std::string parameters(const EngineRequest& request, double seconds) {
  WireWriter out;
  out.number(31, request.seed % 1'000'000'007);
  if (seconds > 0) out.real(36, seconds);
  if (request.effort > 0) out.real(67, request.effort);
  if (request.memory_bytes > 0)
    out.number(40, std::max<std::int64_t>(64, request.memory_bytes >> 20));
  out.number(41, request.stream).number(186, request.stream).number(187, 0).number(135, 0);
  return out.number(206, request.threads).number(235, 0).bytes();
}

EngineStatus status_of(int status) {
  switch (status) {
    case 2: return EngineStatus::feasible;
    case 3: return EngineStatus::infeasible;
    case 4: return EngineStatus::optimal;
    default: return EngineStatus::unknown;
  }
}

EngineReport failure(std::string why) {
  EngineReport report;
  report.kind = EngineReport::failed;
  report.text = std::move(why);
  return report;
}

}  // namespace

EngineReport run_cpsat(const EngineRequest& request, Channel& channel) {
  std::string why;
  void* library = open_library(request.library, why);
  if (library == nullptr) return failure(why);
  Api api;
  if (!api.load(library)) return failure("lacks the functions that are needed");
  EngineReport report;
  report.kind = EngineReport::opened;
  report.text = api.version();
  channel.send(report);
  if (request.probe) {
    report.kind = EngineReport::done;
    return report;
  }

  // Ends with the process, which does not wait for its threads.
  auto& watcher = *new Watcher(api, channel, request);
  watcher.start();
  std::string hint = request.hint;
  EngineReport last;
  last.kind = EngineReport::done;
  last.value = -INFINITY;
  double best = INFINITY;
  for (;;) {
    const double left = request.seconds > 0 ? request.seconds - watcher.seconds() : 0;
    if (request.seconds > 0 && left < 0.005) break;
    WireWriter model;
    model.append(request.model);
    if (!hint.empty()) model.text(6, hint);
    const std::string options = parameters(request, left);
    void* bytes = nullptr;
    int size = 0;
    void* env = api.new_env();
    watcher.begin_slice(env);
    api.solve(env, model.bytes().data(), static_cast<int>(model.bytes().size()), options.data(),
              static_cast<int>(options.size()), &bytes, &size);
    const bool cut = watcher.end_slice();
    api.destroy_env(env);
    Response response;
    const bool read = Response::decode(
        {static_cast<const char*>(bytes), static_cast<std::size_t>(std::max(0, size))}, response);
    std::free(bytes);
    if (!read) return failure("its answer cannot be read");
    if (response.status == 1) return failure("it calls the model invalid");
    last.effort += response.effort;
    last.value = std::max(last.value, response.bound);
    const EngineStatus status = status_of(response.status);
    if (!response.values.empty() && response.objective < best) {
      best = response.objective;
      report = {};
      report.kind = EngineReport::incumbent;
      report.value = response.objective;
      report.numbers = response.values;
      channel.send(report);
      std::vector<std::int64_t> vars(response.values.size());
      for (std::size_t i = 0; i < vars.size(); ++i) vars[i] = static_cast<std::int64_t>(i);
      hint = WireWriter().numbers(1, vars).numbers(2, response.values).bytes();
    }
    if (status != EngineStatus::unknown || last.status == EngineStatus::unknown)
      last.status = status;
    if (!cut || status == EngineStatus::optimal || status == EngineStatus::infeasible) break;
  }
  last.has_bound = is_sane(last.value);
  if (!last.has_bound) last.value = 0;
  return last;
}

}  // namespace lowtide::engines
