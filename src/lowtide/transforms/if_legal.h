// Turns the errors of an illegal transform into an empty result.
#pragma once

#include <optional>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/base/units.h"

namespace lowtide {

// Returns the result of `make`; nullopt if a transform is illegal on its graph or an op of it has
// no price (InputError), or if a figure of it exceeds 63 bits (OverflowError).
template <class Make>
auto if_legal(Make&& make) -> std::optional<decltype(make())> {
  try {
    return std::forward<Make>(make)();
  } catch (const InputError&) {
  } catch (const OverflowError&) {
  }
  return std::nullopt;
}

}  // namespace lowtide
