// A candidate that does not fit is a result, not an error.
#pragma once

#include <optional>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/base/units.h"

namespace lowtide {

// What `make` returns; nothing where a transform is not legal on its graph, where nobody can price
// an op of it (InputError), or where its figures go beyond 63 bits.
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
