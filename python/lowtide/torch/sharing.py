"""Several regions of one model within one budget.

Where the tracer breaks a model in two, each part is compiled alone, and what one part saves for its
backward stands beside the next.  Region r runs beside

* what the earlier regions saved, what of the model is no input of its own, and the optimizer's state of all
  of it, all the time;
* the gradients that the later regions have made, in its backward;

and between its own forward and backward the later regions need room, so what it may save is limited.  All
regions get the same share of what they would save without a plan: the share for which their plans together
take the least time is found by trying a few.  It loses where one region is much cheaper to compute again
than another: a share for each would do better.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

import lowtide

from .beside import Said
from .errors import BudgetError, size_text
from .lowering import Program
from .meter import storages_held
from .operators import bytes_of, leaves, storage

_SHARES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.0)
_SECONDS = 0.2  # of planning for one region and share


@dataclass(frozen=True)
class Beside:
    """What one region must leave room for, in bytes.

    resident: all the time.  gradients: after its forward.  saved: what may be live between its forward and
    backward, what the forward hands out counted in; None: as much as fits.  before: the part of `resident`
    that earlier forwards have saved.
    """

    resident: int = 0
    gradients: int = 0
    saved: int | None = None
    before: int = 0

    def graph(self, program: Program, budget: int | None) -> dict[str, Any]:
        """The program's graph with that beside it; budget: with a limit of what is saved, for that budget."""
        graph = program.graph | {"resident_bytes": self.resident}
        barrier = dict(graph["ops"][program.barrier])
        tensors = list(graph["tensors"])
        if self.gradients:
            tensors.append({"name": "gradients of other regions", "bytes": self.gradients, "role": "gradient"})
            barrier["outputs"] = [*barrier["outputs"], len(tensors) - 1]
            graph["outputs"] = [*graph["outputs"], len(tensors) - 1]
        if self.saved is not None and budget is not None:
            made = sum(tensors[t]["bytes"] for t in barrier["outputs"])
            room = budget - self.resident - input_bytes(program) - made - self.saved
            barrier["workspace"] = max(0, room)
        graph["tensors"] = tensors
        graph["ops"] = [*graph["ops"][:program.barrier], barrier, *graph["ops"][program.barrier + 1:]]
        return graph


def input_bytes(program: Program) -> int:
    """Bytes of what the region is given."""
    made = {t for op in program.graph["ops"] for t in op["outputs"]}
    return sum(t["bytes"] for i, t in enumerate(program.graph["tensors"]) if i not in made)


class Saved:
    """What forwards have left for backwards that are still to come.

    A forward's bytes count for as long as the largest storage that it left is there: a backward takes all.
    """

    def __init__(self) -> None:
        self._left: list[tuple[StorageWeakRef, int]] = []

    def add(self, largest: torch.Tensor, size: int) -> None:
        """A forward has left `size` bytes, `largest` among them."""
        self._left.append((StorageWeakRef(largest.untyped_storage()), size))

    def bytes(self) -> int:
        if self._left:
            self._left = [(ref, size) for ref, size in self._left if not ref.expired()]
        return sum(size for _, size in self._left)


@dataclass(frozen=True)
class Found:
    """A region to be planned with others.  resident: bytes that its settings put beside it.  gradients: bytes of
    those that leaves will hold."""

    program: Program
    resident: int
    gradients: int

    @functools.cached_property
    def key(self) -> str:
        return _identity(self.program)

    @functools.cached_property
    def saves(self) -> tuple[int, int]:
        return _saves(self.program)


@dataclass
class Group:
    """The regions of one model: first found, then planned together.

    trained: storages that the optimizer keeps a state for, with their bytes.  held: bytes of the model and of
    its inputs, where a region's own do not tell (on a CPU).  options: kept because its id says which model a
    region is of.

    found: regions that were compiled to be planned later, by number.  calls: the numbers in the order of one
    forward's calls; a region may run more than once.  shares: by the hash of a region's graph.  budget: in
    bytes, once it is shared.
    """

    trained: dict[int, int] = field(default_factory=dict)
    held: int = 0
    options: Any = None
    found: dict[int, Found] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    shares: dict[str, Beside] = field(default_factory=dict)
    budget: int | None = None
    saved: Saved = field(default_factory=Saved)
    said: Said = field(default_factory=Said)
    planned: list[tuple[int, int]] = field(default_factory=list)  # without shares: (peak from the barrier on, budget)
    inputs: dict[int, int] = field(default_factory=dict)  # storages that regions were given, with their bytes

    def train(self, tensors: Iterable[Any]) -> None:
        """Note which of these tensors the optimizer keeps a state for."""
        self.trained |= storages_held([t for t in tensors if isinstance(t, torch.Tensor) and t.is_leaf
                                       and t.requires_grad])

    def beside(self, program: Program, resident: int, all_told: bool) -> Beside:
        """What stands beside a region; resident: bytes that its settings say, all_told: with what forwards left."""
        share = self.shares.get(_identity(program)) if self.shares else None
        if share:
            return share
        before = self.saved.bytes()
        return Beside(resident + self._others(program) + (0 if all_told else before), before=before)

    def _others(self, program: Program) -> int:
        return max(0, self.held - input_bytes(program))

    def follow(self, given: list[Any], gradients: int, on_cpu: bool, peak: int,
               budget: int) -> list[tuple[int, int, int]]:
        """A region was planned that the earlier ones did not know of; peak: from its barrier on.

        Which of the earlier ones' backwards break the budget beside its gradients and (on a CPU, where they could
        not see them) what it was given: (peak, budget, bytes beside) of each.
        """
        if self.shares:
            return []
        if not self.saved.bytes():  # no forward is on its way: this is another size of a region, or another step
            self.planned = []
        fresh = {key: size for key, size in storages_held(given).items() if key not in self.inputs}
        self.inputs |= fresh
        more = gradients + (sum(fresh.values()) if on_cpu and not self.held else 0)
        broken = [(earlier + more, limit, more) for earlier, limit in self.planned if earlier <= limit < earlier + more]
        self.planned = [(earlier + more, limit) for earlier, limit in self.planned] + [(peak, budget)]
        return broken

    def settle(self, budget: int | str, order: str) -> None:
        """Share the budget among the regions found, for each of their calls.  Raises BudgetError."""
        calls = [self.found[number] for number in self.calls if number in self.found] or list(self.found.values())
        saved = [found.saves for found in calls]
        distinct = {found.key: found.program for found in calls}
        times = Counter(found.key for found in calls)
        self.budget = self._bytes(budget, self._split(calls, [most for _, most in saved]), distinct)
        best: tuple[int, dict[str, Beside]] | None = None
        floor = 0
        for share in _SHARES:
            besides = self._split(calls, [least + int(share * (most - least)) for least, most in saved])
            total: int | None = 0
            for key, program in distinct.items():
                graph = lowtide.Graph.from_dict(besides[key].graph(program, self.budget))
                outcome = lowtide.plan(graph, self.budget, order=order, time=_SECONDS)
                if outcome.plan and total is not None:
                    total += outcome.duration * times[key]
                    continue
                total = None
                if share > 0:
                    break
                floor = max(floor, outcome.floor or 0)
            if total is not None and (best is None or total < best[0]):
                best = total, besides
        if best is None:
            raise BudgetError(
                f"no way was found to share the budget of {size_text(self.budget)} ({self.budget} bytes) among the "
                f"{len(calls)} regions, one after another, that the tracer made of this model (it would take "
                f"{size_text(floor)} at least); the fewer graph breaks, the better (TORCH_LOGS=graph_breaks shows "
                "them)", floor, None)
        self.shares = best[1]

    def _bytes(self, budget: int | str, besides: dict[str, Beside], programs: dict[str, Program]) -> int:
        """The budget in bytes; a share is one of the whole step's peak without a plan."""
        graphs = [lowtide.Graph.from_dict(besides[key].graph(program, None)) for key, program in programs.items()]
        graph = max(graphs, key=lambda g: g.own_peak)
        text = str(budget).replace(" ", "")
        if text.startswith("act:") and text.endswith("%"):
            fixed = min(self.held, graph.own_peak)
            return fixed + int((graph.own_peak - fixed) * float(text[4:-1]) / 100)
        return lowtide.Problem(graph, budget).budget

    def _split(self, calls: list[Found], saved: list[int]) -> dict[str, Beside]:
        """What stands beside each region if each call but the last may save so many bytes.

        A region that is called more than once has one plan: it must do beside the most of any call.
        """
        besides: dict[str, Beside] = {}
        before = 0
        for i, found in enumerate(calls):
            always = found.resident + self._others(found.program)
            later = sum(other.gradients for other in calls[i + 1:])
            limit = None if i == len(calls) - 1 else saved[i]
            key = found.key
            if key in besides:
                other = besides[key]
                most = max(other.resident + other.gradients, always + before + later)
                resident_most = max(other.resident, always + before)
                limits = [size for size in (other.saved, limit) if size is not None]
                besides[key] = Beside(resident_most, most - resident_most, min(limits, default=None),
                                      max(other.before, before))
            else:
                besides[key] = Beside(always + before, later, limit, before)
            before += saved[i]
        return besides


def _identity(program: Program) -> str:
    return lowtide.Graph.from_dict(program.graph).hash


def gradient_bytes(program: Program, trained: Container[int]) -> int:
    """Bytes of the gradients that leaves hold when the backward has ended; trained: which arguments are leaves.

    Gradients of what another region made are gone as soon as that one's backward has taken them.
    """
    results = zip(program.backward_outputs, program.backward_descriptors, strict=True)
    sizes = {storage(t): bytes_of(t) for node, desc in results
             if isinstance(node, fx.Node) and getattr(getattr(desc, "grad_of", None), "idx", None) in trained
             for t in leaves(node.meta["val"])}
    return sum(sizes.values())


def _saves(program: Program) -> tuple[int, int]:
    """Bytes live between forward and backward beside the inputs: what is handed out, and all without a plan."""
    graph = lowtide.Graph.from_dict(program.graph)
    plan = lowtide.own_plan(graph)
    position = plan.steps.index(("compute", program.barrier))
    tensors, barrier = program.graph["tensors"], program.graph["ops"][program.barrier]
    tangents = sum(tensors[t]["bytes"] for t in barrier["outputs"])
    made = {t for op in program.graph["ops"] for t in op["outputs"]}
    handed_out = sum(tensors[t]["bytes"] for t in barrier["inputs"] if t in made)
    return handed_out, lowtide.simulate(graph, plan).memory[position] - input_bytes(program) - tangents
