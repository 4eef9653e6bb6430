// Placements against the plain check, bounds against all placements of tiny sets of buffers.
#include "lowtide/layout/place.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/layout/baselines.h"
#include "lowtide/layout/check_placement.h"

#include "support/print.h"
#include "support/scale.h"

namespace lowtide::layout {
namespace {

constexpr std::int64_t kWork = 200'000;

std::vector<Buffer> random_buffers(Random& random, std::size_t count, std::int64_t moments,
                                   std::int64_t bytes) {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t begin = random.between(0, moments - 1);
    buffers.push_back({begin, random.between(begin + 1, moments), Bytes(random.between(0, bytes))});
  }
  return buffers;
}

// The step of a network: each of `depth` activations lives until its turn in the backward, which
// needs two short-lived gradients.
std::vector<Buffer> step_like(Random& random, std::int64_t depth) {
  std::vector<Buffer> buffers;
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::int64_t turn = 2 * depth - 1 - i;
    buffers.push_back({i, turn + 1, Bytes(512 * random.between(1, 64))});
    buffers.push_back({turn, std::min(turn + 2, 2 * depth), Bytes(512 * random.between(1, 64))});
    if (random.chance(0.5)) buffers.push_back({i, i + 1, Bytes(512 * random.between(1, 200))});
  }
  return buffers;
}

Placement placed(const std::vector<Buffer>& buffers, const PlaceSettings& settings = {},
                 std::int64_t work = kWork) {
  Limits limits({.work = work});
  Placement found = place(buffers, settings, limits);
  const auto wrong = check_placement(buffers, found.offsets, settings.alignment, found.height);
  CHECK_MESSAGE(!wrong, wrong.value_or(""));
  CHECK(found.height >= found.bound);
  CHECK(found.bound >= found.load);
  CHECK((found.status == Status::optimal || found.status == Status::feasible || settings.capacity));
  return found;
}

// The least height, by every order of placing: each buffer as low as those before it let it.
Bytes least_height(const std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  Bytes least = Bytes::max();
  do {
    std::vector<Bytes> offsets(buffers.size());
    Bytes height;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Buffer& buffer = buffers[order[k]];
      for (std::size_t j = 0; j < k; ++j) {
        const Buffer& other = buffers[order[j]];
        if (other.begin < buffer.end && buffer.begin < other.end)
          offsets[order[k]] = std::max(offsets[order[k]], offsets[order[j]] + other.bytes);
      }
      height = std::max(height, offsets[order[k]] + buffer.bytes);
    }
    least = std::min(least, height);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

TEST_CASE("place: few buffers come to the least height of all, and it is proven") {
  for (int seed = 0; seed < samples(60, 400); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const auto buffers = random_buffers(random, 1 + random.below(7), 6, 9);
    const Bytes least = least_height(buffers);
    const Placement found = placed(buffers);
    CHECK(found.height == least);
    CHECK(found.status == Status::optimal);
    CHECK(found.stopped_by == StopReason::finished);
    if (least == Bytes(0)) continue;
    const Placement within = placed(buffers, {.capacity = least});
    CHECK(within.height <= least);
    const Placement beyond = placed(buffers, {.capacity = least - Bytes(1)});
    CHECK(beyond.status == Status::infeasible);
    CHECK(beyond.height == least);
  }
}

TEST_CASE("place: where the load cannot be reached, that is proven") {
  // Three of size 2 around a cycle of moments, two of size 1 between them.
  const std::vector<Buffer> buffers = {{0, 2, Bytes(4)}, {1, 4, Bytes(2)}, {3, 6, Bytes(4)},
                                       {0, 1, Bytes(2)}, {5, 6, Bytes(2)}, {2, 5, Bytes(2)}};
  CHECK(placed(buffers).height == least_height(buffers));
}

TEST_CASE("place: buffers of every kind, alignments, seeds") {
  for (int seed = 0; seed < samples(150); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const auto buffers = random_buffers(random, random.below(80), random.between(1, 60),
                                        random.chance(0.2) ? 1 : 5000);
    const Bytes alignment(random.chance(0.5) ? 1 : 512);
    const Placement found =
        placed(buffers, {.alignment = alignment, .seed = static_cast<std::uint64_t>(seed)}, 20'000);
    CHECK(found.height.count() % alignment.count() == 0);
    CHECK(found.offsets.size() == buffers.size());
  }
}

TEST_CASE("place: the same seed and work give the same offsets") {
  Random random(3);
  const auto buffers = random_buffers(random, 120, 40, 1000);
  const Placement one = placed(buffers, {.seed = 7}), two = placed(buffers, {.seed = 7});
  CHECK(one.offsets == two.offsets);
  CHECK(one.stopped_by == two.stopped_by);
}

TEST_CASE("place: the steps of networks come to the load") {
  Random random(11);
  for (int round = 0; round < 5; ++round) {
    const Placement found = placed(step_like(random, 150));
    CHECK(found.height.count() <= found.load.count() + found.load.count() / 200);
  }
}

TEST_CASE("place: work is counted, and ends where it may") {
  Random random(2);
  const auto buffers = step_like(random, sanitized(2'000, 40'000));
  Limits limits;
  const Placement found =
      place(buffers, {.alignment = Bytes(512), .capacity = Bytes::max()}, limits);
  CHECK_FALSE(check_placement(buffers, found.offsets, Bytes(512), found.height));
  // One dive: a few units an item.
  CHECK(limits.work() < 30 * static_cast<std::int64_t>(buffers.size()));

  // Whatever the limit, every buffer has a place.
  const Placement hurried = placed(buffers, {}, 1);
  CHECK(hurried.height >= hurried.load);
  CancelToken cancel;
  cancel.cancel();
  Limits cancelled({.cancel = &cancel});
  CHECK(place(buffers, {}, cancelled).offsets.size() == buffers.size());
}

TEST_CASE("place: what is no buffer is refused") {
  const auto refused = [](const std::vector<Buffer>& buffers, Bytes alignment = Bytes(1)) {
    Limits limits;
    try {
      place(buffers, {.alignment = alignment}, limits);
    } catch (const InputError& error) {
      return error.place() + ": " + error.reason();
    }
    return std::string("accepted");
  };
  CHECK(refused({{0, 1, Bytes(1)}, {3, 3, Bytes(1)}}) == "buffers/1: it must end after it begins");
  CHECK(refused({{0, 1, Bytes(-1)}}) == "buffers/0: it must have 0 bytes or more");
  CHECK(refused({{0, 1, Bytes::max()}, {5, 6, Bytes(1)}}) ==
        "buffers/1: the sizes up to this one add up to 2^63 bytes or more");
  CHECK(refused({{0, 1, Bytes::max()}}, Bytes(512)) ==
        "buffers/0: the sizes up to this one add up to 2^63 bytes or more");
  CHECK(refused({}, Bytes(0)) == "alignment: must be at least 1");
  CHECK(refused({}) == "accepted");
  CHECK(refused({{INT64_MIN, INT64_MAX, Bytes(3)}}) == "accepted");
}

TEST_CASE("baselines: by hand") {
  // Of size 4 for 3 moments, 3 for 5, 5 for 1 and 2 for 1.
  const std::vector<Buffer> buffers = {
      {0, 3, Bytes(4)}, {1, 6, Bytes(3)}, {4, 5, Bytes(5)}, {0, 1, Bytes(2)}};
  const auto height = [&](Baseline baseline) {
    return baseline_height(baseline, buffers, Bytes(1)).count();
  };
  // 5 and 4 at 0, 3 at 5 above both, 2 at 4.
  CHECK(height(Baseline::by_size) == 8);
  // 3 at 0, 4 at 3, 5 at 3, 2 at 0.
  CHECK(height(Baseline::by_duration) == 8);
  // An object of 5 for 5 and 4, one of 3 for 3 and 2.
  CHECK(height(Baseline::shared_objects) == 8);
  CHECK(baseline_height(Baseline::shared_objects, buffers, Bytes(8)) == Bytes(16));
  CHECK(placed(buffers).height == Bytes(8));
}

TEST_CASE("baselines: none is below the load") {
  Random random(8);
  for (int round = 0; round < samples(50); ++round) {
    const auto buffers = random_buffers(random, random.below(40), 20, 50);
    const Bytes load = placed(buffers, {}, 1'000).load;
    for (const Baseline baseline : kBaselines)
      CHECK(baseline_height(baseline, buffers, Bytes(1)) >= load);
  }
}

TEST_CASE("check_placement: says what is wrong") {
  const std::vector<Buffer> buffers = {{0, 3, Bytes(10)}, {2, 5, Bytes(20)}, {3, 4, Bytes(10)}};
  const auto wrong = [&](std::vector<Bytes> offsets, Bytes alignment = Bytes(1)) {
    return check_placement(buffers, offsets, alignment, Bytes(30)).value_or("");
  };
  CHECK(wrong({Bytes(0), Bytes(10), Bytes(0)}) == "");
  CHECK(wrong({Bytes(20), Bytes(0), Bytes(20)}) == "");
  CHECK(wrong({Bytes(0), Bytes(10)}) == "there are 2 offsets for 3 buffers");
  CHECK(wrong({Bytes(-1), Bytes(10), Bytes(0)}) == "buffer 0 at offset -1: it is negative");
  CHECK(wrong({Bytes(0), Bytes(11), Bytes(0)}) ==
        "buffer 1 at offset 11: its 20 bytes end beyond 30");
  CHECK(wrong({Bytes(0), Bytes(10), Bytes(0)}, Bytes(8)) ==
        "buffer 1 at offset 10: it is no multiple of 8");
  CHECK(wrong({Bytes(0), Bytes(9), Bytes(0)}) ==
        "buffer 0 lies at [0, 10) and buffer 1 at [9, 29), and both are live at moment 2");
  CHECK(wrong({Bytes(0), Bytes(10), Bytes(15)}) ==
        "buffer 1 lies at [10, 30) and buffer 2 at [15, 25), and both are live at moment 3");
}

TEST_CASE("check_placement: finds any overlap that is put in") {
  for (int seed = 0; seed < samples(100); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const auto buffers = random_buffers(random, 30, 20, 50);
    Limits limits({.work = 1'000});
    Placement found = place(buffers, {}, limits);
    const std::size_t moved = random.below(buffers.size());
    found.offsets[moved] = Bytes(random.between(0, found.height.count()));
    bool apart = found.offsets[moved] + buffers[moved].bytes <= found.height;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (i != moved && buffers[i].begin < buffers[moved].end &&
          buffers[moved].begin < buffers[i].end &&
          std::max(found.offsets[i], found.offsets[moved]) <
              std::min(found.offsets[i] + buffers[i].bytes,
                       found.offsets[moved] + buffers[moved].bytes))
        apart = false;
    CHECK(check_placement(buffers, found.offsets, Bytes(1), found.height).has_value() != apart);
  }
}

}  // namespace
}  // namespace lowtide::layout
