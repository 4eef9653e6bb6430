// How failed assertions show our values.
#pragma once

#include <optional>

#include <doctest/doctest.h>

#include "lowtide/plan/outcome.h"

namespace doctest {

template <class Tag>
struct StringMaker<lowtide::Unit<Tag>> {
  static String convert(lowtide::Unit<Tag> value) { return toString(value.count()); }
};

template <class T>
struct StringMaker<std::optional<T>> {
  static String convert(const std::optional<T>& value) {
    return value ? toString(*value) : String("none");
  }
};

template <>
struct StringMaker<lowtide::Cost> {
  static String convert(const lowtide::Cost& cost) {
    return String("(duration ") + toString(cost.duration) + ", peak " + toString(cost.peak) +
           ", host " + toString(cost.host_peak) + ")";
  }
};

}  // namespace doctest
