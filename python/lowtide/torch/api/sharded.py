"""`optimize` of a model under FSDP2: its units and the code between them are graphs that share one budget, hooks of FSDP2 run between.

A model under fully_shard has units, modules around whose forwards hooks gather parameters and free them.  Each unit's forward, and
the root's, is compiled as a whole; calls of units within are no part of its graphs (graphs/segments.py).  A rehearsal runs
the root once with all hooks but no collective, on zeros as results.  It finds the graphs, their order, and what FSDP2 holds beside
each.  Then all are planned together, and compiled in a second rehearsal.  The model is changed in place, as fully_shard does it.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import fx

from ...frontend import progress
from ...frontend.errors import BudgetError, CaptureError, OverBudgetWarning, size_text
from ...frontend.planning.sharing import Assignment
from ..compat import pytree, sharding
from ..compat.dynamo import BackendCompilerFailed, TorchDynamoException, compiled_whole
from ..graphs.compile import EachShape, compile_captured
from ..graphs.group import Group
from ..graphs.segments import Segments, as_unit
from ..graphs.sharded_step import ShardedStep
from ..ranks.agreement import Agreement
from ..ranks.gathered import Event
from ..ranks.units import accumulated_bytes, check_units, sharded_bytes, units_of
from ..settings import Settings, state_by_rule
from ..tensors.arguments import arguments, tensors_in
from ..tensors.storages import storages
from ..tracing.against_eager import note_tracing
from ..tracing.log_calls import logs_behind
from .fake_calls import fake_results
from .rehearsing import attributes_kept, copied_arguments, generators_kept, gpus_of, stand_ins

_SECONDS = 600.0  # that the first rank may take to share a budget, beyond the limit of its process group
_VARIANTS = 64  # of one forward
_OURS = "_lowtide_forward"
_forwards = itertools.count()


def is_sharded(module: torch.nn.Module) -> bool:
    """Is it a root of FSDP2?"""
    return bool(sharding.states_of(module))


def optimize_sharded(module: torch.nn.Module, settings: Settings, example_inputs: Any, kwargs: Mapping[str, Any] | None,
                     ranks: Agreement, update: int = 0) -> torch.nn.Module:
    """`optimize` of a model under FSDP2, which is changed in place.  ranks: those that make this call.  update: bytes that one update
    takes after the backward.

    Raises CaptureError and BudgetError; the model then trains as before.
    """
    if example_inputs is None and kwargs is None:
        raise CaptureError("optimize takes a model under FSDP2 only with inputs, optimize(model, inputs, budget=...): its graphs share "
                           "the budget, and all are found by a call that gathers nothing")
    if settings.update != "step":
        raise CaptureError("update='backward' under FSDP2: gradients are reduced over the ranks when the backward has made them, and updates "
                           "would come before; use update='step', or lowtide.torch.step, which updates after the backward")
    given, named = arguments(() if example_inputs is None else example_inputs, kwargs)
    states = sharding.states_of(module)
    sharding.initialize(states[0])
    if sharding.is_within(states[0]):
        raise CaptureError("optimize takes the root of a model under FSDP2, and this one is a part of another model that has run")
    check_units(states)
    sharding.reshard(states)  # a forward without gradients leaves whole parameters of the root
    planned = _Sharded(module, states, settings, update)
    with progress.line():
        planned.plan(given, named, ranks)
    return module


class _Sharded:
    """The compiled code of a model under FSDP2.

    finding: are graphs entered, to be planned later?  rehearsing: does nothing run?  update: as of optimize_sharded.
    """

    def __init__(self, root: torch.nn.Module, states: list[Any], settings: Settings, update: int) -> None:
        self._root, self._states, self._settings, self._update = root, states, settings, update
        self.group = Group()
        self.group.watch.causes.add("FSDP")  # nothing to say: it is counted
        self.group.watch.whole = True
        self.finding = self.rehearsing = False
        self._names: dict[int, str] = {}  # of the modules whose forwards have graphs, by the graphs' numbers
        self.places: dict[Any, Assignment] = {}  # the terms of a graph, by its place in the code
        self._forwards: dict[torch.nn.Module, Any] = {}
        self._ways, self._adds = sharding.ways_of(states), accumulated_bytes(states) > 0
        self._is_said = False

    def plan(self, given: tuple[Any, ...], named: dict[str, Any], ranks: Agreement) -> None:
        """Raises CaptureError and BudgetError on all ranks if one does, and RankError if one fails otherwise."""
        progress.stage("tracing the step")
        self._install()
        try:
            self.finding = True
            self._rehearse(given, named)
            self.finding = False
            progress.stage("sharing the budget among the graphs")
            self._share(ranks)
            self._rehearse(given, named)
            ranks.exchange("the end of planning")
        except BaseException:
            self._remove()
            raise

    def _share(self, ranks: Agreement) -> None:
        """Share the budget: the first rank for all that have the same graphs and the same memory beside them, else each for itself."""
        group, settings = self.group, self._settings
        assert isinstance(group.sharded, ShardedStep), "it is made with the first rehearsal"
        missing = next((n for n in group.sharded.numbers if n not in group.to_plan), None)
        refusal = None if missing is None else CaptureError(
            f"a graph of the forward of {self._names[missing]} cannot be planned, as a warning says, and all graphs of a model under FSDP2 share "
            "the budget. Compile the blocks alone, before they are sharded: block.compile(backend=\"lowtide\")")
        mine = group.sharded.fixed, settings.reserved, settings.budget, {n: known.signature for n, known in group.to_plan.items()}
        told = ranks.exchange("the graphs of a model under FSDP2", mine, error=refusal)
        if any(theirs != told[0] for theirs in told):
            error = None
            try:
                group.share_budget(settings)
            except Exception as raised:
                error = raised
            ranks.exchange("the shares of a budget", error=error, more=_SECONDS)
            return

        def shares() -> dict[int, Assignment]:
            group.share_budget(settings)
            return {n: group.assignments[known.key] for n, known in group.to_plan.items()}

        group.take(ranks.first("the shares of a budget", shares, more=_SECONDS))

    def look(self) -> None:
        """A step begins: does it hold what was counted?  A warning says once what it does not."""
        adding = 0 if self._adds or self._is_said else accumulated_bytes(self._states)
        ways = zip(sharding.ways_of(self._states), self._ways, strict=True)
        if self._is_said or not adding and not any(planned and not now for pair in ways for now, planned in zip(*pair, strict=True)):
            return
        self._is_said = True
        what = f"gradients of shards, {size_text(adding)} ({adding} bytes), exist when the step begins" if adding else \
            "set_requires_gradient_sync or set_reshard_after_backward was called since"
        warnings.warn(f"lowtide: the plan of this model under FSDP2 does not count all that the step holds: {what}. If the model trains so, "
                      "optimize it again as it is now, or set gradients to None first", OverBudgetWarning, stacklevel=2)

    # ---- the code

    def _install(self) -> None:
        units = [module for state in self._states for module in sharding.modules_of(state)]
        for module in units:
            self._forwards[module] = vars(module).pop("forward", None)
            if module is not self._root:
                as_unit(module, functools.partial(fake_results, module, _own_forward(self._forwards[module]), self._states))
        for module in units:
            backend = functools.partial(self._compile, module)
            own = _own_forward(self._forwards[module])
            compiled = compiled_whole(_forward_of(module, own), logs_behind(backend), _VARIANTS)
            vars(compiled)[_OURS] = compiled, own  # the function itself, too: functools.wraps copies attributes
            vars(module)["forward"] = compiled

    def _remove(self) -> None:
        for module, forward in self._forwards.items():
            vars(module).pop("forward", None)
            if forward is not None:
                vars(module)["forward"] = forward

    def _compile(self, module: torch.nn.Module, gm: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        note_tracing(gm)
        places = itertools.count()
        return Segments(gm, lambda part: _Part(self, part, (module, next(places))))

    def begin_part(self, module: torch.nn.Module) -> int:
        """The number of a further graph of a module's forward."""
        number = len(self._names)
        name = next((name for name, part in self._root.named_modules() if part is module), "")
        self._names[number] = f"{name or 'the model'} ({type(module).__name__})"
        return number

    # ---- rehearsals

    def _rehearse(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        groups, units = units_of(self._states)
        index = {id(group): i for i, group in enumerate(groups)}
        step: ShardedStep | None = None
        if self.finding:
            held = storages([*self._unsharded(), *tensors_in(given, named)])
            state = state_by_rule(self._settings.optimizer, sharded_bytes(self._states))
            step = ShardedStep(units, held, state, sharding.reductions_kept(self._states[0]), self._update)
            self.group.sharded = step

        def note(kind: str, group: Any, late: bool) -> None:
            if step is not None:
                of = index[id(group)]
                step.note(Event(kind, of, late), sharding.gathered_storages(group) if kind == "copy" else ())

        self.rehearsing = True
        try:
            with torch.random.fork_rng(gpus_of(self._root, given, named)), generators_kept(self._root), \
                    attributes_kept(self._root), sharding.gathering_nothing(self._states, note):
                given, named = copied_arguments((given, named))
                self._root(*given, **named)
        except (BudgetError, CaptureError, ValueError):
            raise
        except BackendCompilerFailed as error:
            inner = error.inner_exception
            raise inner from (error if not isinstance(inner, (BudgetError, CaptureError, ValueError)) else None)
        except TorchDynamoException as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise CaptureError("the forwards of a model and of its units under FSDP2 are traced as a whole, and the tracer cannot take one: "
                               f"{line}. Move what it names out of the forward, or compile the blocks alone, before they "
                               "are sharded: block.compile(backend=\"lowtide\")") from error
        finally:
            self.rehearsing = False

    def _unsharded(self) -> Iterator[torch.Tensor]:
        """Parameters and buffers that FSDP2 does not shard."""
        sharded = {id(p.sharded_param) for state in self._states for group in sharding.groups_of(state) for p in group.fsdp_params}
        yield from (p for p in self._root.parameters() if id(p) not in sharded)
        yield from self._root.buffers()


def _own_forward(forward: Any) -> Callable[..., Any] | None:
    """The forward that a module has beside that of its class, as a patch or a framework sets it; one of ours stands for what it was made
    of."""
    ours, own = getattr(forward, _OURS, (None, None))
    return own if forward is ours else forward


def _forward_of(self: torch.nn.Module, own: Callable[..., Any] | None) -> Callable[..., Any]:
    """The forward of a module as a function of its own name, by which the tracer tells it from those of other modules of the class."""
    plain = type(self).forward if own is None else lambda _, *args, **kwargs: own(*args, **kwargs)

    def forward(*args: Any, **kwargs: Any) -> Any:
        return plain(self, *args, **kwargs)

    forward.__code__ = forward.__code__.replace(co_name=f"forward_{next(_forwards)}")
    return forward


class _Part:
    """A graph: found in the first rehearsal, compiled in the second one or when it is called."""

    def __init__(self, model: _Sharded, gm: fx.GraphModule, place: Any) -> None:
        self._model, self._gm, self._place = model, gm, place
        self._number = model.begin_part(place[0])
        self._run: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        model = self._model
        step = model.group.sharded
        assert isinstance(step, ShardedStep), "it is made with the first rehearsal"
        if model.finding:
            step.run(self._number, args)
            if self._number not in model.group.to_plan:
                found = compile_captured(self._gm, list(args), model._settings, model.group, self._number)
                if isinstance(found, EachShape):
                    found.prepare(args)
        elif self._run is None:
            self._run = self._compiled(args)
        if not model.rehearsing:
            assert self._run is not None, "it is compiled before it runs"
            if self._number == 0:
                model.look()
            model.group.predecessor = model.places.get(self._place)  # a graph with open sizes may compile now
            return self._run(*args)
        results = stand_ins(self._gm, args)
        if model.finding:
            step.gave(pytree.tree_leaves(results))
        return results

    def _compiled(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        model, group = self._model, self._model.group
        captured = group.to_plan.get(self._number)
        if captured is not None:
            model.places[self._place] = group.assignments[captured.key]
        group.predecessor = model.places.get(self._place)
        return compile_captured(self._gm, list(args), model._settings, group)
