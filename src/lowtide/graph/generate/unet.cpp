// A U-Net (O. Ronneberger et al., 2015): double convolutions down through five resolutions, a
// middle, and the same way up. As in the U-Nets of diffusion models, every block on the way down
// passes its output to its mirror on the way up, so the number of long-lived tensors grows with the
// size.
#include <algorithm>
#include <string>
#include <vector>

#include "lowtide/graph/generate/kinds.h"
#include "lowtide/graph/generate/training.h"

namespace lowtide::networks {

namespace {

using Value = Training::Value;

Value double_convolution(Training& net, const std::string& at, Value x, std::int64_t channels) {
  for (const char* number : {"1", "2"}) {
    x = net.convolution(at + ".conv" + number, x, channels, 3);
    x = net.batch_norm(at + ".bn" + number, x);
    x = net.relu(at + ".relu" + number, x);
  }
  return x;
}

}  // namespace

Graph generate_unet(std::size_t blocks, std::uint64_t seed) {
  Random random(seed);
  const std::int64_t batch = pick(random, {2, 4, 6, 8, 12});
  const std::int64_t size = pick(random, {256, 320, 384, 512});
  const std::int64_t width = pick(random, {32, 48, 64});
  const std::int64_t classes = pick(random, {2, 8, 21});
  Training net("U-Net of " + std::to_string(blocks) + " blocks each way, batch " +
                   std::to_string(batch) + " x " + std::to_string(size) + ", seed " +
                   std::to_string(seed),
               kF32, seed);
  Value x = net.data("images", {batch, 3, size, size}, kF32);

  const std::size_t levels = std::min<std::size_t>(blocks, 4);
  const auto blocks_at = [&](std::size_t level) {
    return blocks * (level + 1) / levels - blocks * level / levels;
  };
  const auto name = [](const char* way, std::size_t level, std::size_t i) {
    return way + std::to_string(level) + ".block" + std::to_string(i);
  };
  std::vector<Value> skips;
  for (std::size_t level = 0; level < levels; ++level) {
    for (std::size_t i = 0; i < blocks_at(level); ++i) {
      x = double_convolution(net, name("down", level, i), x, width << level);
      skips.push_back(x);
    }
    x = net.max_pool("down" + std::to_string(level) + ".pool", x);
  }
  if (blocks > 0) x = double_convolution(net, "middle", x, width << levels);
  for (std::size_t level = levels; level-- > 0;) {
    x = net.up_convolution("up" + std::to_string(level) + ".up", x, width << level);
    for (std::size_t i = 0; i < blocks_at(level); ++i) {
      const std::string at = name("up", level, i);
      x = net.concatenate(at + ".cat", x, skips.back());
      skips.pop_back();
      x = double_convolution(net, at, x, width << level);
    }
  }
  return net.finish(net.convolution("head", x, classes, 1), 1);
}

}  // namespace lowtide::networks
