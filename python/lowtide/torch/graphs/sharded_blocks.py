"""Blocks under FSDP2 that are compiled one by one, as frameworks do it: block.compile(backend="lowtide"), then fully_shard.

The first block is compiled when it is called, and the others are not known then.  FSDP2 knows all units of the model.  Those of the same
class, with parameters of the same shapes, are taken for blocks with the same graph, and are planned with it: each saves as much and
stands beside the others.  Blocks of another kind share the budget from the next step on, and so does a compiled loss that finds no room
beside the blocks.  Other code outside of the blocks (an embedding, a head) is not counted: `reserve` is for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from ...frontend.planning.sharing import Between, GraphToPlan, Pass
from ..compat import sharding
from ..ranks.gathered import Event
from ..ranks.units import check_units, units_of
from ..tensors.storages import Sizes, storages
from .sharded_step import Run, ShardedStep


class ShardedBlocks:
    """The units of a model under FSDP2, of which some are planned.

    states: of FSDP2, the root's first.  held: what stands beside the blocks, by storage.  also: bytes that stand beside that.
    """

    def __init__(self, states: list[Any], held: Sizes, also: int) -> None:
        check_units(states)
        self._states, self._held, self._also = states, held, also
        self._numbers = itertools.count()
        # by the kind of a unit, None for what runs when the forward has ended, and by the code that was traced: a unit with a graph break has
        # several graphs, in the order of its code
        self._kinds: dict[Any, dict[Any, tuple[GraphToPlan, Run]]] = {}

    @property
    def fixed(self) -> int:
        """Bytes that no plan changes."""
        return self._empty().fixed

    @property
    def at_the_end(self) -> int:
        """Bytes beside code that runs when the forward has ended: what stands all the time, and whole parameters that were not freed."""
        return self.fixed + sum(unit.left for unit in units_of(self._states)[1])

    def gathered_storages(self) -> list[torch.UntypedStorage]:
        """The storages of the whole parameters that were gathered so far."""
        return [s for group in units_of(self._states)[0] for s in sharding.gathered_storages(group)]

    def gathered(self, args: Iterable[Any]) -> set[int]:
        """Which of these are whole parameters of FSDP2?"""
        return self._known().gathered(args)

    def meet(self, module: torch.nn.Module, code: Any, captured: GraphToPlan, args: Iterable[Any]) -> None:
        """A graph of a unit is compiled with these arguments, of this code.  It replaces one of the same code, for other sizes."""
        unit = next(unit for unit in map(_Of, reversed(self._states)) if module in unit.inside)
        self._kinds.setdefault(unit.kind, {})[code] = captured, self._known().run_of(next(self._numbers), args)

    def meet_last(self, code: Any, captured: GraphToPlan, args: Iterable[Any]) -> None:
        """The same of a graph that runs when the forward has ended, such as the loss."""
        self._kinds.setdefault(None, {})[code] = captured, self._known().run_of(next(self._numbers), args)

    def forget_last(self, code: Any) -> None:
        """It has no part in the budget."""
        del self._kinds[None][code]

    def made_outside(self, args: Iterable[Any]) -> int:
        """Bytes of these that code outside of the blocks has made."""
        return self._known().run_of(0, args).made

    def passes(self) -> tuple[list[Pass], list[Between]]:
        """Those of a step of all units that have one of the graphs met, and of the graphs behind them."""
        step, first = self._empty(), True
        groups, _ = units_of(self._states)
        index = {id(group): i for i, group in enumerate(groups)}
        of_state = [[index[id(group)] for group in sharding.groups_of(state)] for state in self._states]
        for n, state in enumerate(self._states):
            runs = [run for _, run in self._kinds.get(_Of(state).kind, {}).values()]
            for of in of_state[n]:
                step.note(Event("gather", of))
                step.note(Event("copy", of))
                step.note(Event("enter", of, late=first and not runs))
            for run in runs:
                step.add(_for(run, of_state[n], first))
                first = False
            for of in of_state[n] if n else ():
                step.note(Event("leave", of))
        for of in of_state[0]:
            step.note(Event("leave", of))
        for _, run in self._kinds.get(None, {}).values():
            step.add(run)
        return step.passes({run.number: captured for graphs in self._kinds.values() for captured, run in graphs.values()})

    def _empty(self) -> ShardedStep:
        return ShardedStep(units_of(self._states)[1], self._held, self._also, sharding.reductions_kept(self._states[0]))

    def _known(self) -> ShardedStep:
        """A step that knows the parameters that were gathered so far."""
        step = self._empty()
        for of, group in enumerate(units_of(self._states)[0]):
            step.note(Event("copy", of), sharding.gathered_storages(group))
        return step


class _Of:
    """inside: the modules of a state of FSDP2.  kind: what units with the same graph have in common."""

    def __init__(self, state: Any) -> None:
        modules = sharding.modules_of(state)
        self.inside = {part for module in modules for part in module.modules()}
        parameters = [p for group in sharding.groups_of(state) for p in group.fsdp_params]
        self.kind = (tuple(map(type, modules)), tuple((sharding.whole_size(p), p.orig_dtype, p.sharded_param.requires_grad) for p in parameters))


def _for(run: Run, units: list[int], first: bool) -> Run:
    """The same for other units.  first: are its other inputs made by code between the graphs, and not by the graph before?"""
    sizes = [sizes for sizes in run.gradients.values()]
    gradients = {of: {(of, key): size for key, size in found.items()} for of, found in zip(units, sizes, strict=False)}
    if first:
        return replace(run, gradients=gradients)  # type: ignore[arg-type]
    return replace(run, counted=run.counted + run.made, made=0, gradients=gradients)  # type: ignore[arg-type]


def blocks_around(module: torch.nn.Module, given: Callable[[torch.nn.Module], Iterable[Any]]) -> ShardedBlocks | None:
    """The blocks of the model under FSDP2 that a module is a unit of, or a part of one; None if it is of none, or the root.  given: the
    arguments of a module that is called now."""
    states = sharding.states_around(module)
    if len(states) < 2 or module in sharding.modules_of(states[0]):
        return None
    root = sharding.modules_of(states[0])[0]
    sharded = {id(p.sharded_param) for state in states for group in sharding.groups_of(state) for p in group.fsdp_params}
    whole = {id(t) for state in states for group in sharding.groups_of(state) for t in sharding.whole_of(group)}
    own = [p for p in root.parameters() if id(p) not in sharded | whole]
    return ShardedBlocks(states, storages([*own, *root.buffers(), *given(root)]), 0)
