"""Several regions of one model within one budget.

Where the tracer breaks a model in two, each part is compiled alone, and what one part saves for its
backward stands beside the next.  Which run beside which is a list of events (`Event`): runs of a forward or a
backward, with what stands there whatever the plans, and with the forwards that wait.  A region that waits while
another runs is limited in what it may save.  All regions get the same share of what they would save without a
plan: the share for which their plans together take the least time is found by trying a few.  It loses where one
region is much cheaper to compute again than another: a share for each would do better.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from torch import fx

import lowtide

from .errors import BudgetError, size_text
from .program import Program
from .operators import leaves
from .storages import storages

_SHARES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.0)
_SECONDS = 0.2  # of planning for one region and share
_HALVINGS = 4  # of the range in which the smallest budget lies


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


@dataclass(frozen=True)
class Found:
    """A region to be planned with others.  resident: bytes that its settings put beside it.  covers: the part of
    them that may be what other regions are seen to hold.  gradients: bytes of those that leaves will hold."""

    program: Program
    resident: int
    gradients: int
    covers: int = 0

    @functools.cached_property
    def key(self) -> str:
        """The hash of its graph: regions of the same graph have one plan."""
        return lowtide.Graph.from_dict(self.program.graph).hash

    @functools.cached_property
    def saves(self) -> tuple[int, int]:
        return _saves(self.program)

    def room(self, others: int) -> int:
        """Bytes to leave for what its settings say and for so many of other regions."""
        return self.resident + max(0, others - self.covers)


@dataclass(frozen=True)
class Event:
    """A run of a region's forward or backward.  others: bytes that stand beside it under any plans.  waiting:
    regions whose forwards have saved something, once for each time."""

    region: Found
    backward: bool
    others: int
    waiting: tuple[Found, ...]


@dataclass(frozen=True)
class Share:
    """What a region is planned with: what to leave room for, the budget in bytes, and a plan that keeps it."""

    beside: Beside
    budget: int
    start: Any


def one_after_another(calls: list[Found], held: int) -> list[Event]:
    """The events of these forwards and then, last first, of their backwards.  held: bytes of model and inputs."""
    def others(found: Found) -> int:
        return max(0, held - input_bytes(found.program))

    events = [Event(found, False, others(found), tuple(calls[:i])) for i, found in enumerate(calls)]
    made = 0
    for i, found in reversed(list(enumerate(calls))):
        events.append(Event(found, True, others(found) + made, tuple(calls[:i])))
        made += found.gradients
    return events


def share(events: list[Event], budget: int | str, order: str, fixed: int) -> dict[str, Share]:
    """The budget shared among the regions of these events, by their keys.  fixed: bytes that no plan changes.

    Raises BudgetError if no way is found.
    """
    regions = {event.region.key: event.region for event in events}
    waiting = {found.key for event in events for found in event.waiting}
    most = besides(events, {key: regions[key].saves[1] for key in waiting})
    graph = max((lowtide.Graph.from_dict(most[key].graph(found.program, None)) for key, found in regions.items()),
                key=lambda g: g.own_peak)
    limit = _bytes(budget, graph, fixed)
    best: tuple[int, dict[str, Share]] | None = None
    for part in _SHARES:
        found = _try(events, regions, waiting, part, limit, order)
        if found and (best is None or found[0] < best[0]):
            best = found
        if not waiting:
            break
    if best is None:
        leanest = besides(events, {key: regions[key].saves[0] for key in waiting})
        floor = max(lowtide.plan(lowtide.Graph.from_dict(leanest[key].graph(found.program, None)), 1, work=1).floor or 0
                    for key, found in regions.items())  # of one byte: refused at once, with the floor
        smallest = _smallest(events, regions, waiting, (max(limit, floor), graph.own_peak), order)
        raise _refusal(events, limit, floor, smallest)
    return best[1]


def _try(events: list[Event], regions: dict[str, Found], waiting: set[str], part: float, limit: int,
         order: str) -> tuple[int, dict[str, Share]] | None:
    """The time of plans in which those that wait save so large a part, and the plans; or None."""
    saved = {key: least + int(part * (most - least)) for key in waiting for least, most in (regions[key].saves,)}
    times = Counter(event.region.key for event in events if not event.backward)
    shares: dict[str, Share] = {}
    total = 0
    for key, beside in besides(events, saved).items():
        graph = lowtide.Graph.from_dict(beside.graph(regions[key].program, limit))
        outcome = lowtide.plan(graph, limit, order=order, time=_SECONDS)
        if outcome.plan is None:
            return None
        shares[key] = Share(beside, limit, outcome.plan)
        total += outcome.duration * times[key]
    return total, shares


def _smallest(events: list[Event], regions: dict[str, Found], waiting: set[str], ends: tuple[int, int],
              order: str) -> int:
    """A budget that can be kept, near the least, between these: without a plan the latter is kept."""
    low, high = ends
    for _ in range(_HALVINGS):
        limit = (low + high) // 2
        if high - low <= high // 100:
            break
        if any(_try(events, regions, waiting, part, limit, order) for part in (0.0, 0.3)):
            high = limit
        else:
            low = limit
    return high


def besides(events: list[Event], saved: dict[str, int]) -> dict[str, Beside]:
    """What to leave room for in each region if those that wait save so many bytes.

    A region that runs more than once has one plan: it must do beside the most of any run.
    """
    forwards: Counter[str] = Counter()
    backwards: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for event in events:
        key, waits = event.region.key, sum(saved[found.key] for found in event.waiting)
        most = backwards if event.backward else forwards
        most[key] = max(most[key], event.region.room(event.others + waits))
        before[key] = max(before[key], waits)
    return {key: Beside(forwards[key], max(0, backwards[key] - forwards[key]), saved.get(key), before[key])
            for key in forwards}


def _bytes(budget: int | str, graph: Any, fixed: int) -> int:
    """The budget in bytes; a share is one of that graph's peak without a plan."""
    text = str(budget).replace(" ", "")
    if text.startswith("act:") and text.endswith("%"):
        fixed = min(fixed, graph.own_peak)
        return fixed + int((graph.own_peak - fixed) * float(text[4:-1]) / 100)
    return lowtide.Problem(graph, budget).budget


def _refusal(events: list[Event], limit: int, floor: int, smallest: int) -> BudgetError:
    calls = sum(not event.backward for event in events)
    return BudgetError(
        f"no way was found to share the budget of {size_text(limit)} ({limit} bytes) among the "
        f"{calls} regions, one after another, that the tracer made of this model; the smallest budget found takes "
        f"{size_text(smallest)} ({smallest} bytes), and no plans can take less than {size_text(floor)}; the fewer graph breaks, "
        "the better (TORCH_LOGS=graph_breaks shows them)", floor, smallest, limit)


def with_gradient(program: Program, trained: Container[int]) -> list[int]:
    """Which arguments, of the leaves among them, get a gradient."""
    return [desc.grad_of.idx for node, desc in zip(program.backward_outputs, program.backward_descriptors, strict=True)
            if isinstance(node, fx.Node) and getattr(getattr(desc, "grad_of", None), "idx", None) in trained]


def made_gradient_bytes(program: Program, trained: Container[int]) -> int:
    """Bytes of the gradients that leaves hold when the backward has ended; trained: which arguments are leaves.

    Gradients of what another region made are gone as soon as that one's backward has taken them.
    """
    results = zip(program.backward_outputs, program.backward_descriptors, strict=True)
    made = [node for node, desc in results
            if isinstance(node, fx.Node) and getattr(getattr(desc, "grad_of", None), "idx", None) in trained]
    return sum(storages(t for node in made for t in leaves(node.meta["val"])).values())


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
