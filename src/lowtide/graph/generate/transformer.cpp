// A decoder like GPT-2 (A. Radford et al., 2019): embeddings, blocks of attention and feed-forward
// with layer norms before them and dropout after them, and a head over the vocabulary. Dropout
// masks are drawn once and in order; ops that apply a mask may be recomputed.
#include <string>

#include "lowtide/graph/generate/kinds.h"
#include "lowtide/graph/generate/training.h"

namespace lowtide::networks {

Graph generate_transformer(std::size_t blocks, std::uint64_t seed) {
  Random random(seed);
  const std::int64_t heads = pick(random, {8, 12, 16, 20});
  const std::int64_t width = 64 * heads;
  const std::int64_t length = pick(random, {256, 512, 768, 1024});
  const std::int64_t batch = pick(random, {4, 8, 12, 16});
  const std::int64_t vocabulary = pick(random, {8192, 16384, 32000, 50257});
  const Dtype dtype = random.chance(0.5) ? kBf16 : kF32;
  Training net("transformer of " + std::to_string(blocks) + " blocks, batch " +
                   std::to_string(batch) + " x " + std::to_string(length) + ", seed " +
                   std::to_string(seed),
               dtype, seed);
  Training::Value x =
      net.embedding("wte", net.data("tokens", {batch, length}, kI64), vocabulary, width);
  x = net.add_positions("wpe", x);
  if (blocks > 0) x = net.dropout("drop", x);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::string at = "h" + std::to_string(i);
    Training::Value y = net.layer_norm(at + ".ln_1", x);
    y = net.attention(at + ".attn", net.linear(at + ".attn.qkv", y, 3 * width), heads);
    y = net.dropout(at + ".attn.dropout", net.linear(at + ".attn.proj", y, width));
    x = net.add(at, x, y);
    y = net.linear(at + ".mlp.fc", net.layer_norm(at + ".ln_2", x), 4 * width);
    y = net.linear(at + ".mlp.proj", net.gelu(at + ".mlp.gelu", y), width);
    x = net.add(at, x, net.dropout(at + ".mlp.dropout", y));
  }
  x = net.layer_norm("ln_f", x);
  return net.finish(net.linear("lm_head", x, vocabulary, false), 2);
}

}  // namespace lowtide::networks
