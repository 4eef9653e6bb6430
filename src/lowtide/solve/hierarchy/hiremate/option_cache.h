// What slow block solvers have found, kept on disk from one run to the next. Private to the solver.
//
// In $LOWTIDE_CACHE/blocks, or in `lowtide/blocks` under $XDG_CACHE_HOME or ~/.cache; nowhere if
// LOWTIDE_CACHE is "off". Only schedules are kept: whoever reads them prices them anew, so a file
// that was cut short or changed costs a solve and never a wrong plan. A file that cannot be read or
// written is as good as none. The work that they took is kept beside them, and whoever reads them
// is charged for it: a run says the same of itself whatever the disk holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/sha256.h"
#include "lowtide/solve/hierarchy/block/block_option.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

class OptionCache {
 public:
  struct Kept {
    std::vector<BlockOption> options;
    std::int64_t work = 0;  // units
  };

  // `block`: what equal blocks have in common, all that plans depend on. `seconds`: that the solver
  // has. The version of the program counts too. `solver`: its name, with the version of what it
  // asks.
  OptionCache(const BlockTask& task, std::span<const std::int64_t> block, std::string_view solver,
              double seconds);

  // Nothing if there is no such file, or if anything in it is not an option of the task's block.
  std::optional<Kept> read() const;
  void write(std::span<const BlockOption> options, std::int64_t work) const;

 private:
  const BlockTask& task_;
  std::string path_;  // empty: nowhere
};

}  // namespace lowtide::solve::hierarchy
