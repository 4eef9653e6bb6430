// Problem: generate graphs like the random layered graphs of Moccasin's evaluation, of any size.
//
// Idea: a source, layers of random widths, a sink. Between neighbouring layers, each op of the
// wider one is joined to a contiguous share of the narrower one opposite to it. Some edges skip
// layers.
//
// Source: Bartan et al., "Moccasin", ICML 2023, after the random graphs of Gagrani et al., "Neural
// topological ordering for computation graphs", NeurIPS 2022; parameters fitted to the published
// graphs.
//
// Invariant: edges run from lower to higher layers, so any numbering by layers is topological.
//
// Loses: the graphs do not resemble training; sizes and times are independent of each other.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/generate.h"

namespace lowtide {

namespace {

struct Layer {
  std::size_t first, width;
};

struct Edge {
  std::size_t from, to;
};

// Row r lists `item` of every edge whose `row` is r, in the order of the edges.
Csr<std::int64_t> rows_of(std::size_t rows, const std::vector<Edge>& edges, std::size_t Edge::*row,
                          std::size_t Edge::*item) {
  std::vector<std::size_t> next(rows + 1, 0);
  for (const Edge& edge : edges) ++next[edge.*row + 1];
  for (std::size_t i = 0; i < rows; ++i) next[i + 1] += next[i];
  const std::vector<std::size_t> start = next;
  std::vector<std::int64_t> items(edges.size());
  for (const Edge& edge : edges) items[next[edge.*row]++] = static_cast<std::int64_t>(edge.*item);
  Csr<std::int64_t> result;
  result.reserve(rows, items.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = start[i]; k < start[i + 1]; ++k) result.push(items[k]);
    result.end_row();
  }
  return result;
}

class Layered {
 public:
  Layered(std::size_t ops, std::uint64_t seed, const LayeredSettings& settings)
      : ops_(ops), seed_(seed), random_(seed), settings_(settings) {}

  Graph draw() {
    draw_layers();
    std::size_t adjacent = 0;
    for (std::size_t i = 1; i < layers_.size(); ++i) adjacent += join(layers_[i - 1], layers_[i]);
    skip(adjacent);
    return assemble();
  }

 private:
  void draw_layers() {
    layers_.push_back({0, 1});
    if (ops_ == 1) return;
    const auto n = static_cast<double>(ops_);
    const double count = std::ceil(std::sqrt(n * (1 / settings_.width - 1)));
    const double low = n / count * (1 - settings_.spread),
                 high = n / count * (1 + settings_.spread);
    std::size_t placed = 1;
    while (placed < ops_ - 1) {
      const double width = std::round(low + (high - low) * random_.uniform());
      const std::size_t left = ops_ - 1 - placed;
      layers_.push_back(
          {placed, std::clamp<std::size_t>(static_cast<std::size_t>(width), 1, left)});
      placed += layers_.back().width;
    }
    layers_.push_back({ops_ - 1, 1});
  }

  void add_edge(std::size_t from, std::size_t to) { edges_.push_back({from, to}); }

  std::size_t join(const Layer& above, const Layer& below) {
    const bool down = above.width >= below.width;  // the wider layer is the one above
    const Layer& wide = down ? above : below;
    const Layer& narrow = down ? below : above;
    const auto pairs = static_cast<double>(wide.width) * static_cast<double>(narrow.width);
    const auto edges = static_cast<std::size_t>(std::llround(
        settings_.density * pairs + (1 - settings_.density) * static_cast<double>(wide.width)));
    for (std::size_t k = 0; k < wide.width; ++k) {
      const std::size_t share = (k + 1) * edges / wide.width - k * edges / wide.width;
      const double centre = wide.width == 1 ? 0
                                            : static_cast<double>(k * (narrow.width - 1)) /
                                                  static_cast<double>(wide.width - 1);
      const double start = std::round(centre - static_cast<double>(share - 1) / 2);
      const std::size_t first =
          std::min(static_cast<std::size_t>(std::max(0.0, start)), narrow.width - share);
      for (std::size_t j = first; j < first + share; ++j)
        down ? add_edge(wide.first + k, narrow.first + j)
             : add_edge(narrow.first + j, wide.first + k);
    }
    return edges;
  }

  void skip(std::size_t adjacent) {
    const std::size_t inner = layers_.size() < 2 ? 0 : layers_.size() - 2;
    if (inner < 3) return;
    const auto edges = static_cast<std::size_t>(
        std::llround(static_cast<double>(adjacent) * settings_.skips / (1 - settings_.skips)));
    // One number for each edge, so that pairs drawn twice count once.
    std::vector<std::uint64_t> drawn;
    drawn.reserve(edges);
    for (std::size_t i = 0; i < edges; ++i) {
      const std::size_t from = 1 + random_.below(inner - 2);
      const std::size_t to = from + 2 + random_.below(inner - from - 1);
      const double x = random_.uniform(), y = std::min(x + 0.2 * random_.uniform(), 0.999);
      const auto at = [&](const Layer& layer, double share) {
        return layer.first + static_cast<std::size_t>(share * static_cast<double>(layer.width));
      };
      drawn.push_back(at(layers_[from], x) * ops_ + at(layers_[to], y));
    }
    std::sort(drawn.begin(), drawn.end());
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
    for (std::uint64_t edge : drawn) add_edge(edge / ops_, edge % ops_);
  }

  // Polar method, G. Marsaglia, 1964. The second number of each pair is returned by the next call.
  double gaussian() {
    if (spare_) return *std::exchange(spare_, std::nullopt);
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * random_.uniform() - 1;
      y = 2 * random_.uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double scale = std::sqrt(-2 * std::log(square) / square);
    spare_ = y * scale;
    return x * scale;
  }

  Bytes draw_size() {
    struct Component {
      double up_to, mean, deviation;
    };
    constexpr std::array<Component, 4> kMixture = {
        {{0.3, 0.5, 0.5}, {0.6, 1, 1}, {0.9, 3, 1}, {1, 5, 1}}};
    const double which = random_.uniform();
    const Component& component = *std::find_if(kMixture.begin(), kMixture.end() - 1,
                                               [&](const Component& c) { return which < c.up_to; });
    double size = -1;
    while (size < 0) size = component.mean + component.deviation * gaussian();
    return Bytes(std::llround(100 * size) * 10);
  }

  std::vector<std::int64_t> random_topological_order(const Csr<std::int64_t>& inputs) {
    const Csr<std::int64_t> readers = rows_of(ops_, edges_, &Edge::from, &Edge::to);
    std::vector<std::size_t> waiting(ops_), ready;
    for (std::size_t i = 0; i < ops_; ++i) {
      waiting[i] = inputs[i].size();
      if (waiting[i] == 0) ready.push_back(i);
    }
    std::vector<std::int64_t> order;
    order.reserve(ops_);
    while (!ready.empty()) {
      std::swap(ready[random_.below(ready.size())], ready.back());
      const std::size_t op = ready.back();
      ready.pop_back();
      order.push_back(static_cast<std::int64_t>(op));
      for (std::int64_t reader : readers[op]) {
        const auto next = static_cast<std::size_t>(reader);
        if (--waiting[next] == 0) ready.push_back(next);
      }
    }
    return order;
  }

  Graph assemble() {
    const Csr<std::int64_t> inputs = rows_of(ops_, edges_, &Edge::to, &Edge::from);
    GraphBuilder builder;
    builder.reserve(ops_, ops_);
    builder.set_name("random layered, " + std::to_string(ops_) + " ops, seed " +
                     std::to_string(seed_));
    for (std::size_t i = 0; i < ops_; ++i) {
      Tensor tensor;
      tensor.name = std::to_string(i);
      tensor.bytes = draw_size();
      builder.add_tensor(std::move(tensor));
      Op op;
      op.name = std::to_string(i);
      const bool end = i == 0 || i + 1 == ops_;
      op.time = Ticks(end ? 0 : static_cast<std::int64_t>(1000 * random_.uniform()));
      OpLinks links;
      links.inputs.assign(inputs[i].begin(), inputs[i].end());
      links.outputs = {static_cast<std::int64_t>(i)};
      builder.add_op(std::move(op), links);
    }
    builder.set_order(random_topological_order(inputs));
    return builder.build();
  }

  std::size_t ops_;
  std::uint64_t seed_;
  Random random_;
  const LayeredSettings& settings_;
  std::vector<Layer> layers_;
  std::vector<Edge> edges_;
  std::optional<double> spare_;
};

}  // namespace

Graph generate_layered(std::size_t ops, std::uint64_t seed, const LayeredSettings& settings) {
  const auto share = [](double x) { return x >= 0 && x <= 1; };
  if (ops == 0) throw InputError("generate", "a graph of no ops; ask for one at least");
  if (!(settings.width > 0 && settings.width < 1) || !share(settings.spread) ||
      !share(settings.density) || !(settings.skips >= 0 && settings.skips < 1))
    throw InputError("generate", "width, spread, density and skips are shares between 0 and 1");
  return Layered(ops, seed, settings).draw();
}

}  // namespace lowtide
