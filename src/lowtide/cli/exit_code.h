// The meaning of the command's exit status.
#pragma once

namespace lowtide::cli {

enum ExitCode : int {
  kPlanFound = 0,    // or the command did its work
  kNoPlan = 1,       // infeasible, unknown or not supported
  kBadInput = 2,     // files, arguments
  kNotVerified = 3,  // the plan or a transform breaks a rule, or is for another graph
};

}  // namespace lowtide::cli
