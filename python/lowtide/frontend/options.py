"""Options of a planner that do not depend on the framework."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict, TypeVar, Union

import lowtide

from .roofline import DEVICES
from .techniques import NOTHING, TRANSFORMS, Techniques, bytes_of, host_budget_of, link_of, techniques_of

Self = TypeVar("Self", bound="Options")

Order = Literal["free", "given"]
Footprint = Literal["live", "reserved"]
Layout = Literal["prime", "exact"]
Word = Union[str, float]  # a value of a solver's option: a name or a number


class PlannerOptions(TypedDict, total=False):
    """`Options` without the budget, as keyword arguments for type checkers."""

    order: Order
    time: float | None
    work: int | None
    seed: int
    threads: int
    solver: str
    solver_options: Mapping[str, Word | Sequence[Word]] | None
    techniques: Techniques | None
    link: str | None
    host_budget: int | str | None
    costs: str
    footprint: Footprint | None
    allocator: str | None
    layout: Layout | None
    progress: Callable[[lowtide.Progress], object] | None


@dataclass(frozen=True)
class Counted:
    """What a budget limits.

    footprint: as the option.  allocator: its settings, None where no allocator is known.  live_because: why live bytes on a device
    with reserved ones; empty elsewhere.
    """

    footprint: Footprint
    allocator: str | None
    live_because: str = ""


class SolverOptions(tuple[tuple[str, str], ...]):
    """Options of a solver, as texts by name."""


@dataclass(frozen=True)
class Options:
    """Options of a planner; a front end adds its own.

    budget: bytes of the whole peak (an int or "8GiB"), or a share ("60%", "act:50%").
    order: "free" (ops may be reordered) or "given".
    time, work, seed, threads: limits of the planner, as of lowtide.plan; time is in seconds for one graph.
    solver, solver_options: the solver ("hiremate"; auto: all that suit the graph) and its options: names, numbers and
        lists of names.  If the solver finds no plan, auto plans instead, with a warning.
    techniques: the techniques that plans may use: "recompute", "in_place", "offload", "split", "hoist", "substitute";
        None: the first three; "all": all.
    link: the bytes a second of the link to the host, and the latency of a transfer ("25GB/s,10us").
    host_budget: the most bytes of copies on the host (an int or "8GiB").
    costs: the source of kernel prices; a device's name for example.
    footprint: the bytes that the budget limits: "live" ones, or those that PyTorch's caching allocator has "reserved" by its model
        (lowtide.footprint).  None: "reserved" where a front end knows the allocator, "live" elsewhere.  A share is one of what the
        step takes without a plan, in the same bytes.
    allocator: its settings, as in PYTORCH_ALLOC_CONF; None: those of the process.
    layout: how allocations lie in the memory of a GPU (planning/layout.py): "prime" (one block for all of a step is taken and given back
        before the first step), "exact" (each at its planned offset in such a block), or None (as they come).
    progress: called with the planner's events (lowtide.plan).

    Raises ValueError or TypeError that names the wrong option; numbers are stored as int and float.
    """

    budget: int | str
    order: str = "free"
    time: float | None = 0.9
    work: int | None = None
    seed: int = 1
    threads: int = 0
    solver: str = "auto"
    solver_options: Any = None
    techniques: Any = None
    link: str | None = None
    host_budget: int | str | None = None
    costs: str = "auto"
    footprint: Footprint | None = None
    allocator: str | None = None
    layout: Layout | None = None
    progress: Callable[[Any], None] | None = None
    live_because: str = field(default="", kw_only=True)  # as of Counted; not set by users

    def __post_init__(self) -> None:
        check_order(self.order)
        if self.progress is not None and not callable(self.progress):
            raise TypeError(f"progress must be callable, not {self.progress!r}")
        checked = {"techniques": techniques_of(self.techniques), "link": link_of(self.link),
                   "host_budget": None if self.host_budget is None else host_budget_of(self.host_budget),
                   "budget": budget_of(self.budget), "time": seconds(self.time),
                   "work": None if self.work is None else whole("work", self.work, 0, 2**63 - 1),
                   "solver_options": _solver_options(self.solver, self.solver_options),
                   "seed": whole("seed", self.seed, 0, 2**64 - 1), "threads": whole("threads", self.threads, 0, 4096)}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.footprint not in (None, "live", "reserved"):
            raise ValueError(f"footprint must be 'live', 'reserved' or None, not {self.footprint!r}")
        if self.layout not in (None, "prime", "exact"):
            raise ValueError(f"layout must be 'prime', 'exact' or None, not {self.layout!r}")
        if self.allocator is not None:
            _check_allocator(self.allocator)
        for name in ("link", "host_budget"):
            if getattr(self, name) is not None and "offload" not in self.techniques:
                raise ValueError(f"{name} needs offloading, but techniques excludes it")

    def plan_key(self) -> tuple[Any, ...]:
        """The options that a plan depends on, except graph, budget and order."""
        return (self.time, self.work, self.seed, sorted(self.techniques), self.costs in DEVICES and self.costs,
                self.solver, self.solver_options)

    def planning(self, alone: bool, device: Any) -> dict[str, Any]:
        """The arguments of a Problem, except graph, budget and order.

        alone: whether the budget is the only limit; otherwise transforms are not allowed.  device: runs the program.
        """
        techniques = self.allowed(alone)
        terms: dict[str, Any] = {}
        if techniques & TRANSFORMS:
            terms["techniques"] = sorted(techniques)
            priced_on = self.costs if self.costs in DEVICES else self.prices_of(device)
            if priced_on:
                terms["device"] = priced_on
        if "offload" in techniques:
            terms |= {"techniques": sorted(techniques), "link": self.link or self.link_of(device),
                      "host_budget": self.host_room(device)}
        return terms

    def allowed(self, alone: bool) -> frozenset[str]:
        """The techniques that plans may use.  alone: as for `planning`."""
        techniques: frozenset[str] = self.techniques
        return techniques if alone else techniques - TRANSFORMS

    @property
    def inner_in_words(self) -> str:
        """The kernels that plans run, and why these; empty where there is no choice."""
        return ""

    def prices_of(self, device: Any) -> str | None:
        """The device of roofline.DEVICES whose prices are used for parts on this device, if any."""
        return None

    def link_of(self, device: Any) -> str:
        """The link of a device if the user named none, in the form of lowtide.plan."""
        known = DEVICES[self.costs].host_link if self.costs in DEVICES else None
        if known is None:
            raise ValueError('link: plans that offload need the bytes a second and the latency of the link ("25GB/s,10us")')
        return link_text(*known)

    def host_room(self, device: Any) -> int | None:
        """The most bytes of copies on the host; None: no limit."""
        return None if self.host_budget is None else int(self.host_budget)

    def allocator_on(self, device: Any) -> str | None:
        """The settings of the device's caching allocator; None if it has none and the budget limits live bytes."""
        return self.allocator or "" if self.footprint == "reserved" else self.allocator

    def measured_by(self, device: Any) -> dict[str, Any]:
        """What a search measures its plans by beside their live bytes, as arguments of lowtide.plan; what it finds is measured again
        as code runs it.  Of plans in one block that is the arena, where each allocation has its place there."""
        if self.footprint != "reserved" or self.layout == "prime":
            return {}
        return {"footprint": "arena"} if self.layout else {"footprint": "reserved", "allocator": self.allocator_on(device) or ""}

    def bytes_of(self, budget: int | str, graph: lowtide.Graph, device: Any) -> int:
        """A budget in bytes of that footprint.  graph: of the step without a plan."""
        text = str(budget).replace(" ", "")
        if self.footprint != "reserved" or "%" not in text:
            return bytes_of(budget, graph)
        whole = lowtide.footprint(graph, allocator=self.allocator_on(device) or "").reserved
        fixed = bytes_of("act:0%", graph) if text.startswith("act:") else 0
        return fixed + bytes_of(text.removeprefix("act:"), NOTHING.edited(resident_bytes=whole - fixed))

    def without_transforms(self: Self) -> Self:
        """The same options without transforms: plans of the graph as captured."""
        return self._with(self.techniques - TRANSFORMS)

    def without_copies(self: Self) -> Self:
        """The same options without offloading."""
        return self._with(self.techniques - {"offload"})

    def _with(self: Self, techniques: frozenset[str]) -> Self:
        copies: dict[str, Any] = {} if "offload" in techniques else {"link": None, "host_budget": None}
        return replace(self, techniques=techniques or frozenset({"in_place"}), **copies)


def _check_allocator(allocator: Any) -> None:
    if not isinstance(allocator, str):
        raise TypeError(f'allocator must be settings as in PYTORCH_ALLOC_CONF ("expandable_segments:True"), not {allocator!r}')
    lowtide.replay_allocations([], allocator)  # raises lowtide.Error, which names the refused key


def _solver_options(solver: Any, given: Any) -> SolverOptions:
    """As texts, by name.  Raises before tracing if the solver has no option of that name, or not that value."""
    if not isinstance(solver, str):
        raise TypeError(f"solver must be the name of one, not {solver!r}")
    if isinstance(given, SolverOptions):
        return given
    options = {} if given is None else given
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise TypeError(f"solver_options must be a dict of options by name, not {given!r}")
    texts = {}
    for name, value in options.items():
        words = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(word, (str, int, float)) and not isinstance(word, bool) for word in words):
            raise TypeError(f"solver_options: {name} must be a name, a number or a list of these, not {value!r}")
        texts[name] = ",".join(map(str, words))
    if texts or solver != "auto":
        lowtide.plan(lowtide.generate("chain", 1), "100%", solver=solver, options=texts, work=0)
    return SolverOptions(sorted(texts.items()))


def link_text(rate: int, latency: int) -> str:
    """A link in the form of lowtide.plan.  rate: bytes a second.  latency: ns."""
    return f"{rate}B/s,{latency}ns"


def check_order(order: Any) -> None:
    """Raises ValueError unless `order` is "free" or "given"."""
    if order not in ("free", "given"):
        raise ValueError(f"order must be 'free' or 'given', not {order!r}")


def seconds(time: Any) -> float | None:
    """`time` in the form of the planner.  Raises ValueError, or TypeError if it is not a number."""
    if time is None:
        return None
    if not isinstance(time, numbers.Real) or isinstance(time, bool):
        raise TypeError(f"time must be a number of seconds or None, not {time!r}")
    found = float(time)
    if not 0 <= found < math.inf:
        raise ValueError(f"time must be a number of seconds, 0 or more, not {time!r}")
    return found


def whole(name: str, value: Any, least: int, most: int) -> int:
    """The option `name` as an int.  Raises ValueError, or TypeError if it is not a whole number."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    found = int(value)
    if not least <= found <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value}")
    return found


def budget_of(budget: Any) -> int | str:
    """A budget in the form of lowtide.plan.  Raises ValueError or TypeError."""
    found: int | str = int(budget) if isinstance(budget, numbers.Integral) and not isinstance(budget, bool) else budget
    lowtide.Problem(NOTHING, found)
    return found
