// Problem: generate a network of about so many ops from whole blocks.
//
// Idea: from some size on, every block adds the same number of ops. So measure two small networks
// and extrapolate. Below that size, try all sizes.
//
// Invariant: the number of ops differs from the requested number by at most half a block, except
// below the smallest network of a kind.
//
// Loses: a kind whose blocks never become equal in their number of ops would need a count of its
// own.
#include "lowtide/graph/generate.h"

#include <algorithm>
#include <array>
#include <string>

#include "lowtide/base/error.h"
#include "lowtide/graph/generate/kinds.h"

namespace lowtide {

namespace {

constexpr std::array<std::string_view, 5> kKinds = {"layered", "chain", "resnet", "unet",
                                                    "transformer"};
// From this size on all kinds have all their stages.
constexpr std::size_t kRegular = 16;

using Generator = Graph (*)(std::size_t blocks, std::uint64_t seed);

std::size_t distance(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

Graph generate_blocks(Generator generator, std::size_t ops, std::uint64_t seed) {
  const auto count = [&](std::size_t blocks) { return generator(blocks, seed).op_count(); };
  if (const std::size_t one = count(kRegular); ops >= one) {
    const std::size_t period = count(2 * kRegular) - one;
    const std::size_t more = (ops - one) * kRegular + period / 2;
    return generator(kRegular + more / period, seed);
  }
  std::size_t best = 0;
  for (std::size_t blocks = 0, best_count = count(0); blocks < kRegular; ++blocks) {
    const std::size_t now = count(blocks);
    if (distance(now, ops) < distance(best_count, ops)) best = blocks, best_count = now;
    if (now >= ops) break;
  }
  return generator(best, seed);
}

}  // namespace

std::span<const std::string_view> generator_kinds() { return kKinds; }

Graph generate(std::string_view kind, std::size_t ops, std::uint64_t seed) {
  if (ops == 0) throw InputError("generate", "a graph of no ops; ask for one at least");
  if (ops > kMaxCount / 16)
    throw InputError("generate", std::to_string(ops) + " ops are more than a graph may have");
  if (kind == "layered") return generate_layered(ops, seed);
  if (kind == "chain") return generate_blocks(networks::generate_chain, ops, seed);
  if (kind == "resnet") return generate_blocks(networks::generate_resnet, ops, seed);
  if (kind == "unet") return generate_blocks(networks::generate_unet, ops, seed);
  if (kind == "transformer") return generate_blocks(networks::generate_transformer, ops, seed);
  std::string names;
  for (std::string_view known : kKinds) names += (names.empty() ? "" : ", ") + std::string(known);
  throw InputError("generate",
                   "there is no kind \"" + std::string(kind) + "\"; there are " + names);
}

}  // namespace lowtide
