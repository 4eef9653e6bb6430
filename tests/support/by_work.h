// A request without a time limit, so that its run repeats exactly.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lowtide/driver/request.h"

namespace lowtide {

inline driver::Request by_work(std::int64_t work, std::string solver = "auto") {
  driver::Request request;
  request.solver = std::move(solver);
  request.limits.work = work;
  return request;
}

}  // namespace lowtide
