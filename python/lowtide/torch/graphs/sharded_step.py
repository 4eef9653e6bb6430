"""The passes of a step under FSDP2, as a rehearsal of its forward finds them: what stands beside each graph (ranks/gathered.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ...frontend.planning.sharing import Between, GraphToPlan, Pass
from ..ranks.gathered import Event, Moment, Unit, moments
from ..tensors.storages import Sizes, is_dense, is_trained, storage, storages


@dataclass(frozen=True)
class Run:
    """A forward of a graph.  number: the graph's.  counted: bytes of its inputs that are counted elsewhere: held by the model, given, gathered
    or made by an earlier graph.  made: bytes of inputs that code between the graphs made.  tangents: of inputs whose gradients an earlier
    backward takes.  gradients: of gathered parameters, by unit and storage.  results: its own, by storage."""

    number: int
    counted: int
    made: int
    tangents: int
    gradients: dict[int, Sizes]
    results: Sizes = field(default_factory=dict)


class ShardedStep:
    """The forward of a step, recorded while it is rehearsed.

    held: storages that stand all the time, with their bytes: whole parameters, buffers, inputs.  also: bytes that stand beside
    these, such as optimizer state.  update: bytes that one update takes after the backward, if updates are part of the step.
    """

    def __init__(self, units: Sequence[Unit], held: Sizes, also: int, reductions: int, update: int = 0) -> None:
        self.units, self._held, self._also, self._reductions, self._update = units, held, also, reductions, update
        self._events: list[Event] = []
        self._runs: list[Run] = []
        self._gathered: dict[int, int] = {}  # storage -> unit
        self._taken: set[int] = set()  # those that a later graph takes, which are gone when its backward has run
        self._results: dict[int, StorageWeakRef] = {}  # of graphs; kept, so that a storage's address is not used again

    @property
    def fixed(self) -> int:
        """Bytes that no plan changes."""
        return sum(self._held.values()) + self._also + sum(unit.always for unit in self.units)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the graphs that have run, in their order."""
        return [run.number for run in self._runs]

    def note(self, event: Event, gathered: Iterable[torch.UntypedStorage] = ()) -> None:
        """It happens; gathered: storages of the unit's whole parameters."""
        self._events.append(event)
        self._gathered |= {s._cdata: event.of for s in gathered}

    def run(self, number: int, args: Iterable[Any]) -> None:
        """A graph runs with these arguments."""
        self.add(self.run_of(number, args))

    def add(self, run: Run) -> None:
        """A graph runs."""
        self._runs.append(run)
        self._events.append(Event("run", run.number))

    def run_of(self, number: int, args: Iterable[Any]) -> Run:
        """The run of a graph with these arguments."""
        args = [t for t in args if is_dense(t)]
        counted = made = tangents = 0
        gradients: dict[int, Sizes] = {}
        for key, size in storages(args).items():
            if key in self._gathered or key in self._held or key in self._results:
                counted += size
                self._taken.add(key)
            else:
                made += size
        for t in args:
            ((key, size),) = storages([t]).items()
            if is_trained(t) and key in self._gathered:
                gradients.setdefault(self._gathered[key], {})[key] = size
            elif t.requires_grad and key not in self._gathered:
                tangents += size
        return Run(number, counted, made, tangents, gradients)

    def gave(self, results: Iterable[Any]) -> None:
        """Results of the graph that ran last."""
        results = list(results)
        self._runs[-1].results.update({key: size for key, size in storages(results).items()
                                       if key not in self._gathered and key not in self._held and key not in self._results})
        self._results |= {t.untyped_storage()._cdata: StorageWeakRef(t.untyped_storage()) for t in results if is_dense(t)}

    def gathered(self, args: Iterable[Any]) -> set[int]:
        """Which of these are whole parameters of FSDP2?"""
        return {i for i, t in enumerate(args) if is_dense(t) and storage(t) in self._gathered}

    def passes(self, to_plan: dict[int, GraphToPlan]) -> tuple[list[Pass], list[Between]]:
        """The passes of the step, and the moments of FSDP2 between them."""
        runs = [to_plan[run.number] for run in self._runs]
        found, between = [], []
        extra = self._before_the_backward()
        made = 0  # gradients of parameters that FSDP2 does not know
        for moment in self._moments():
            run, waiting = moment.run, tuple(runs[:moment.run])
            others = self.fixed + moment.held + sum(r.made for r in self._runs[:run])
            if moment.collective:
                if run < len(runs):
                    tangents = self._runs[run].tangents if moment.backward else 0
                    between.append(Between(others + made + tangents + runs[run].resident, waiting))
                continue
            others -= self._runs[run].counted
            if moment.backward:
                late = extra - moment.held if run == len(runs) - 1 else 0
                gone = sum(size for key, size in self._runs[run].results.items() if key in self._taken)
                found.append(Pass(runs[run], True, max(0, others + made - gone + max(0, late)), waiting))
                made += runs[run].gradients
            else:
                found.append(Pass(runs[run], False, max(0, others), waiting))
        if self._update and runs:
            gradients = sum(unit.gradients for unit in self.units)
            between.append(Between(self.fixed + gradients + made + self._update + runs[0].resident, ()))
        return found, between

    def _before_the_backward(self) -> int:
        """The most that FSDP2 holds before the first backward of a graph."""
        return max((m.held for m in self._moments() if m.backward and m.collective and m.run == len(self._runs)), default=0)

    def _moments(self) -> Iterable[Moment]:
        return moments(self.units, self._events, self._gradients(), self._reductions)

    def _gradients(self) -> list[dict[int, int]]:
        """Of each run the bytes of gradients that its backward is the first to make, by unit."""
        seen: set[int] = set()
        made: list[dict[int, int]] = []
        for run in reversed(self._runs):
            made.append({unit: sum(size for key, size in sizes.items() if key not in seen) for unit, sizes in run.gradients.items()})
            seen |= {key for sizes in run.gradients.values() for key in sizes}
        return made[::-1]
