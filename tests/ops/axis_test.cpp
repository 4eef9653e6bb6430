// Where an operand sees an axis, against every element that it reaches.
#include "lowtide/ops/dimensions/axis.h"

#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"

#include "support/net.h"

namespace lowtide::dimensions {
namespace {

using test::elements;
using test::Extents;
using test::Net;
using test::row_major;

// Every index of an operand with the element of the storage that it is.
void each(const Operand& operand, const std::function<void(const Extents&, std::int64_t)>& visit) {
  Extents index(operand.shape.size(), 0);
  for (std::int64_t n = elements(operand.shape); n-- > 0;) {
    std::int64_t at = operand.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * operand.strides[d];
    visit(index, at);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < operand.shape[d]) break;
      index[d] = 0;
    }
  }
}

std::int64_t slice_of(std::int64_t element, const Axis& axis) {
  return 4 * element / axis.stride % axis.extent;
}

// Where an element lies in a storage that holds the first `count` slices alone.
std::int64_t kept(std::int64_t element, const Axis& axis, std::int64_t count) {
  const std::int64_t inside = axis.stride / 4, round = inside * axis.extent;
  return element / round * inside * count + element % round;
}

// A storage of some dimensions and a view of it: permuted, parts of dimensions chosen, neighbours
// merged, dimensions repeated.
Operand random_view(Random& random, Extents& storage) {
  storage.resize(1 + random.below(4));
  for (std::int64_t& extent : storage) extent = 1 + static_cast<std::int64_t>(random.below(5));
  const std::size_t longest = random.below(storage.size());
  const bool crops = random.below(4) == 0;
  if (crops) storage[longest] = 8;
  Operand view = Net::all("self", TensorId(0), storage);
  if (crops) view.shape[longest] -= static_cast<std::int64_t>(random.below(3));
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    if ((crops && d == longest) || random.below(6) != 0) continue;
    const auto from =
        static_cast<std::int64_t>(random.below(static_cast<std::size_t>(view.shape[d])));
    const auto rest = static_cast<std::size_t>(view.shape[d] - from);
    view.offset += from * view.strides[d];
    view.shape[d] = 1 + static_cast<std::int64_t>(random.below(rest));
  }
  for (std::size_t d = 0; d + 1 < view.shape.size(); ++d) {
    if (random.below(3) != 0 || view.strides[d] != view.shape[d + 1] * view.strides[d + 1])
      continue;
    view.shape[d] *= view.shape[d + 1];
    view.strides[d] = view.strides[d + 1];
    view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  }
  if (random.below(4) == 0) {
    view.shape.push_back(3);
    view.strides.push_back(0);
  }
  for (std::size_t d = view.shape.size(); d > 1; --d) {
    const std::size_t other = random.below(d);
    std::swap(view.shape[d - 1], view.shape[other]);
    std::swap(view.strides[d - 1], view.strides[other]);
  }
  return view;
}

TEST_CASE("axis: an operand has an axis exactly if all its elements agree") {
  Random random(7);
  int found = 0, missed = 0, cropped = 0;
  for (int round = 0; round < 6000; ++round) {
    Extents storage;
    const Operand view = random_view(random, storage);
    const std::size_t dim = random.below(storage.size());
    if (storage[dim] < 2) continue;
    const Axis axis{storage[dim], 4 * row_major(storage)[dim]};
    const auto at = locate(view, axis);
    if (std::holds_alternative<Misfit>(at)) {
      // Then no dimension counts its slices.
      for (std::size_t d = 0; d < view.shape.size(); ++d) {
        if (view.shape[d] % axis.extent != 0) continue;
        bool counts = view.shape[d] == axis.extent;
        each(view, [&](const Extents& index, std::int64_t element) {
          counts = counts && slice_of(element, axis) == index[d];
        });
        CHECK_FALSE(counts);
      }
      ++missed;
      continue;
    }
    ++found;
    const Position position = std::get<Position>(at);
    const std::size_t d = position.dim;
    const std::int64_t inner = position.inner;
    each(view, [&](const Extents& index, std::int64_t element) {
      REQUIRE(slice_of(element, axis) == index[d] / inner % position.extent);
    });
    const Bytes bytes(4 * elements(storage));
    if (position.extent < axis.extent) {
      ++cropped;
      REQUIRE(view.shape[d] == inner * position.extent);
      const Operand layout = Net::all("self", TensorId(0), storage);
      const auto back = place_crop(view, position, layout, bytes);
      // Of neighbouring dimensions of which nothing tells where one ends, a longer axis.
      if (back) CHECK((back->stride == axis.stride && back->extent >= axis.extent));
    } else {
      const auto back = place(view, position, bytes);
      REQUIRE(std::holds_alternative<std::optional<Axis>>(back));
      CHECK(std::get<std::optional<Axis>>(back) == axis);
    }

    // A part of `count` slices: the same elements, where its smaller storage has them.
    const std::int64_t count =
        1 + static_cast<std::int64_t>(random.below(static_cast<std::size_t>(axis.extent)));
    CHECK(part_bytes(Bytes(4 * elements(storage)), axis, count) ==
          Bytes(4 * elements(storage) / axis.extent * count));
    std::vector<std::int64_t> expected, seen, sliced;
    const std::int64_t first =
        static_cast<std::int64_t>(random.below(static_cast<std::size_t>(axis.extent - count + 1)));
    each(view, [&](const Extents&, std::int64_t element) {
      if (slice_of(element, axis) < count) expected.push_back(kept(element, axis, count));
    });
    const Operand part = in_part(view, position, axis, {0, count});
    each(part, [&](const Extents&, std::int64_t element) { seen.push_back(element); });
    CHECK(seen == expected);
    const auto whole = in_whole(view, position, {first, count});
    CHECK(whole.has_value() == (view.shape[d] == inner * position.extent));
    if (!whole) continue;
    expected.clear();
    each(view, [&](const Extents&, std::int64_t element) {
      if (slice_of(element, axis) >= first && slice_of(element, axis) < first + count)
        expected.push_back(element);
    });
    each(*whole, [&](const Extents&, std::int64_t element) { sliced.push_back(element); });
    CHECK(sliced == expected);
  }
  CHECK(found > 1000);
  CHECK(missed > 100);
  CHECK(cropped > 30);
}

TEST_CASE("axis: operands without the axis") {
  const Axis batch{6, 4 * 5 * 8};  // of [6, 5, 8]
  const auto misfit = [&](const Operand& operand) {
    const auto at = locate(operand, batch);
    return std::holds_alternative<Misfit>(at) ? std::get<Misfit>(at).reason : "";
  };
  const auto view = [](const Extents& shape, const Extents& strides, std::int64_t offset = 0) {
    return Net::view("self", TensorId(0), shape, strides, offset);
  };
  CHECK(misfit(view({6, 40}, {40, 1})) == "");
  CHECK(misfit(view({4, 40}, {40, 1}, 40)) ==
        "takes other slices of \"self\" than all: 4 from number 1 of 6");
  CHECK(misfit(view({40}, {1}, 80)) == "takes one slice of \"self\", number 2");
  CHECK(misfit(view({2, 3, 40}, {120, 40, 1})) ==
        "sees the axis across several dimensions of \"self\"");
  CHECK(misfit(view({3, 40}, {80, 1})) == "sees the axis across several dimensions of \"self\"");
  CHECK(misfit(view({0, 40}, {40, 1})) == "has no elements in \"self\"");
  Operand packed = view({6, 40}, {40, 1});
  packed.dtype = "i4";
  CHECK(misfit(packed) == "has \"self\" of the number type \"i4\", whose size is not known");
  // Of another number type the same bytes: [6, 5, 4] numbers of 8 bytes.
  packed.dtype = "c64";
  packed.shape = {6, 20};
  packed.strides = {20, 1};
  CHECK(std::get<Position>(locate(packed, batch)) == Position{0, 1, 6});
}

TEST_CASE("axis: storages are rounded up to whole blocks; sizes beyond 63 bits are refused") {
  const Operand view = Net::all("self", TensorId(0), {6, 40});
  const auto axis = [&](Bytes bytes) {
    const auto put = place(view, {0, 1, 6}, bytes);
    return std::holds_alternative<std::optional<Axis>>(put);
  };
  CHECK(axis(Bytes(960)));
  CHECK(axis(Bytes(1024)));
  CHECK_FALSE(axis(Bytes(1000)));
  CHECK(part_bytes(Bytes(1024), {6, 160}, 2) == Bytes(512));
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK(std::holds_alternative<Misfit>(locate(view, {huge, 160})));
  CHECK(std::holds_alternative<Misfit>(place(view, {0, huge, 6}, Bytes(960))));
}

}  // namespace
}  // namespace lowtide::dimensions
