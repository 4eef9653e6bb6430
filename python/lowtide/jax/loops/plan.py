"""The loops of a step, planned for a budget: the step with other loops, and its program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lowtide

from ...frontend.price import Price
from ..program.program import Program, program_of
from ..settings import Settings
from ..tracing.equations import FlatStep
from .body import body_program, body_schedule
from .pair import LoopPair, loop_pairs
from .rewrite import rewritten

_SHARES = (1.0, 0.5, 0.2, 0.0)  # of what rounds save without a plan, which are tried; the first where the caller saves less
_WORTH = 0.05  # of the step's peak: less that a loop stacks is left as it is
_SECONDS = 0.3  # for telling whether a step can keep a budget


def with_planned_loops(program: Program, price: Price, settings: Settings) -> Iterator[Program]:
    """The program, and those in which its loops save less and less."""
    yield program
    step = program.step
    pairs = [pair for pair in loop_pairs(step) if pair.marked or pair.bytes >= _WORTH * program.graph.own_peak]
    rounds = [body_program(pair, price) for pair in pairs]
    for share in _SHARES if any(pair.marked for pair in pairs) else _SHARES[1:] if pairs else ():
        changed = _changed(step, pairs, rounds, settings, share)
        if changed is not None:
            yield program_of(changed, price, program.graph.name, "in_place" in settings.techniques, settings.exact,
                             outputs_from_start=not settings.exact)


def _changed(step: FlatStep, pairs: list[LoopPair], rounds: list[Program], settings: Settings, share: float) -> FlatStep | None:
    changed = None
    for pair, of_round in zip(pairs, rounds, strict=True):
        schedule = body_schedule(of_round, settings, share)
        if schedule is not None:
            step = changed = rewritten(step, pair, of_round, schedule)
    return changed


class Loops:
    """The programs of a step: with its loops as they are, and with loops that save less.  Those are made where needed."""

    def __init__(self, program: Program, price: Price, settings: Settings) -> None:
        self._settings, self._program = settings, program
        self._made = with_planned_loops(program, price, settings)
        self._known: list[Program] = []

    def within(self, limit: int) -> Program:
        """The program with the shortest plan of this peak, of those found quickly; the one whose loops save least if there is none."""
        self._known = self._known or list(self._made)
        if len(self._known) == 1:
            return self._program
        found = [(ticks, i) for i, program in enumerate(self._known) if (ticks := self._ticks(program, limit)) is not None]
        return self._known[min(found)[1] if found else -1]

    def _ticks(self, program: Program, limit: int) -> int | None:
        """Of a plan within the limit that is found quickly; None if there is none."""
        settings = self._settings
        terms: dict[str, Any] = {} if "recompute" in settings.techniques else {"techniques": sorted(settings.techniques - {"offload"} or {"in_place"})}
        return lowtide.plan(program.graph, max(1, limit), order=settings.order, time=_SECONDS, seed=settings.seed,
                            threads=settings.threads, **terms).duration
