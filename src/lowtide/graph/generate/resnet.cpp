// A residual network (K. He et al., 2016): a stem, four stages of blocks, a classifier. A block has
// convolutions, batch norms and ReLUs, and adds its input to its output. Each stage halves the
// image and widens it. The stages share the blocks 3 : 4 : 6 : 3, as in the 50-layer network.
#include <array>
#include <string>
#include <utility>

#include "lowtide/graph/generate/kinds.h"
#include "lowtide/graph/generate/training.h"

namespace lowtide::networks {

namespace {

using Value = Training::Value;

struct Settings {
  std::int64_t batch, size, width, classes;
  bool bottleneck;  // three convolutions, the middle one narrow
};

Value convolve_norm(Training& net, const std::string& at, const std::string& number, Value x,
                    std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  x = net.convolution(at + ".conv" + number, x, channels, kernel, stride);
  return net.batch_norm(at + ".bn" + number, x);
}

Value block(Training& net, const Settings& settings, const std::string& at, Value x,
            std::int64_t width, std::int64_t stride) {
  const std::int64_t out = settings.bottleneck ? 4 * width : width;
  Value y = x;
  if (settings.bottleneck) {
    y = net.relu(at + ".relu1", convolve_norm(net, at, "1", y, width, 1, 1));
    y = net.relu(at + ".relu2", convolve_norm(net, at, "2", y, width, 3, stride));
    y = convolve_norm(net, at, "3", y, out, 1, 1);
  } else {
    y = net.relu(at + ".relu1", convolve_norm(net, at, "1", y, width, 3, stride));
    y = convolve_norm(net, at, "2", y, out, 3, 1);
  }
  if (stride != 1 || net.shape(x)[1] != out)
    x = convolve_norm(net, at + ".downsample", "", x, out, 1, stride);
  return net.relu(at + ".relu", net.add(at, y, x));
}

}  // namespace

Graph generate_resnet(std::size_t blocks, std::uint64_t seed) {
  Random random(seed);
  Settings settings{};
  settings.batch = pick(random, {32, 48, 64, 96, 128});
  settings.size = pick(random, {160, 192, 224, 256});
  settings.width = pick(random, {48, 64, 80, 96});
  settings.classes = pick(random, {100, 1000});
  settings.bottleneck = random.chance(0.7);
  Training net("resnet of " + std::to_string(blocks) + " blocks, batch " +
                   std::to_string(settings.batch) + " x " + std::to_string(settings.size) +
                   ", seed " + std::to_string(seed),
               kF32, seed);
  Value x = net.data("images", {settings.batch, 3, settings.size, settings.size}, kF32);
  x = net.relu("relu", convolve_norm(net, "stem", "1", x, settings.width, 7, 2));
  x = net.max_pool("maxpool", x);

  constexpr std::array<std::size_t, 5> kEnds = {0, 3, 7, 13, 16};
  std::int64_t at_stage = 0;  // the stage of the present resolution
  for (std::size_t stage = 0; stage < 4; ++stage) {
    // Rounded up, so that the first stages get blocks first: a single block is in the first stage.
    const std::size_t first = (blocks * kEnds[stage] + 15) / 16;
    const std::size_t last = (blocks * kEnds[stage + 1] + 15) / 16;
    const auto depth = static_cast<std::int64_t>(stage);
    for (std::size_t i = first; i < last; ++i) {
      const std::string at =
          "layer" + std::to_string(stage + 1) + ".block" + std::to_string(i - first);
      const std::int64_t stride = std::int64_t{1} << (depth - std::exchange(at_stage, depth));
      x = block(net, settings, at, x, settings.width << depth, stride);
    }
  }
  return net.finish(net.linear("fc", net.mean("avgpool", x), settings.classes), 1);
}

}  // namespace lowtide::networks
