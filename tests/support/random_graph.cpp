// Ops are drawn one after another along a hidden order, each reading what is there by then, so that
// there is no cycle; at the end everything is renumbered at random and another topological order
// becomes the given one.
#include "support/random_graph.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lowtide/graph/builder.h"

namespace lowtide {

namespace {

struct DrawnOp {
  Op op;
  std::vector<std::size_t> inputs, outputs, after, mutates;  // in hidden numbers
  std::vector<std::array<std::size_t, 2>> in_place;
};

class Drawing {
 public:
  Drawing(Random& random, const RandomGraphSettings& settings)
      : random_(random), settings_(settings), described_(random.chance(settings.described)) {}

  Graph draw() {
    const auto inputs = static_cast<std::size_t>(between(0, size(settings_.inputs)));
    for (std::size_t i = 0; i < inputs; ++i) add_input();
    for (std::size_t i = 0; i < settings_.ops; ++i) add_op(i);
    if (chance(settings_.unread_input)) add_input();
    for (std::size_t i = 0; i < settings_.ops; ++i) mutate(i);
    for (std::size_t i = 0; i < settings_.ops; ++i) pair_up(i);
    for (std::size_t t = 0; t < tensors_.size(); ++t) settle_down(t);
    if (settings_.network > 0)  // nothing is drawn for graphs without them
      for (DrawnOp& drawn : ops_)
        if (chance(settings_.network) && drawn.op.kind != kBarrierKind)
          drawn.op.lane = Lane::network;
    return assemble();
  }

 private:
  static std::int64_t size(std::size_t n) { return static_cast<std::int64_t>(n); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return random_.between(low, std::max(low, high));
  }
  // Draws even when the answer is known, so that one probability does not move another's draws.
  bool chance(double probability) { return random_.chance(probability); }

  void add_tensor(bool is_input) {
    Tensor tensor;
    tensor.bytes = Bytes(chance(settings_.zero_bytes) ? 0 : between(1, settings_.bytes));
    const bool releasable = chance(settings_.releasable);
    if (is_input) {
      constexpr std::array kRoles = {Role::input, Role::parameter, Role::state, Role::constant};
      tensor.role = kRoles[random_.below(kRoles.size())];
      tensor.releasable = releasable;
    } else if (chance(0.2)) {
      tensor.role = Role::gradient;
    }
    if (described_) {
      tensor.name = "t" + std::to_string(tensors_.size());
      tensor.dtype = "f32";
      if (chance(0.7)) tensor.shape = {tensor.bytes.count(), 1};
    }
    tensors_.push_back(std::move(tensor));
    last_reader_.push_back(SIZE_MAX);
    made_.push_back(is_input ? 0 : 1);
  }

  void add_input() { add_tensor(true); }

  void add_op(std::size_t i) {
    DrawnOp drawn;
    Op& op = drawn.op;
    op.time = Ticks(chance(settings_.zero_time) ? 0 : between(1, settings_.time));
    op.workspace = Bytes(chance(settings_.with_workspace) ? between(0, settings_.workspace) : 0);
    op.recomputable = !chance(settings_.once);
    if (chance(settings_.barrier)) {
      op.kind = kBarrierKind;
      op.recomputable = false;
    }
    if (described_) {
      op.name = "op" + std::to_string(i);
      if (op.kind.empty()) op.kind = "test.op";
      op.phase = 2 * i < settings_.ops ? "forward" : "backward";
      op.origin = "layer" + std::to_string(i / 3);
      if (chance(0.2)) op.attributes = "{\"axis\":1}";
    }
    draw_inputs(i, drawn);
    if (i > 0 && chance(settings_.after)) drawn.after.push_back(random_.below(i));

    std::size_t outputs = chance(settings_.several_outputs) ? 2 + random_.below(2) : 1;
    if (chance(settings_.no_output)) outputs = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      drawn.outputs.push_back(tensors_.size());
      add_tensor(false);
    }
    ops_.push_back(std::move(drawn));
  }

  void draw_inputs(std::size_t i, DrawnOp& drawn) {
    if (tensors_.empty() || chance(0.06)) return;
    const auto reads = between(1, size(settings_.reads));
    for (std::int64_t k = 0; k < reads; ++k) {
      const bool near = chance(0.75);
      const std::size_t reach =
          near ? std::min(settings_.window, tensors_.size()) : tensors_.size();
      const std::size_t read = tensors_.size() - 1 - random_.below(std::max<std::size_t>(reach, 1));
      // Sometimes listed twice: that counts once.
      if (std::find(drawn.inputs.begin(), drawn.inputs.end(), read) != drawn.inputs.end() &&
          !chance(0.1))
        continue;
      drawn.inputs.push_back(read);
      last_reader_[read] = i;
    }
  }

  // Only the last reader of a tensor may change it, and then no later op can come to read it.
  void mutate(std::size_t i) {
    if (!chance(settings_.mutates)) return;
    for (std::size_t read : ops_[i].inputs)
      if (last_reader_[read] == i) {
        ops_[i].mutates.push_back(read);
        return;
      }
  }

  // The output takes the bytes of the input; other inputs of as many may stand beside it.
  void pair_up(std::size_t i) {
    DrawnOp& drawn = ops_[i];
    if (!chance(settings_.in_place) || drawn.op.kind == kBarrierKind) return;
    std::vector<std::size_t> paired;
    for (const std::size_t output : drawn.outputs) {
      bool first = true;
      for (const std::size_t input : drawn.inputs) {
        const auto among = [&](const std::vector<std::size_t>& list) {
          return std::ranges::find(list, input) != list.end();
        };
        if (among(paired) || among(drawn.mutates) || chance(0.25)) continue;
        if (!first && tensors_[input].bytes != tensors_[output].bytes) continue;
        tensors_[output].bytes = tensors_[input].bytes;
        if (!tensors_[output].shape.empty())
          tensors_[output].shape = {tensors_[output].bytes.count(), 1};
        drawn.in_place.push_back({input, output});
        paired.push_back(input);
        first = false;
      }
    }
  }

  void settle_down(std::size_t t) {
    if (made_[t] != 0) return;
    tensors_[t].stays = chance(settings_.stays);
    tensors_[t].home = chance(settings_.on_host) ? Home::host : Home::device;
  }

  std::vector<std::size_t> identity(std::size_t n) const {
    std::vector<std::size_t> numbers(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = i;
    return numbers;
  }

  std::vector<std::size_t> another_order() {
    const std::size_t n = ops_.size();
    std::vector<std::size_t> producer(tensors_.size(), SIZE_MAX);
    std::vector<std::vector<std::size_t>> next(n);
    std::vector<std::size_t> waiting(n, 0), ready, order;
    const auto link = [&](std::size_t before, std::size_t op) {
      if (before == SIZE_MAX || before == op) return;
      next[before].push_back(op);
      ++waiting[op];
    };
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t made : ops_[i].outputs) producer[made] = i;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t read : ops_[i].inputs) link(producer[read], i);
      for (std::size_t before : ops_[i].after) link(before, i);
      for (std::size_t changed : ops_[i].mutates)
        for (std::size_t j = 0; j < n; ++j)
          if (std::count(ops_[j].inputs.begin(), ops_[j].inputs.end(), changed) > 0) link(j, i);
    }
    for (std::size_t i = 0; i < n; ++i)
      if (waiting[i] == 0) ready.push_back(i);
    while (!ready.empty()) {
      std::swap(ready[random_.below(ready.size())], ready.back());
      const std::size_t op = ready.back();
      ready.pop_back();
      order.push_back(op);
      for (std::size_t i : next[op])
        if (--waiting[i] == 0) ready.push_back(i);
    }
    return order;
  }

  Graph assemble() {
    const bool shuffled = chance(settings_.shuffled);
    std::vector<std::size_t> op_at = identity(ops_.size()), tensor_at = identity(tensors_.size());
    std::vector<std::size_t> order = op_at;
    if (shuffled) {
      random_.shuffle(op_at);
      random_.shuffle(tensor_at);
      order = another_order();
    }
    std::vector<std::size_t> op_number(ops_.size()), tensor_number(tensors_.size());
    for (std::size_t i = 0; i < op_at.size(); ++i) op_number[op_at[i]] = i;
    for (std::size_t i = 0; i < tensor_at.size(); ++i) tensor_number[tensor_at[i]] = i;
    const auto renumber = [](const std::vector<std::size_t>& hidden,
                             const std::vector<std::size_t>& number) {
      std::vector<std::int64_t> result;
      result.reserve(hidden.size());
      for (std::size_t i : hidden) result.push_back(size(number[i]));
      return result;
    };

    GraphBuilder builder;
    if (described_) builder.set_name("random");
    builder.set_tick(TickUnit::ns);
    builder.set_resident(Bytes(between(0, settings_.resident)));
    std::vector<std::int64_t> kept;
    for (std::size_t at : tensor_at) {
      const bool keep = chance(made_[at] != 0 ? settings_.kept : settings_.kept / 3);
      const bool sink = made_[at] != 0 && last_reader_[at] == SIZE_MAX;
      const TensorId id = builder.add_tensor(tensors_[at]);
      if (keep || (sink && chance(0.5))) kept.push_back(size(id.index()));
    }
    for (std::size_t at : op_at) {
      const DrawnOp& drawn = ops_[at];
      OpLinks links;
      links.inputs = renumber(drawn.inputs, tensor_number);
      links.outputs = renumber(drawn.outputs, tensor_number);
      links.after = renumber(drawn.after, op_number);
      links.mutates = renumber(drawn.mutates, tensor_number);
      for (const auto& [input, output] : drawn.in_place)
        links.in_place.push_back({size(tensor_number[input]), size(tensor_number[output])});
      builder.add_op(drawn.op, links);
    }
    builder.set_outputs(std::move(kept));
    if (shuffled || chance(0.3)) builder.set_order(renumber(order, op_number));
    return builder.build();
  }

  Random& random_;
  const RandomGraphSettings& settings_;
  bool described_;
  std::vector<DrawnOp> ops_;
  std::vector<Tensor> tensors_;
  std::vector<std::uint8_t> made_;        // by an op
  std::vector<std::size_t> last_reader_;  // SIZE_MAX if nothing reads the tensor
};

}  // namespace

RandomGraphSettings RandomGraphSettings::plain(std::size_t ops) {
  RandomGraphSettings settings;
  settings.ops = ops;
  settings.resident = 0;
  settings.zero_bytes = settings.zero_time = settings.several_outputs = settings.no_output = 0;
  settings.with_workspace = settings.once = settings.barrier = settings.mutates = 0;
  settings.after = settings.unread_input = settings.kept = settings.releasable = 0;
  settings.in_place = settings.stays = 0;
  return settings;
}

Graph random_graph(Random& random, const RandomGraphSettings& settings) {
  return Drawing(random, settings).draw();
}

}  // namespace lowtide
