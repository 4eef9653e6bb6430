// What every function that searches is told: limits, seed and threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/driver/driver.h"
#include "lowtide/driver/footprint.h"
#include "lowtide/io/plan_json.h"

#include "convert.h"
#include "guests.h"

namespace lowtide::python {

class Search {
 public:
  // InputError for what is out of range.
  Search(std::optional<double> time, std::optional<std::int64_t> work, std::uint64_t seed,
         int threads);

  LimitSettings limits(const CancelToken& token) const {
    return driver::limits_or_default(time_, work_, token);
  }
  int thread_count() const { return driver::threads_or_all(threads_); }
  std::uint64_t seed() const { return seed_; }
  // What a plan file says of it.
  FoundBy found_by(const std::string& solver, const LimitSettings& limits) const;

 private:
  std::optional<double> time_;
  std::optional<std::int64_t> work_;
  std::uint64_t seed_;
  int threads_;
};

struct GivenOptions {
  std::vector<std::pair<std::string, std::string>> texts;  // by name
  Guests guests;
};
// Options of this solver; a dict in the place of a value gives some ops one of their own, by their
// names or indices.
GivenOptions options_of(const std::string& solver, const std::optional<nb::dict>& given);

// What budgets limit, by the keyword arguments `footprint` and `allocator`. Throws InputError.
driver::FootprintTerms footprint_of(const std::string& word, const std::string& allocator);

}  // namespace lowtide::python
