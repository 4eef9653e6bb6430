// Problem: give a set of ops a hash that equal sets share and different sets do not.
//
// Idea: colour each op, and each tensor from outside, by its properties; then repeatedly recolour
// it by its colour and those of its neighbours, with the position of each link. On a DAG one sweep
// forwards and one backwards carry a difference through the whole block, so the number of colours
// settles after a few sweeps. A vertex with a colour of its own is identified by it and removed;
// the rest falls into components, which are hashed one by one. A component in which every colour is
// shared has a symmetry, or seems to have one: each vertex of one colour is individualised in turn,
// and the smallest hash counts.
//
// Source: colour refinement, B. Weisfeiler and A. Leman, 1968; individualisation as in B. McKay,
// "Practical graph isomorphism", 1981.
//
// Invariant: no value depends on an index. The order of a sweep does not matter as long as it is
// topological.
//
// Loses: on regular graphs of equal ops. Individualising one vertex distinguishes few others there,
// and each costs a search of its own. Beyond a limit of sweeps such a component is hashed by its
// colours alone, and the form says that it is not exact.
#include "lowtide/graph/blocks.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "lowtide/base/csr.h"
#include "lowtide/base/error.h"
#include "lowtide/graph/digest.h"
#include "lowtide/graph/op_label.h"

namespace lowtide {

namespace {

// The most visits of vertices and links for one component, absolute and relative to its size.
constexpr std::size_t kLeastBudget = std::size_t{1} << 21, kBudgetOfSize = 64;

// Numbers tensors in the order in which they are seen. A table of its own, since large blocks look
// up every link.
class TensorNumbers {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t size() const { return count_; }
  // A new tensor gets the value of `size()` before the call.
  std::uint32_t of(TensorId tensor) {
    if (2 * (std::size_t{count_} + 1) > slots_.size()) grow();
    Slot& slot = find(tensor);
    if (slot.number == kNone) slot = {tensor, count_++};
    return slot.number;
  }

 private:
  struct Slot {
    TensorId tensor;
    std::uint32_t number = kNone;
  };

  Slot& find(TensorId tensor) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (tensor.index() * 0x9e3779b97f4a7c15u) >> 32 & mask;
    while (slots_[at].number != kNone && slots_[at].tensor != tensor) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    const std::vector<Slot> before =
        std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(16, 2 * slots_.size())));
    for (const Slot& slot : before)
      if (slot.number != kNone) find(slot.tensor) = slot;
  }

  std::vector<Slot> slots_;
  std::uint32_t count_ = 0;
};

// Ops of the block and tensors from outside, numbered topologically: the tensors come first.
class LocalGraph {
 public:
  struct Link {
    std::uint32_t other;
    std::uint32_t output, input;  // places among the outputs of one and the inputs of the other
  };

  LocalGraph(const Graph& graph, std::span<const OpId> ops, Alike alike)
      : ops_(ops.begin(), ops.end()), alike_(alike) {
    std::ranges::sort(ops_, {}, [&](OpId op) { return graph.position(op); });
    check(std::ranges::adjacent_find(ops_) == ops_.end(), "block_form: each op once");
    number_tensors(graph);
    colour(graph);
    link(graph);
  }

  std::size_t size() const { return outside_ + ops_.size(); }
  const std::vector<OpId>& ops() const { return ops_; }
  bool is_op(std::size_t vertex) const { return vertex >= outside_; }
  OpId op(std::size_t vertex) const { return ops_[vertex - outside_]; }
  std::span<const Link> before(std::size_t vertex) const { return before_.of(vertex); }
  std::span<const Link> behind(std::size_t vertex) const { return behind_.of(vertex); }
  std::vector<Digest> take_colours() { return std::move(colours_); }

 private:
  // Larger than any position among the outputs of an op.
  static constexpr std::uint32_t kFromOutside = kMaxCount, kAfter = kMaxCount - 1;

  // The entries of vertex v begin at first[v].
  struct Links {
    std::vector<std::size_t> first;
    std::vector<Link> all;
    std::span<const Link> of(std::size_t vertex) const {
      return {all.data() + first[vertex], all.data() + first[vertex + 1]};
    }
  };

  struct Source {
    std::uint32_t vertex;  // the op that makes a tensor, or the tensor from outside
    std::uint32_t output;
  };

  // The outputs of the block's ops first, op by op, then the tensors from outside.
  void number_tensors(const Graph& graph) {
    for (OpId op : ops_)
      for (TensorId tensor : graph.outputs(op)) add_tensor(graph, tensor);
    const std::size_t made = numbers_.size();
    std::size_t links = 0;
    for (OpId op : ops_) links += graph.inputs(op).size();
    reads_.reserve(ops_.size(), links);
    for (OpId op : ops_) {
      for (TensorId tensor : graph.inputs(op)) reads_.push(add_tensor(graph, tensor));
      reads_.end_row();
    }
    outside_ = numbers_.size() - made;
    sources_.reserve(numbers_.size());
    for (std::size_t i = 0; i < ops_.size(); ++i)
      for (std::size_t k = 0; k < graph.outputs(ops_[i]).size(); ++k)
        sources_.push_back({narrow(outside_ + i), narrow(k)});
    for (std::size_t i = 0; i < outside_; ++i) sources_.push_back({narrow(i), kFromOutside});
  }

  std::uint32_t add_tensor(const Graph& graph, TensorId tensor) {
    const std::uint32_t number = numbers_.of(tensor);
    if (number == labels_.size()) {
      labels_.push_back(tensor_label(graph.tensor(tensor), alike_));
      readers_.push_back(0);
    }
    return number;
  }

  void colour(const Graph& graph) {
    for (std::size_t i = 0; i < ops_.size(); ++i)
      for (const std::uint32_t number : reads_[i]) ++readers_[number];
    colours_.assign(outside_, Digest());
    std::vector<Digest> labels;
    std::size_t number = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const auto outputs = graph.outputs(ops_[i]);
      labels.clear();
      for (const std::uint32_t read : reads_[i]) labels.push_back(labels_[read]);
      for (std::size_t k = 0; k < outputs.size(); ++k) labels.push_back(labels_[number + k]);
      Digester digest(op_label(graph, ops_[i], labels, alike_));
      for (TensorId tensor : outputs) {
        const bool leaves = graph.consumers(tensor).size() > readers_[number++];
        digest.add(leaves || graph.is_output(tensor));
      }
      colours_.push_back(digest.get());
    }
  }

  void link(const Graph& graph) {
    before_.first.assign(outside_ + 1, 0);
    before_.all.reserve(reads_.size());
    behind_.first.assign(size() + 1, 0);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      for (std::size_t k = 0; k < reads_[i].size(); ++k) {
        const Source& source = sources_[reads_[i][k]];
        before_.all.push_back({source.vertex, source.output, narrow(k)});
      }
      for (OpId earlier : graph.after(ops_[i]))
        if (const auto found = vertex_of(graph, earlier))
          before_.all.push_back({*found, kAfter, 0});
      before_.first.push_back(before_.all.size());
    }
    for (const Link& link : before_.all) ++behind_.first[link.other + 1];
    std::partial_sum(behind_.first.begin(), behind_.first.end(), behind_.first.begin());
    behind_.all.resize(before_.all.size());
    std::vector<std::size_t> next(behind_.first.begin(), behind_.first.end() - 1);
    for (std::size_t vertex = outside_; vertex < size(); ++vertex)
      for (const Link& link : before(vertex))
        behind_.all[next[link.other]++] = {narrow(vertex), link.output, link.input};
  }

  std::optional<std::uint32_t> vertex_of(const Graph& graph, OpId op) const {
    const auto found = std::ranges::lower_bound(ops_, graph.position(op), {},
                                                [&](OpId other) { return graph.position(other); });
    if (found == ops_.end() || *found != op) return std::nullopt;
    return narrow(outside_ + static_cast<std::size_t>(found - ops_.begin()));
  }
  static std::uint32_t narrow(std::size_t number) { return static_cast<std::uint32_t>(number); }

  std::vector<OpId> ops_;
  Alike alike_;
  std::size_t outside_ = 0;
  TensorNumbers numbers_;
  // For each tensor, by its number.
  std::vector<Digest> labels_;
  std::vector<std::size_t> readers_;  // in the block
  std::vector<Source> sources_;
  Csr<std::uint32_t> reads_;  // of each op, in order of its inputs
  std::vector<Digest> colours_;
  Links before_, behind_;
};

class Naming {
 public:
  explicit Naming(LocalGraph& graph)
      : graph_(graph), colours_(graph.take_colours()), part_(graph.size(), 0) {}

  struct Named {
    Digest name;
    std::vector<std::size_t> order;
  };
  using Vertices = std::vector<std::size_t>;  // ascending, so topological

  Named name_all() {
    Vertices all(graph_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return name(all);
  }
  bool exact() const { return exact_; }

 private:
  enum class Tag : std::uint64_t { mark, parts, symmetry, given_up };
  static Digester begin(Tag tag) {
    Digester digest;
    digest.add(static_cast<std::uint64_t>(tag));
    return digest;
  }

  Named name(const Vertices& vertices) {
    ++parts_;
    for (const std::size_t vertex : vertices) part_[vertex] = parts_;
    refine(vertices);
    Vertices sorted = vertices;
    std::ranges::sort(sorted, {}, [&](std::size_t vertex) { return colours_[vertex]; });
    Named whole;
    Vertices shared;
    for_cells(sorted, [&](std::span<const std::size_t> cell) {
      if (cell.size() == 1)
        whole.order.push_back(cell.front());
      else
        shared.insert(shared.end(), cell.begin(), cell.end());
    });
    Digester digest = begin(Tag::parts);
    digest.add(whole.order.size());
    for (const std::size_t vertex : whole.order) digest.add(colours_[vertex]);
    if (!shared.empty()) {
      std::vector<Vertices> apart = components(std::move(shared));
      std::vector<Named> named;
      if (apart.size() == 1 && whole.order.empty()) {
        named.push_back(name_symmetric(apart.front(), sorted));
      } else {
        for (const Vertices& part : apart) named.push_back(name(part));
      }
      std::ranges::sort(named, {}, &Named::name);
      for (const Named& part : named) {
        digest.add(part.name);
        whole.order.insert(whole.order.end(), part.order.begin(), part.order.end());
      }
    }
    whole.name = digest.get();
    return whole;
  }

  // Sweeps until a sweep in both directions brings no new colour. That last sweep puts the final
  // colours of all neighbours into each colour. If no two vertices share a colour, nothing has to
  // be confirmed: the half sweep backwards, the last one that changed colours, has already included
  // those of all neighbours.
  void refine(const Vertices& vertices) {
    std::size_t before = count_colours(vertices);
    for (;;) {
      for (std::size_t i = 0; i < vertices.size(); ++i)
        recolour(vertices[i], graph_.before(vertices[i]));
      for (std::size_t i = vertices.size(); i-- > 0;)
        recolour(vertices[i], graph_.behind(vertices[i]));
      const std::size_t after = count_colours(vertices);
      if (after == before || after == vertices.size()) return;
      before = after;
    }
  }

  static std::uint64_t place(const LocalGraph::Link& link) {
    return std::uint64_t{link.output} << 32 | link.input;
  }

  void recolour(std::size_t vertex, std::span<const LocalGraph::Link> links) {
    Digest sum;
    for (const LocalGraph::Link& link : links)
      if (part_[link.other] == part_[vertex])
        sum += Digester(colours_[link.other]).add(place(link)).get();
    colours_[vertex] = Digester(colours_[vertex]).add(sum).get();
    work_ += 1 + links.size();
  }

  std::size_t count_colours(const Vertices& vertices) {
    sorted_.clear();
    for (const std::size_t vertex : vertices) sorted_.push_back(colours_[vertex]);
    std::ranges::sort(sorted_);
    return static_cast<std::size_t>(std::ranges::unique(sorted_).begin() - sorted_.begin());
  }

  template <class Visit>
  void for_cells(std::span<const std::size_t> sorted, Visit visit) const {
    for (std::size_t from = 0; from < sorted.size();) {
      std::size_t to = from + 1;
      while (to < sorted.size() && colours_[sorted[to]] == colours_[sorted[from]]) ++to;
      visit(sorted.subspan(from, to - from));
      from = to;
    }
  }

  std::vector<Vertices> components(Vertices vertices) {
    std::ranges::sort(vertices);
    ++parts_;
    const std::size_t unseen = parts_;
    for (const std::size_t vertex : vertices) part_[vertex] = unseen;
    std::vector<Vertices> apart;
    for (const std::size_t start : vertices) {
      if (part_[start] != unseen) continue;
      ++parts_;
      part_[start] = parts_;
      Vertices part{start};
      for (std::size_t next = 0; next < part.size(); ++next)
        for (const auto links : {graph_.before(part[next]), graph_.behind(part[next])})
          for (const LocalGraph::Link& link : links)
            if (part_[link.other] == unseen) {
              part_[link.other] = parts_;
              part.push_back(link.other);
            }
      std::ranges::sort(part);
      apart.push_back(std::move(part));
    }
    return apart;
  }

  // For a connected component in which no vertex has a colour of its own. All vertices of the
  // colour are tried, whatever the results, so that the work, and thus whether the search gives up,
  // does not depend on the numbering.
  Named name_symmetric(const Vertices& vertices, std::span<const std::size_t> sorted) {
    const bool outermost = !std::exchange(searching_, true);
    std::vector<Digest> colours;
    std::size_t links = 0;
    for (const std::size_t vertex : vertices) {
      colours.push_back(colours_[vertex]);
      links += graph_.before(vertex).size() + graph_.behind(vertex).size();
    }
    if (outermost)
      limit_ = work_ + std::max(kLeastBudget, kBudgetOfSize * (vertices.size() + links));
    std::span<const std::size_t> smallest = sorted;
    for_cells(sorted, [&](std::span<const std::size_t> cell) {
      if (cell.size() < smallest.size()) smallest = cell;
    });
    Named best;
    bool found = false;
    for (const std::size_t marked : smallest) {
      if (work_ > limit_) break;
      for (std::size_t i = 0; i < vertices.size(); ++i) colours_[vertices[i]] = colours[i];
      colours_[marked] = begin(Tag::mark).add(colours_[marked]).get();
      Named named = name(vertices);
      if (!found || named.name < best.name) best = std::move(named);
      found = true;
    }
    best.name = begin(Tag::symmetry).add(best.name).get();
    if (!outermost) return best;
    searching_ = false;
    if (work_ <= limit_) return best;
    exact_ = false;
    std::ranges::sort(colours);
    Digester digest = begin(Tag::given_up);
    for (const Digest& colour : colours) digest.add(colour);
    return {digest.get(), {sorted.begin(), sorted.end()}};
  }

  LocalGraph& graph_;
  std::vector<Digest> colours_;
  // The component of each vertex. Only links within one component count.
  std::vector<std::size_t> part_;
  std::size_t parts_ = 0;
  std::vector<Digest> sorted_;
  std::size_t work_ = 0, limit_ = 0;
  bool searching_ = false, exact_ = true;
};

}  // namespace

std::string to_string(const BlockHash& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {hash.high, hash.low})
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  return text;
}

BlockForm block_form(const Graph& graph, std::span<const OpId> ops, Alike alike) {
  LocalGraph local(graph, ops, alike);
  Naming naming(local);
  const Naming::Named named = naming.name_all();
  BlockForm form{.hash = {named.name.a, named.name.b}, .ops = {}, .exact = naming.exact()};
  form.ops.reserve(ops.size());
  for (const std::size_t vertex : named.order)
    if (local.is_op(vertex)) form.ops.push_back(local.op(vertex));
  return form;
}

BlockHash block_hash(const Graph& graph, std::span<const OpId> ops, Alike alike) {
  return block_form(graph, ops, alike).hash;
}

}  // namespace lowtide
