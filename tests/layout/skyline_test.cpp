// Dives with and without a look ahead, and the trees below them against plain loops.
#include "lowtide/layout/skyline.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/layout/check_placement.h"
#include "lowtide/layout/ranking.h"

#include "support/scale.h"

namespace lowtide::layout {
namespace {

std::vector<Item> random_items(Random& random, std::size_t count, std::int32_t sections) {
  std::vector<Item> items(count);
  for (Item& item : items) {
    item.first = static_cast<std::int32_t>(random.below(static_cast<std::size_t>(sections)));
    item.last =
        item.first + 1 +
        static_cast<std::int32_t>(random.below(static_cast<std::size_t>(sections - item.first)));
    item.size = random.between(1, 20);
  }
  return items;
}

TEST_CASE("range maximum: against a plain list") {
  Random random(1);
  for (int i = 0; i < samples(30, 300); ++i) {
    std::vector<std::int64_t> values(1 + random.below(40));
    for (std::int64_t& value : values) value = random.between(-5, 30);
    RangeMaxTree tree;
    tree.reset(values);
    for (int k = 0; k < 40; ++k) {
      const std::size_t first = random.below(values.size()),
                        last = first + 1 + random.below(values.size() - first);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first),
                 end = values.begin() + static_cast<std::ptrdiff_t>(last);
      const auto a = static_cast<std::int32_t>(first), b = static_cast<std::int32_t>(last);
      if (random.chance(0.5)) {
        const std::int64_t by = random.between(-9, 9);
        tree.raise(a, b, by);
        std::for_each(begin, end, [&](std::int64_t& value) { value += by; });
      }
      const auto largest = std::max_element(begin, end);
      CHECK(tree.largest(a, b).value == *largest);
      CHECK(tree.largest(a, b).section == largest - values.begin());
    }
  }
}

TEST_CASE("fitting tree: against plain loops") {
  Random random(2);
  for (int i = 0; i < samples(20, 200); ++i) {
    const std::int32_t sections = 20;
    const std::vector<Item> items = random_items(random, 1 + random.below(60), sections);
    std::vector<std::int32_t> ranks(items.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    random.shuffle(ranks);
    FittingTree tree(items);
    tree.reset(ranks);
    std::vector<bool> there(items.size(), true);
    for (int k = 0; k < 60; ++k) {
      const std::size_t changed = random.below(items.size());
      const auto id = static_cast<std::int32_t>(changed);
      there[changed] ? tree.remove(id) : tree.put_back(id, ranks[changed]);
      there[changed] = !there[changed];
      const Item query = random_items(random, 1, sections).front();
      const std::int32_t section =
          random.chance(0.5)
              ? -1
              : static_cast<std::int32_t>(random.between(query.first, query.last - 1));
      std::int32_t best = -1;
      bool larger = false;
      for (std::size_t j = 0; j < items.size(); ++j) {
        if (!there[j]) continue;
        const Item& item = items[j];
        larger = larger ||
                 (item.size > query.size && item.first < query.last && item.last > query.first);
        if (item.first < query.first || item.last > query.last) continue;
        if (section >= 0 && (item.first > section || item.last <= section)) continue;
        if (best < 0 || ranks[j] < ranks[at(best)]) best = static_cast<std::int32_t>(j);
      }
      CHECK(tree.best_within(query.first, query.last, section) == best);
      CHECK(tree.has_larger(query.first, query.last, query.size) == larger);
    }
  }
}

// A rectangle cut into pieces by lines from side to side: it can be filled without a hole.
void cut(Random& random, Buffer piece, int cuts, std::vector<Buffer>& pieces) {
  const std::int64_t width = piece.end - piece.begin;
  const bool across = random.chance(0.5);
  if (cuts == 0 || (across ? piece.bytes.count() : width) < 2) return pieces.push_back(piece);
  Buffer one = piece, other = piece;
  if (across) {
    one.bytes = Bytes(random.between(1, piece.bytes.count() - 1));
    other.bytes = piece.bytes - one.bytes;
  } else {
    one.end = other.begin = piece.begin + random.between(1, width - 1);
  }
  cut(random, one, cuts - 1, pieces);
  cut(random, other, cuts - 1, pieces);
}

TEST_CASE("skyline: a look ahead finds placements without a hole where plain dives do not") {
  int plain = 0, ahead = 0, asked = 0;
  for (int i = 0; i < samples(40, 400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    constexpr std::int64_t kCapacity = 200;
    std::vector<Buffer> buffers;
    cut(random, {0, 60, Bytes(kCapacity)}, 6, buffers);
    const Sections sections = make_sections(buffers, 1);
    const std::vector<std::int64_t> of_sections = loads(sections.items, sections.count),
                                    over = load_over(sections.items, of_sections);
    Skyline skyline(sections.items, sections.count);
    for (const Rule& rule : kRules) {
      const std::vector<std::int32_t> ranks = ranks_by(rule, sections.items, over);
      Limits limits;
      ++asked;
      plain += skyline.dive(ranks, kCapacity, limits) == kCapacity ? 1 : 0;
      const std::int64_t height = skyline.dive_within(ranks, kCapacity, of_sections, limits);
      if (height == Skyline::kGaveUp) continue;
      ++ahead;
      CHECK(height == kCapacity);
      std::vector<Bytes> offsets;
      for (const std::int64_t offset : skyline.offsets()) offsets.emplace_back(offset);
      CHECK_FALSE(check_placement(buffers, offsets, Bytes(1), Bytes(kCapacity)));
    }
  }
  MESSAGE("asked " << asked << " plain " << plain << " ahead " << ahead);
  CHECK(2 * ahead > 3 * plain);
}

}  // namespace
}  // namespace lowtide::layout
