// What `plan` writes and prints.
#pragma once

#include <string>

#include "lowtide/driver/driver.h"

namespace lowtide::cli {

// InputError if no file can be written there: said before a search, not after it. "-" and an empty
// path pass.
void require_writable(const std::string& path);

class PlanOutput {
 public:
  // An empty path: nothing is written.
  PlanOutput(const Problem& problem, std::string path);

  const std::string& path() const { return path_; }
  void write(const Outcome& outcome, const Request& request) const;

 private:
  const Problem& problem_;
  std::string path_;
};

struct PlanSummary {
  const Problem& problem;
  const Answer& answer;
  std::string solver;
  std::uint64_t seed;
  double seconds;
  std::string plan_file;
};

std::string summary_text(const PlanSummary& summary);
std::string summary_json(const PlanSummary& summary);

}  // namespace lowtide::cli
