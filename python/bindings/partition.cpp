// lowtide/graph/make_partition.h and lowtide/solve/hierarchy/partition/partitioner.h: partitions as
// plain data, and partitioners that are written in Python.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/make_partition.h"

#include "convert.h"
#include "guests.h"
#include "search.h"

namespace lowtide::python {

namespace {

using solve::partition::Partitioner;

std::string label_of(const BlockTree& tree, BlockId id) {
  std::string text = "block " + std::to_string(id.index());
  if (id.index() < tree.names.size() && !tree.names[id.index()].empty())
    text += " \"" + tree.names[id.index()] + "\"";
  return text;
}

// Reads a tree of dicts without recursion: nests may be thousands deep. Blocks are numbered as they
// are met, each before those inside it.
class TreeReader {
 public:
  TreeReader(const Graph& graph, std::string who)
      : graph_(graph), who_(std::move(who)), tree_(graph.op_count()) {
    for (BlockId& block : tree_.block_of) block = BlockId();
  }

  BlockTree read(nb::handle said) {
    std::vector<std::pair<nb::object, BlockId>> open;
    open.emplace_back(nb::borrow(said), BlockId());
    std::unordered_set<PyObject*> seen;  // or a block inside itself would have no end
    std::vector<nb::object> held;        // so that no other is at the place of one seen
    while (!open.empty()) {
      const auto [entry, parent] = std::move(open.back());
      open.pop_back();
      const BlockId id = add(entry, parent);
      if (!seen.insert(entry.ptr()).second) fail(id, "the same dict stands in the tree twice");
      held.push_back(entry);
      const nb::dict block = nb::borrow<nb::dict>(entry);
      if (block.contains("ops")) read_ops(block["ops"], id);
      if (!block.contains("blocks")) continue;
      const auto begin = static_cast<std::ptrdiff_t>(open.size());
      for (nb::handle inside : elements_of(block["blocks"], place(id) + ": blocks", "dicts"))
        open.emplace_back(nb::borrow(inside), id);
      std::reverse(open.begin() + begin, open.end());
    }
    for (const OpId op : tree_.block_of.ids())
      if (!tree_.block_of[op].valid())
        throw InputError(who_, graph_.label(op) + " is in no block; every op must be in one");
    return std::move(tree_);
  }

 private:
  std::string place(BlockId id) const { return who_ + ": " + label_of(tree_, id); }
  [[noreturn]] void fail(BlockId id, const std::string& reason) const {
    throw InputError(place(id), reason);
  }

  BlockId add(nb::handle entry, BlockId parent) {
    const BlockId id = parent.valid() ? tree_.add(parent) : BlockId(0);
    if (!nb::isinstance<nb::dict>(entry))
      throw InputError(parent.valid() ? place(id) : who_ + ": what partition() returned",
                       fmt::format("{} where a dict with \"ops\", \"blocks\" or both should be",
                                   kind_of(entry)));
    for (const auto& [key, value] : nb::borrow<nb::dict>(entry)) {
      const std::string word =
          nb::isinstance<nb::str>(key) ? std::string(text_of(key)) : nb::repr(key).c_str();
      if (word == "name") {
        if (!nb::isinstance<nb::str>(value)) fail(id, "its name is no str");
        tree_.names.resize(tree_.parents.size());
        tree_.names.back() = text_of(value);
      } else if (word != "ops" && word != "blocks") {
        fail(id, "\"" + word + "\" is no key of a block; there are: name, ops, blocks");
      }
    }
    return id;
  }

  void read_ops(nb::handle ops, BlockId id) {
    const std::string where = place(id) + ": ops";
    for (nb::handle index : elements_of(ops, where, "indices")) {
      const OpId op = op_from(index, graph_, where);
      BlockId& block = tree_.block_of[op];
      if (block.valid())
        fail(id, graph_.label(op) + (block == id ? " stands in it twice"
                                                 : " is in " + label_of(tree_, block) + " too"));
      block = id;
    }
  }

  const Graph& graph_;
  std::string who_;
  BlockTree tree_;
};

class GuestPartitioner final : public Partitioner {
 public:
  GuestPartitioner(Guest guest, GraphObject graph)
      : guest_(std::move(guest)), graph_(std::move(graph)) {}

  std::string_view name() const override { return guest_.name; }
  std::string_view summary() const override { return "an object of the caller's"; }

  // The thread that solves holds no interpreter lock; it is taken around the call.
  std::optional<Partition> partition(const Graph& graph, const solve::Options& /*options*/,
                                     const std::function<bool()>& stop) const override {
    if (stop && stop()) return std::nullopt;
    const std::string who = "partitioner \"" + guest_.name + "\"";
    const BlockTree tree = ask(graph, who);
    try {
      return make_partition(graph, phases_of(graph), tree);
    } catch (const InputError& error) {
      throw InputError(who, error.what());
    }
  }

 private:
  BlockTree ask(const Graph& graph, const std::string& who) const {
    const nb::gil_scoped_acquire locked;
    const GraphObject own = &graph == graph_.graph.get() ? graph_ : make_graph(Graph(graph));
    const nb::object said = guest_.is.attr("partition")(own);
    return TreeReader(graph, who).read(said);
  }

  Guest guest_;
  GraphObject graph_;
};

nb::dict tree_of(const Partition& partition) {
  std::vector<nb::dict> blocks;
  for (const Block& block : partition.blocks) {
    nb::list ops;
    for (const Half* half : {&block.forward, &block.backward})
      for (const BlockPart& part : half->parts)
        if (part.op.valid()) ops.append(part.op.index());
    nb::dict made;
    made["name"] = block.name;
    made["ops"] = ops;
    made["blocks"] = nb::list();
    if (block.parent.valid())
      nb::borrow<nb::list>(blocks[block.parent.index()]["blocks"]).append(made);
    blocks.push_back(std::move(made));
  }
  return blocks.front();
}

nb::dict partition(const GraphObject& graph, const std::string& with,
                   const std::optional<nb::dict>& given) {
  const auto table = solve::partition::make_partitioners();
  const Partitioner* partitioner = table.find(with);
  if (partitioner == nullptr) {
    std::string names;
    for (const auto& one : table.all())
      names += (names.empty() ? "" : ", ") + std::string(one->name());
    throw InputError("with_ \"" + with + "\"", "is no partitioner; there are: " + names);
  }
  solve::Options options(partitioner->options());
  for (const auto& [name, value] : options_of({}, given).texts) options.set(name, value);
  std::optional<Partition> made;
  {
    const nb::gil_scoped_release released;
    made = partitioner->partition(*graph, options);
  }
  return tree_of(*made);
}

}  // namespace

std::unique_ptr<Partitioner> make_guest_partitioner(Guest guest, GraphObject graph) {
  return std::make_unique<GuestPartitioner>(std::move(guest), std::move(graph));
}

void bind_partition(nb::module_& module) {
  module.def(
      "partition", &partition, nb::arg("graph"), nb::kw_only(), nb::arg("with_") = "h_partition",
      nb::arg("options") = nb::none(),
      nb::sig("def partition(graph: Graph, *, with_: str = \"h_partition\", options: dict[str, "
              "typing.Any] | None = None) -> dict[str, typing.Any]"),
      "Partition a graph into a tree of blocks, as `lowtide partition` does: a dict with \"name\", "
      "\"ops\" (the indices of ops outside of inner blocks) and \"blocks\", a list of such dicts. "
      "Your own partitioner for `hiremate` returns the same form.\n\n`with_`: a partitioner; "
      "`options`: its options by name. `lowtide partition --help` lists both. Raises Error.");
}

}  // namespace lowtide::python
