#include "lowtide/solve/magis/view.h"

#include <algorithm>

#include "lowtide/base/error.h"
#include "lowtide/solve/magis/mix.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::magis {

namespace {

std::uint64_t number(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Mixes the properties of the op alone: kind, price, sizes.
std::uint64_t label_of(const Graph& graph, OpId op) {
  std::uint64_t label = mix(graph.op(op).kind);
  label = mix(label, number(graph.time(op).count()));
  label = mix(label, number(graph.workspace(op).count()));
  label = mix(label, graph.recomputable(op) ? 1 : 0);
  for (const TensorId made : graph.outputs(op)) {
    label = mix(label, number(graph.bytes(made).count()));
    label = mix(label, graph.is_output(made) ? 1 : 0);
  }
  return label;
}

}  // namespace

std::pair<Tasks, std::vector<OpId>> tasks_of(const Graph& graph, const View& view,
                                             std::size_t first, std::size_t last) {
  std::pair<Tasks, std::vector<OpId>> found;
  auto& [tasks, ops] = found;
  const std::size_t count = last - first;
  tasks.before.resize(count);
  tasks.after.resize(count);
  tasks.reads.resize(count);
  tasks.makes.resize(count);
  const auto inside = [&](OpId op) {
    const std::size_t at = view.place[op.index()];
    return first <= at && at < last;
  };
  std::vector<std::int32_t> item_of(view.tensor.size(), -1);
  const auto item = [&](Slot slot) {
    if (item_of[slot] < 0) {
      item_of[slot] = static_cast<std::int32_t>(tasks.items.size());
      tasks.items.emplace_back().bytes = view.bytes[slot];
      const TensorId tensor = view.tensor[slot];
      tasks.items.back().stays = graph.is_output(tensor) || !graph.freeable(tensor);
    }
    return static_cast<std::uint32_t>(item_of[slot]);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const OpId op = view.order[first + i];
    ops.push_back(op);
    tasks.workspace.push_back(view.workspace[op.index()]);
    for (const OpId other : graph.predecessors(op))
      if (inside(other))
        tasks.before[i].push_back(static_cast<Task>(view.place[other.index()] - first));
    for (const OpId other : graph.successors(op))
      if (inside(other))
        tasks.after[i].push_back(static_cast<Task>(view.place[other.index()] - first));
    for (const Slot slot : view.makes[op.index()]) {
      const std::uint32_t made = item(slot);
      tasks.items[made].maker = static_cast<std::int32_t>(i);
      tasks.makes[i].push_back(made);
    }
    for (const Slot slot : view.reads[op.index()]) {
      const std::uint32_t read = item(slot);
      tasks.items[read].readers.push_back(static_cast<Task>(i));
      tasks.reads[i].push_back(read);
    }
  }
  for (const RegionOfView& region : view.regions)
    for (const Slot slot : region.held)
      if (item_of[slot] >= 0) tasks.items[static_cast<std::size_t>(item_of[slot])].stays = true;
  // Read after the stretch.
  for (std::size_t at = last; at < view.order.size(); ++at)
    for (const Slot slot : view.reads[view.order[at].index()])
      if (item_of[slot] >= 0) tasks.items[static_cast<std::size_t>(item_of[slot])].stays = true;
  return found;
}

void reorder(const Graph& graph, View& view, std::size_t first, std::span<const OpId> run) {
  std::ranges::copy(run, view.order.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = 0; i < run.size(); ++i) view.place[run[i].index()] = first + i;
  view.deadline = rerun_deadlines(graph, view.order);
}

Views::Views(const Graph& graph, const rewrite::FissionTree& tree, const PartPricer* pricer,
             const Machine* machine)
    : graph_(graph), tree_(tree), pricer_(pricer), machine_(machine) {
  for (const OpId op : AllIds<OpId>(graph.op_count())) labels_.push_back(label_of(graph, op));
}

const rewrite::RegionInParts* Views::region(std::size_t node, std::int64_t parts) {
  const auto [at, fresh] = priced_.try_emplace({node, parts});
  if (fresh)
    if (const auto priced =
            rewrite::PricedRegion::make(graph_, tree_.nodes[node].region, parts, *pricer_))
      at->second = std::make_unique<const rewrite::RegionInParts>(priced->in_parts());
  return at->second.get();
}

std::unique_ptr<View> Views::view(const rewrite::Fission& fission, const std::vector<OpId>& order) {
  View view;
  view.fission = fission;
  view.order = order;
  view.label = labels_;
  view.region.assign(graph_.op_count(), View::kOutside);
  view.reads.resize(graph_.op_count());
  view.makes.resize(graph_.op_count());
  for (const OpId op : AllIds<OpId>(graph_.op_count())) {
    view.time.push_back(graph_.time(op).count());
    view.workspace.push_back(graph_.workspace(op).count());
  }
  for (const TensorId id : AllIds<TensorId>(graph_.tensor_count())) {
    view.tensor.push_back(id);
    view.bytes.push_back(graph_.bytes(id).count());
    view.home.push_back(View::kOutside);
  }
  std::vector<const rewrite::RegionInParts*> regions;
  for (std::size_t node = 0; node < fission.size(); ++node) {
    if (fission[node] == 1) continue;
    const rewrite::RegionInParts* found = region(node, fission[node]);
    if (found == nullptr) return nullptr;
    const auto index = static_cast<std::int32_t>(view.regions.size());
    for (const OpId op : found->ops)
      if (std::exchange(view.region[op.index()], index) != View::kOutside) return nullptr;
    auto& at = view.regions.emplace_back();
    at.node = node;
    at.parts = fission[node];
    regions.push_back(found);
  }
  for (std::size_t i = 0; i < regions.size(); ++i)
    fill(view, view.regions[i], *regions[i], static_cast<std::int32_t>(i));
  if (!put_together(view)) return nullptr;
  finish(view);
  return std::make_unique<View>(std::move(view));
}

// The tensors that a region makes and reads, at the sizes of a part.
void Views::fill(View& view, RegionOfView& at, const rewrite::RegionInParts& region,
                 std::int32_t index) const {
  std::uint64_t all = number(at.parts);
  for (const OpId op : region.ops) all += labels_[op.index()];
  for (std::size_t i = 0; i < region.ops.size(); ++i) {
    const std::size_t op = region.ops[i].index();
    view.time[op] = region.time[i].count();
    view.workspace[op] = region.workspace[i].count();
    view.label[op] = mix(view.label[op], all);
  }
  for (const auto& made : region.made) {
    const auto slot = static_cast<Slot>(made.tensor.index());
    view.bytes[slot] = made.part.count();
    view.home[slot] = index;
    view.workspace[graph_.producer(made.tensor).index()] =
        std::max(view.workspace[graph_.producer(made.tensor).index()], made.workspace.count());
    if (!made.joined) continue;
    at.joined.emplace_back(slot, static_cast<Slot>(view.tensor.size()));
    view.tensor.push_back(made.tensor);
    view.bytes.push_back(graph_.bytes(made.tensor).count());
    view.home.push_back(View::kOutside);
    at.together += made.together.count();
    at.joining += made.joining.count();
  }
  for (const TensorId held : region.held) at.held.push_back(static_cast<Slot>(held.index()));
}

// Puts each region's ops after all that they need, and the rest after them, as in the transformed
// graph. False if two regions need each other.
bool Views::put_together(View& view) const {
  for (std::size_t index = 0; index < view.regions.size(); ++index) {
    const auto here = static_cast<std::int32_t>(index);
    std::vector<std::uint8_t> above(graph_.op_count(), 0);
    std::vector<std::uint8_t> region_above(view.regions.size(), 0);
    // A region whose ops are already consecutive is taken as a whole.
    bool more = true;
    while (more) {
      more = false;
      for (auto op = view.order.rbegin(); op != view.order.rend(); ++op) {
        const std::int32_t of = view.region[op->index()];
        if (of == here || above[op->index()] != 0) continue;
        bool is_above = of >= 0 && of < here && region_above[static_cast<std::size_t>(of)] != 0;
        for (const OpId next : graph_.successors(*op))
          is_above = is_above || view.region[next.index()] == here || above[next.index()] != 0;
        if (!is_above) continue;
        above[op->index()] = 1;
        if (of >= 0 && of < here && region_above[static_cast<std::size_t>(of)] == 0) {
          region_above[static_cast<std::size_t>(of)] = 1;
          more = true;
        }
      }
    }
    std::vector<OpId> first, mine, rest;
    for (const OpId op : view.order)
      (view.region[op.index()] == here ? mine
       : above[op.index()] != 0        ? first
                                       : rest)
          .push_back(op);
    view.order = std::move(first);
    view.order.insert(view.order.end(), mine.begin(), mine.end());
    view.order.insert(view.order.end(), rest.begin(), rest.end());
  }
  view.place.resize(graph_.op_count());
  for (std::size_t at = 0; at < view.order.size(); ++at) view.place[view.order[at].index()] = at;
  for (const OpId op : view.order)
    for (const OpId before : graph_.predecessors(op))
      if (view.place[before.index()] > view.place[op.index()]) return false;
  for (std::size_t at = 0; at < view.order.size(); ++at) {
    const std::int32_t of = view.region[view.order[at].index()];
    if (of == View::kOutside) continue;
    RegionOfView& region = view.regions[static_cast<std::size_t>(of)];
    if (at == 0 || view.region[view.order[at - 1].index()] != of) region.first = at;
    region.last = at;
  }
  return true;
}

void Views::finish(View& view) const {
  view.deadline = rerun_deadlines(graph_, view.order);
  // Readers outside the region that makes a tensor read the joined tensor.
  std::vector<Slot> outside(graph_.tensor_count());
  for (std::size_t i = 0; i < outside.size(); ++i) outside[i] = static_cast<Slot>(i);
  for (const RegionOfView& region : view.regions)
    for (const auto& [part, whole] : region.joined) outside[part] = whole;
  for (RegionOfView& region : view.regions)
    for (Slot& slot : region.held) slot = outside[slot];
  for (const OpId op : AllIds<OpId>(graph_.op_count())) {
    for (const TensorId id : graph_.inputs(op)) {
      const bool same = view.home[id.index()] == view.region[op.index()];
      view.reads[op.index()].push_back(same ? static_cast<Slot>(id.index()) : outside[id.index()]);
    }
    for (const TensorId id : graph_.outputs(op))
      view.makes[op.index()].push_back(static_cast<Slot>(id.index()));
  }
  if (machine_ == nullptr) return;
  for (std::size_t slot = 0; slot < view.tensor.size(); ++slot) {
    const std::int32_t home = view.home[slot];
    const double parts =
        home == View::kOutside
            ? 1
            : static_cast<double>(view.regions[static_cast<std::size_t>(home)].parts);
    const auto ticks = [&](const Link& link) {
      constexpr double kMost = 0x1p60;  // longer than any plan
      const double time =
          static_cast<double>(link.latency.count()) + static_cast<double>(view.bytes[slot]) *
                                                          static_cast<double>(link.ticks.count()) /
                                                          static_cast<double>(link.bytes.count());
      return static_cast<std::int64_t>(std::min(parts * time, kMost));
    };
    view.out.push_back(ticks(machine_->device_to_host));
    view.in.push_back(ticks(machine_->host_to_device));
  }
}

}  // namespace lowtide::solve::magis
