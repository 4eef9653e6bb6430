// A cache on disk for the options of slow block solvers. Private to the solver.
//
// It is in $LOWTIDE_CACHE/blocks, or in `lowtide/blocks` under $XDG_CACHE_HOME or ~/.cache; there
// is none if LOWTIDE_CACHE is "off". Files contain schedules only, which are priced again when they
// are read, so a damaged file costs a solve, but never gives a wrong plan. A file that cannot be
// read or written counts as missing. The work of the solve is stored too, and charged when the file
// is read, so that a run reports the same work with and without the cache.
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

  // `block`: the properties that equal blocks share, all on which plans depend. `seconds`: the time
  // limit of the solver. `solver`: its name, with the version of external software. The version of
  // the program is part of the key.
  OptionCache(const BlockTask& task, std::span<const std::int64_t> block, std::string_view solver,
              double seconds);

  // nullopt if there is no such file, or if anything in it is no option of the task's block.
  std::optional<Kept> read() const;
  void write(std::span<const BlockOption> options, std::int64_t work) const;

 private:
  const BlockTask& task_;
  std::string path_;  // empty: no cache
};

}  // namespace lowtide::solve::hierarchy
