// Shapes in, graphs out.
#include "support/network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lowtide/ops/dimensions/follow.h"

namespace lowtide {

namespace {

using Index = Network::Index;
using Extents = Network::Extents;

std::int64_t product(const Extents& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Extents contiguous(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Literal number(std::int64_t value) { return {value}; }

}  // namespace

Index Network::tensor(Extents shape, const std::string& dtype, Role role) {
  Tensor& made = tensors_.emplace_back();
  made.name = "t" + std::to_string(tensors_.size() - 1);
  made.bytes = Bytes(product(shape) * *element_bytes(dtype));
  made.role = role;
  made.shape = std::move(shape);
  made.dtype = dtype;
  return static_cast<Index>(tensors_.size()) - 1;
}

Operand Network::whole(const std::string& argument, Index tensor) const {
  const Tensor& of = tensors_[static_cast<std::size_t>(tensor)];
  Operand operand;
  operand.argument = argument;
  operand.tensor = TensorId(static_cast<std::size_t>(tensor));
  operand.shape = of.shape;
  operand.strides = contiguous(of.shape);
  operand.dtype = of.dtype;
  return operand;
}

Operand Network::transposed(const std::string& argument, Index tensor) const {
  Operand operand = whole(argument, tensor);
  std::swap(operand.shape.at(0), operand.shape.at(1));
  std::swap(operand.strides.at(0), operand.strides.at(1));
  return operand;
}

Operand Network::rows(const std::string& argument, Index tensor, Index first, Index count) const {
  Operand operand = whole(argument, tensor);
  operand.shape.at(0) = count;
  operand.offset = first * operand.strides.at(0);
  return operand;
}

Op& Network::op(const std::string& kind, const std::vector<Operand>& operands,
                const std::vector<Index>& results, std::vector<Argument> arguments) {
  Op& made = ops_.emplace_back();
  OpLinks& links = links_.emplace_back();
  made.kind = kind;
  made.name = kind.substr(kind.find('.') + 1) + "_" + std::to_string(ops_.size() - 1);
  made.arguments = std::move(arguments);
  made.operands = operands;
  std::int64_t moved = 0;
  for (const Operand& operand : operands) {
    const auto index = static_cast<Index>(operand.tensor.index());
    if (std::ranges::find(links.inputs, index) == links.inputs.end()) links.inputs.push_back(index);
    moved += product(operand.shape);
  }
  for (const Index result : results) {
    made.results.push_back(whole("", result));
    links.outputs.push_back(result);
    moved += product(made.results.back().shape);
  }
  made.time = Ticks(kind == kBarrierKind ? 0 : 10 + moved);
  made.workspace = Bytes(kind == "aten.mm" ? moved / 2 : 0);
  return made;
}

Network& Network::in_place(Index input, Index output) {
  links_.back().in_place.push_back({input, output});
  return *this;
}

Network& Network::after(Index op) {
  links_.back().after.push_back(op);
  return *this;
}

Network& Network::mutates(Index tensor) {
  links_.back().mutates.push_back(tensor);
  return *this;
}

Graph Network::graph() const {
  GraphBuilder builder;
  builder.set_name("network");
  builder.set_tick(TickUnit::ns);
  for (const Tensor& tensor : tensors_) builder.add_tensor(tensor);
  for (std::size_t i = 0; i < ops_.size(); ++i) builder.add_op(ops_[i], links_[i]);
  builder.set_outputs(kept_);
  return builder.build();
}

Classifier Classifier::random(Random& random) {
  Classifier made;
  made.batch = random.between(4, 13);
  made.widths.clear();
  for (std::int64_t i = random.between(3, 5); i > 0; --i)
    made.widths.push_back(random.between(2, 9));
  made.dtype = random.between(0, 1) == 0 ? "f32" : "bf16";
  made.barrier = random.between(0, 3) != 0;
  made.dropout = random.between(0, 1) == 0;
  made.in_place = random.between(0, 3) != 0;
  return made;
}

Graph step_of(const Classifier& classifier) {
  const std::int64_t batch = classifier.batch;
  const auto& widths = classifier.widths;
  Network net;
  const auto made = [&](Extents shape, Role role = Role::activation) {
    return net.tensor(std::move(shape), classifier.dtype, role);
  };
  Index at = made({batch, widths[0]}, Role::input);
  const Index target = net.tensor({batch}, "i64", Role::input);
  std::vector<Index> weights, inputs, activated, masks;
  const std::size_t layers = widths.size() - 1;
  for (std::size_t i = 0; i < layers; ++i)
    weights.push_back(made({widths[i], widths[i + 1]}, Role::parameter));
  for (std::size_t i = 0; i < layers; ++i) {
    inputs.push_back(at);
    const Index product = made({batch, widths[i + 1]});
    net.op("aten.mm", {net.whole("self", at), net.whole("mat2", weights[i])}, {product});
    at = product;
    if (i + 1 == layers) break;
    const Index relu = made({batch, widths[i + 1]});
    net.op("aten.relu", {net.whole("self", at)}, {relu});
    if (classifier.in_place) net.in_place(at, relu);
    activated.push_back(at = relu);
    if (i > 0 || !classifier.dropout) continue;
    const Index mask = net.tensor({batch, widths[i + 1]}, "bool"),
                dropped = made({batch, widths[i + 1]});
    net.op("lowtide.dropout_mask", {net.whole("input", at)}, {mask}, {{"p", {0.25}}}).recomputable =
        false;
    net.op("lowtide.dropout_apply", {net.whole("input", at), net.whole("mask", mask)}, {dropped},
           {{"p", {0.25}}});
    masks.push_back(mask);
    at = dropped;
  }
  const std::int64_t rows = classifier.shifted ? batch - 1 : batch;
  const Operand labels = net.rows("target", target, batch - rows, rows);
  const Index logarithm = made({rows, widths.back()}), loss = made({}), total = made({});
  net.op("aten._log_softmax", {net.rows("self", at, 0, rows)}, {logarithm},
         {{"dim", number(1)}, {"half_to_float", {false}}});
  if (classifier.in_place && rows == batch) net.in_place(at, logarithm);
  const std::vector<Argument> reduction{
      {"weight", {}}, {"reduction", number(1)}, {"ignore_index", number(-100)}};
  net.op("aten.nll_loss_forward", {net.whole("self", logarithm), labels}, {loss, total}, reduction);
  net.latest_op().results[0].argument = "output";
  net.latest_op().results[1].argument = "total_weight";
  net.keep(loss);

  Index tangent = made({});
  if (classifier.barrier)
    net.op(std::string(kBarrierKind), {net.whole("", loss)}, {tangent}).recomputable = false;
  else
    net.op("aten.full_like", {net.whole("self", loss)}, {tangent}, {{"fill_value", {1.0}}});
  const Index of_logarithm = made({rows, widths.back()});
  net.op("aten.nll_loss_backward",
         {net.whole("grad_output", tangent), net.whole("self", logarithm), labels,
          net.whole("total_weight", total)},
         {of_logarithm}, reduction);
  Index gradient = made({rows, widths.back()});
  net.op("aten._log_softmax_backward_data",
         {net.whole("grad_output", of_logarithm), net.whole("output", logarithm)}, {gradient},
         {{"dim", number(1)}, {"input_dtype", {Literal::Members{{"dtype", {classifier.dtype}}}}}});
  if (classifier.shifted) {
    const Index cropped = gradient;
    gradient = made({batch, widths.back()});
    net.op("aten.slice_backward", {net.whole("grad_output", cropped)}, {gradient},
           {{"input_sizes", Literal{Literal::List{number(batch), number(widths.back())}}},
            {"dim", number(0)},
            {"start", number(0)},
            {"end", number(-1)},
            {"step", number(1)}});
  }
  for (std::size_t i = layers; i-- > 0;) {
    const Index of_weight = made({widths[i], widths[i + 1]}, Role::gradient);
    net.op("aten.mm", {net.transposed("self", inputs[i]), net.whole("mat2", gradient)},
           {of_weight});
    net.keep(of_weight);
    if (i == 0) break;
    Index of_input = made({batch, widths[i]});
    net.op("aten.mm", {net.whole("self", gradient), net.transposed("mat2", weights[i])},
           {of_input});
    if (i == 1 && classifier.dropout) {
      const Index of_dropped = of_input;
      of_input = made({batch, widths[i]});
      net.op("aten.native_dropout_backward",
             {net.whole("grad_output", of_dropped), net.whole("mask", masks[0])}, {of_input},
             {{"scale", {1.25}}});
    }
    gradient = made({batch, widths[i]});
    net.op("aten.threshold_backward",
           {net.whole("grad_output", of_input), net.whole("self", activated[i - 1])}, {gradient},
           {{"threshold", number(0)}});
    if (classifier.in_place) net.in_place(of_input, gradient);
  }
  return net.graph();
}

Graph three_products() {
  Network net;
  const auto x = net.tensor({64, 32}, "f32", Role::input), y = net.tensor({64, 32}, "f32");
  net.op("aten.neg", {net.whole("self", x)}, {y});
  net.latest_op().time = Ticks(10);
  for (int i = 0; i < 3; ++i) {
    const auto w = net.tensor({32, 32}, "f32", Role::parameter), q = net.tensor({64, 32}),
               r = net.tensor({64, 32});
    net.op("aten.mm", {net.whole("self", y), net.whole("mat2", w)}, {q});
    net.latest_op().time = Ticks(1000);
    net.op(i == 2 ? "aten.add" : "aten.relu",
           i == 2 ? std::vector{net.whole("self", q), net.whole("other", x)}
                  : std::vector{net.whole("self", q)},
           {r});
    net.latest_op().time = Ticks(100);
    net.keep(r);
  }
  return net.graph();
}

OpPrice part_price(const Op& op, OpId index, std::int64_t count, std::int64_t extent) {
  return {index, Ticks(op.time.count() * count / extent + 2),
          Bytes(op.workspace.count() * count / extent)};
}

TensorPrice join_price(Bytes bytes, TensorId index) {
  return {index, Ticks(bytes.count() / 3 + 1), Bytes(bytes.count() % 5)};
}

namespace {

using dimensions::State;

// Of the region those ops that do not come after another op that comes after the region.
std::vector<OpId> first_of(const Graph& graph, const std::vector<std::uint8_t>& inside) {
  std::vector<std::uint8_t> below(graph.op_count(), 0), beyond(graph.op_count(), 0);
  std::vector<OpId> kept;
  for (const OpId op : graph.order()) {
    for (const OpId before : graph.predecessors(op)) {
      if (below[before.index()] != 0 || inside[before.index()] != 0) below[op.index()] = 1;
      if (beyond[before.index()] != 0) beyond[op.index()] = 1;
    }
    if (inside[op.index()] == 0) beyond[op.index()] |= below[op.index()];
    if (inside[op.index()] != 0 && beyond[op.index()] == 0) kept.push_back(op);
  }
  return kept;
}

}  // namespace

Split split_along(const TransformedGraph& now, const std::vector<SplitAxis>& axes,
                  std::int64_t parts, const std::vector<OpId>& among) {
  const Graph& graph = now.graph;
  std::vector<dimensions::Seed> seeds;
  for (const SplitAxis& axis : axes) seeds.push_back({now.tensors[axis.tensor.index()], axis.dim});
  std::vector<OpId> region = among;
  dimensions::Reach reach;
  std::vector<std::uint8_t> inside;
  for (std::size_t size = SIZE_MAX; region.empty() ? size != 0 : region.size() < size;) {
    size = region.empty() ? 0 : region.size();
    reach = dimensions::follow(graph, seeds, region);
    inside.assign(graph.op_count(), 0);
    for (const OpId op : AllIds<OpId>(graph.op_count()))
      inside[op.index()] = reach.carries[op.index()].has_value();
    region = first_of(graph, inside);
    if (region.empty()) break;
  }

  Split split;
  split.axes = axes;
  split.parts = parts;
  std::ranges::fill(inside, std::uint8_t{0});
  for (const OpId op : region) {
    inside[op.index()] = 1;
    split.ops.push_back(now.op_index[op]);
  }
  for (std::int64_t part = 0; part < parts; ++part) {
    auto& prices = split.prices.emplace_back();
    for (const OpId op : region) {
      const std::int64_t extent = reach.carries[op.index()]->extent;
      const std::int64_t most = (reach.carries[op.index()]->longest + parts - 1) / parts;
      const std::int64_t count = std::clamp<std::int64_t>(extent - part * most, 0, most);
      prices.push_back(part_price(graph.op(op), now.op_index[op], count, extent));
    }
  }
  for (const OpId op : region) {
    const auto& carry = *reach.carries[op.index()];
    bool before = carry.before;
    for (std::size_t i = 0; i < carry.results.size(); ++i) before |= carry.results[i].before;
    if (before) split.before.push_back({now.op_index[op], graph.time(op), Bytes(3)});
    for (const TensorId tensor : graph.outputs(op)) {
      if (carry.before) break;
      bool made_before = false;
      for (std::size_t i = 0; i < carry.results.size(); ++i)
        if (graph.op(op).results[i].tensor == tensor) made_before |= carry.results[i].before;
      const bool needed = graph.is_output(tensor) ||
                          std::ranges::any_of(graph.consumers(tensor),
                                              [&](OpId next) { return inside[next.index()] == 0; });
      if (needed && !made_before && reach.tensors[tensor.index()].state != State::whole)
        split.joins.push_back(join_price(graph.bytes(tensor), now.tensor_index[tensor]));
    }
  }
  return split;
}

Hoist hoist_of(const Graph& graph) {
  for (const OpId op : AllIds<OpId>(graph.op_count())) {
    if (!graph.is_barrier(op)) continue;
    Hoist hoist;
    hoist.tangent = graph.outputs(op).front();
    for (const TensorId output : graph.outputs())
      if (graph.producer(output).valid() &&
          graph.position(graph.producer(output)) > graph.position(op))
        hoist.joins.push_back({output, Ticks(1), Bytes(0)});
    return hoist;
  }
  return {};
}

}  // namespace lowtide
