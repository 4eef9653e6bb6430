// The results of a sweep: a file of JSON lines, to which each plan adds one when it is done, so
// that a sweep that is killed goes on where it was (docs/reference/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/io/sweep_json.h"

namespace lowtide::io {

// What was found for a task. Absent: unknown, or there is none.
struct SweepFound {
  std::string status;  // as of `plan --json`, or kSweepError
  std::optional<std::int64_t> budget, peak, taken, duration, base_duration, bound, smallest_peak,
      floor;
  std::optional<double> overhead_percent, gap_percent;
  std::string found_by, stopped_by, reason;
  double seconds = 0;
};

// The status of a task that ended with an error, which `reason` says. The next run repeats it.
inline constexpr std::string_view kSweepError = "error";

using SweepRows = std::map<std::string, SweepFound>;  // by the keys of tasks

// The file, open for one sweep alone until this object ends.
class SweepResults {
 public:
  // Opens or makes it. InputError naming the file if it is not one of results, if another process
  // has it open, or if it cannot be read and written. A last line without an end is what a killed
  // run has left: it is dropped.
  explicit SweepResults(std::string path);
  ~SweepResults();
  SweepResults(const SweepResults&) = delete;
  SweepResults& operator=(const SweepResults&) = delete;

  const std::string& path() const { return path_; }
  const SweepRows& rows() const { return rows_; }
  bool has(const std::string& key) const;  // a result that is no error
  // Adds a line in one write. InputError naming the file if that fails.
  void add(const SweepTask& task, SweepFound found);

 private:
  void read();

  std::string path_;
  int descriptor_ = -1;
  SweepRows rows_;
};

// The rows of these tasks, in their order: the settings, then what was found. Tasks without a
// result are left out.
std::string sweep_csv(const std::vector<SweepTask>& tasks, const SweepRows& rows);

}  // namespace lowtide::io
