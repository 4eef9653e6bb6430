// lowtide/solve/hierarchy/block/block_solver.h: block solvers that are written in Python, and what
// they are asked and answer.
#include "lowtide/solve/hierarchy/block/block_solver.h"

#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"

#include "convert.h"
#include "guests.h"

namespace lowtide::python {

namespace {

using solve::hierarchy::BlockBudget;
using solve::hierarchy::BlockOption;
using solve::hierarchy::BlockTask;

// An option as Python sees it: two schedules, and what it says of them.
struct OptionObject {
  std::vector<std::int64_t> forward, backward;
  std::optional<std::int64_t> forward_time = {}, backward_time = {}, saved = {};
  std::optional<std::int64_t> forward_peak = {}, backward_peak = {};
  std::optional<std::vector<std::int64_t>> needs = {};
};

std::vector<std::int64_t> numbers_of(const auto& ids) {
  std::vector<std::int64_t> numbers;
  for (const auto id : ids) numbers.push_back(static_cast<std::int64_t>(id.index()));
  return numbers;
}

OptionObject as_object(const BlockOption& option) {
  return {.forward = numbers_of(option.forward),
          .backward = numbers_of(option.backward),
          .forward_time = option.forward_time.count(),
          .backward_time = option.backward_time.count(),
          .saved = option.saved.count(),
          .forward_peak = option.forward_peak.count(),
          .backward_peak = option.backward_peak.count(),
          .needs = numbers_of(option.needs)};
}

// Used with the interpreter lock held throughout, so that threads of the guest take turns.
class BlockObject {
 public:
  BlockObject(const BlockTask& task, Limits& limits, GraphObject graph)
      : task_(&task), limits_(&limits), graph_(std::move(graph)) {}

  void end() { task_ = nullptr; }
  bool ended() const { return task_ == nullptr; }
  const GraphObject& graph() const { return graph_; }
  const solve::hierarchy::BlockProblem& problem() const { return task().block; }

  std::optional<std::size_t> rest() const {
    if (!problem().has_backward()) return std::nullopt;
    return problem().rest().index();
  }
  bool is_forward(std::int64_t op) const {
    if (op < 0 || static_cast<std::size_t>(op) >= problem().op_count()) throw nb::index_error();
    return problem().is_forward(OpId(static_cast<std::size_t>(op)));
  }
  bool should_stop(std::int64_t work) const {
    if (work < 0)
      throw InputError(fmt::format("work {}", work), "is not a whole number, 0 or more");
    task();
    if (!limits_->spend_all(work) && limits_->over()) limits_->spend_all(Limits::kPollWork);
    return limits_->stopped();
  }
  BlockOption price(const OptionObject& option) const {
    task();
    limits_->spend_all(static_cast<std::int64_t>(option.forward.size() + option.backward.size()));
    return problem().price(ops_from(option.forward, "forward"),
                           ops_from(option.backward, "backward"));
  }

 private:
  const BlockTask& task() const {
    if (task_ == nullptr)
      throw std::runtime_error(
          "this block is of a solve that has ended; use it only before options() returns");
    return *task_;
  }
  std::vector<OpId> ops_from(const std::vector<std::int64_t>& half, const char* place) const {
    std::vector<OpId> ops;
    for (const std::int64_t op : half) {
      if (rest() && op == static_cast<std::int64_t>(*rest()))
        throw InputError(place, "op " + std::to_string(op) +
                                    " is the rest of the network, which runs between the halves");
      if (op < 0 || static_cast<std::size_t>(op) >= problem().op_count())
        throw InputError(place, fmt::format("{} is no op; there are {}", op, problem().op_count()));
      ops.emplace_back(static_cast<std::size_t>(op));
    }
    return ops;
  }

  const BlockTask* task_;
  Limits* limits_;
  GraphObject graph_;
};

void require_claims(const OptionObject& claimed, const BlockOption& option,
                    const std::string& place) {
  const OptionObject is = as_object(option);
  const auto require = [&](const char* what, const auto& said, const auto& found) {
    if (said && *said != *found)
      throw InputError(
          place, fmt::format("it says that {} is {}, and it is {}", what,
                             nb::str(nb::cast(*said)).c_str(), nb::str(nb::cast(*found)).c_str()));
  };
  require("forward_time", claimed.forward_time, is.forward_time);
  require("backward_time", claimed.backward_time, is.backward_time);
  require("saved", claimed.saved, is.saved);
  require("forward_peak", claimed.forward_peak, is.forward_peak);
  require("backward_peak", claimed.backward_peak, is.backward_peak);
  require("needs", claimed.needs, is.needs);
}

class GuestBlockSolver final : public solve::hierarchy::BlockSolver {
 public:
  GuestBlockSolver(Guest guest, GraphObject network)
      : guest_(std::move(guest)), network_(std::move(network)) {}

  std::string_view name() const override { return guest_.name; }
  std::string_view summary() const override { return "an object of the caller's"; }
  bool is_slow() const override { return true; }  // for all that we know
  solve::Support supports(const BlockTask&) const override { return {}; }

  // The thread that solves holds no interpreter lock; it is taken around the call.
  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    std::vector<BlockOption> options;
    if (limits.spend_all(static_cast<std::int64_t>(task.block.op_count()))) return options;
    const nb::gil_scoped_acquire locked;
    const Graph& graph = task.block.graph();
    const GraphObject own = &graph == network_.graph.get() ? network_ : make_graph(Graph(graph));
    struct Handed {
      nb::object block;
      ~Handed() { nb::cast<BlockObject&>(block).end(); }
    };
    const Handed handed{nb::cast(BlockObject(task, limits, own))};
    const BlockObject& block = nb::cast<const BlockObject&>(handed.block);
    nb::list budgets;
    for (const BlockBudget& budget : task.budgets) budgets.append(nb::cast(budget));
    const nb::object found = guest_.is.attr("options")(handed.block, budgets);
    const std::string place = fmt::format("block solver \"{}\", {}", guest_.name, graph.name());
    for (nb::handle option : elements_of(found, place + ": what options() returned", "Option"))
      options.push_back(
          checked(block, option, fmt::format("{}: option {}", place, options.size())));
    if (options.empty() && !limits.stopped())
      throw InputError(place, "options() returned no option; one is enough, as block.save_all()");
    return options;
  }

 private:
  static BlockOption checked(const BlockObject& block, nb::handle given, const std::string& place) {
    if (!nb::isinstance<OptionObject>(given))
      throw InputError(place, kind_of(given) + " where a lowtide.Option should be");
    const auto& said = nb::cast<const OptionObject&>(given);
    try {
      BlockOption option = block.price(said);
      require_claims(said, option, place);
      return option;
    } catch (const InputError& error) {
      if (error.place() == place) throw;
      throw InputError(place, error.what());
    }
  }

  Guest guest_;
  GraphObject network_;
};

nb::object limit_or_none(Bytes limit) { return if_any(limit != Bytes::max(), limit.count()); }

void bind_option(nb::module_& module) {
  using Numbers = std::vector<std::int64_t>;
  using Claim = std::optional<std::int64_t>;
  nb::class_<OptionObject>(
      module, "Option",
      "One way to run a block: the ops that each half computes, in order, as indices of "
      "`block.graph`. Both halves may compute forward ops, any number of times.\n\nFigures may be "
      "left out, since the option is simulated; given figures must be right.")
      .def(
          "__init__",
          [](OptionObject* self, Numbers forward, Numbers backward, Claim forward_time,
             Claim backward_time, Claim saved, Claim forward_peak, Claim backward_peak,
             std::optional<Numbers> needs) {
            new (self) OptionObject{
                std::move(forward), std::move(backward), forward_time,    backward_time, saved,
                forward_peak,       backward_peak,       std::move(needs)};
          },
          nb::arg("forward"), nb::arg("backward") = Numbers(), nb::kw_only(),
          nb::arg("forward_time") = nb::none(), nb::arg("backward_time") = nb::none(),
          nb::arg("saved") = nb::none(), nb::arg("forward_peak") = nb::none(),
          nb::arg("backward_peak") = nb::none(), nb::arg("needs") = nb::none(),
          nb::sig("def __init__(self, forward: collections.abc.Sequence[int], backward: "
                  "collections.abc.Sequence[int] = [], *, forward_time: int | None = None, "
                  "backward_time: int | None = None, saved: int | None = None, forward_peak: int | "
                  "None = None, backward_peak: int | None = None, needs: "
                  "collections.abc.Sequence[int] | None = None) -> None"))
      .def_ro("forward", &OptionObject::forward)
      .def_ro("backward", &OptionObject::backward)
      .def_ro("forward_time", &OptionObject::forward_time, "Ticks, or None if not given.")
      .def_ro("backward_time", &OptionObject::backward_time, "Ticks, or None.")
      .def_ro("saved", &OptionObject::saved, "Bytes held between the halves, or None.")
      .def_ro("forward_peak", &OptionObject::forward_peak,
              "The most bytes in use during the forward half, or None. Inputs and outputs of the "
              "block are not counted, except the outputs of this half.")
      .def_ro("backward_peak", &OptionObject::backward_peak,
              "The same for the backward half, without its outputs.")
      .def_ro("needs", &OptionObject::needs,
              "Tensors from outside that the backward half reads and that were there before it, "
              "or None.")
      .def("__repr__", [](const OptionObject& o) {
        std::string text = fmt::format("<lowtide.Option: {} ops forward, {} backward",
                                       o.forward.size(), o.backward.size());
        if (o.saved) text += fmt::format(", saves {}", *o.saved);
        return text + ">";
      });
}

}  // namespace

std::unique_ptr<solve::hierarchy::BlockSolver> make_guest_block_solver(Guest guest,
                                                                       GraphObject graph) {
  return std::make_unique<GuestBlockSolver>(std::move(guest), std::move(graph));
}

void bind_block_solver(nb::module_& module) {
  bind_option(module);
  nb::class_<BlockBudget>(module, "BlockBudget",
                          "Limits for which a block is solved, in the terms of Option.")
      .def_prop_ro(
          "peak", [](const BlockBudget& b) { return limit_or_none(b.peak); },
          nb::sig("def peak(self) -> int | None"),
          "The most bytes in use during a half; None: no limit.")
      .def_prop_ro(
          "saved", [](const BlockBudget& b) { return limit_or_none(b.saved); },
          nb::sig("def saved(self) -> int | None"),
          "The most bytes held between its halves; None: no limit.")
      .def("__repr__", [](const BlockBudget& b) {
        return fmt::format("<lowtide.BlockBudget: peak {}, saved {}>",
                           nb::str(limit_or_none(b.peak)).c_str(),
                           nb::str(limit_or_none(b.saved)).c_str());
      });
  nb::class_<BlockObject>(
      module, "Block",
      "The argument of a block solver's `options(block, budgets)`. Valid until that returns.")
      .def_prop_ro("graph", &BlockObject::graph,
                   "The block's ops and, if it has a backward half, the barrier `rest`. Its name "
                   "identifies the block, in messages too.")
      .def_prop_ro("rest", &BlockObject::rest, nb::sig("def rest(self) -> int | None"),
                   "The op between the halves that stands for the rest of the network. It is in no "
                   "half of an Option. None: the block has one half.")
      .def("is_forward", &BlockObject::is_forward, nb::arg("op"),
           "Whether the op is in the forward half. IndexError for `rest` and invalid indices.")
      .def(
          "save_all", [](const BlockObject& b) { return as_object(b.problem().save_all()); },
          "The option that computes each op once and saves all tensors.")
      .def(
          "recompute_all",
          [](const BlockObject& b) -> std::optional<OptionObject> {
            const auto option = b.problem().recompute_all();
            if (!option) return std::nullopt;
            return as_object(*option);
          },
          "The option that saves as little as possible; None if it equals save_all().")
      .def(
          "price",
          [](const BlockObject& b, std::vector<std::int64_t> forward,
             std::vector<std::int64_t> backward) {
            return as_object(
                b.price({.forward = std::move(forward), .backward = std::move(backward)}));
          },
          nb::arg("forward"), nb::arg("backward") = std::vector<std::int64_t>(),
          nb::sig("def price(self, forward: collections.abc.Sequence[int], backward: "
                  "collections.abc.Sequence[int] = []) -> Option"),
          "The Option of these schedules, with all figures. Raises Error if they cannot be run.")
      .def("should_stop", &BlockObject::should_stop, nb::arg("work") = 100,
           "Count so many units of work (about a microsecond each), and say whether to return, as "
           "in Context.")
      .def("__repr__", [](const BlockObject& b) {
        return b.ended() ? std::string("<lowtide.Block: ended>")
                         : fmt::format("<lowtide.Block: {}, {} ops>", b.graph()->name(),
                                       b.problem().op_count());
      });
}

}  // namespace lowtide::python
