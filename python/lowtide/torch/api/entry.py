"""The entry points: `backend` for torch.compile, and `optimize`, which plans before the first step."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.nn.parallel import DistributedDataParallel

from ...frontend import defaults, progress
from ...frontend.errors import BudgetError, CaptureError, fall_back
from ..compat import dynamo, pytree
from ..compat.dynamo import CALLS, WRAPS, BackendCompilerFailed, OptimizedModule, counters, frame_traced, takes_whole_graphs
from ..device.meter import bytes_held, storages_held
from ..graphs.compile import EachShape, compile_captured
from ..graphs.group import Group
from ..graphs.outside_gradients import no_backward, of_results
from ..ranks.buckets import check_parallel
from ..ranks.shared import refuse_shared
from ..ranks.together import agreeing, planning, process_group_of
from ..settings import OptimizeOptions, Settings
from ..tensors.arguments import arguments, tensors_in
from ..tracing.against_eager import note_tracing
from ..tracing.log_calls import logs_behind
from ..tracing.required_gradients import pass_over_hooks
from .rehearsing import copied_arguments, generators_kept, gpus_of, stand_ins
from .sharded import is_sharded, optimize_sharded

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..ranks.together import Ranks

_CALLING = (torch.nn.modules.module.__file__, CALLS)  # where modules are called
_RECOMPILES = 64  # of one function: every `optimize` of a model's class is one
# torch.compile hands the same dict to every graph of one model; its group keeps it, so that its id stays its own,
# and lives as long as one of the graphs.
_groups: weakref.WeakValueDictionary[int, Group] = weakref.WeakValueDictionary()
pass_over_hooks()


@takes_whole_graphs
@logs_behind
def backend(gm: fx.GraphModule, example_inputs: list[Any], *, options: dict[str, Any] | None = None,
            **_: Any) -> Callable[..., Any]:
    """torch.compile(model, backend="lowtide", options={"budget": "8GiB"}); options: settings.Settings.

    Raises ValueError for wrong options, and BudgetError during compilation if no plan keeps the budget (torch.compile wraps it in
    BackendCompilerFailed).  With graph breaks the captured graphs arrive one by one, at their first calls.  Each is planned beside
    the memory that exists then, and from the next step on all are planned together (group.py).  `optimize` finds all graphs before
    it plans the first.

    options: None: the process's defaults (set_default).  All graphs that use them share one budget.
    """
    ours = defaults.replaced() if options is None else options
    group = _groups.setdefault(id(ours), Group(options=ours))
    note_tracing(gm)
    module = _compiled_module()
    group.unit = None
    if module is not None:
        group.belongs_to(module)
        group.compiles(module, _called_with)
    elif (caller := _calling_module()) is not None:
        group.outside.belongs_to(caller, whole=False)
    traced = frame_traced()
    code = group.code = traced and traced.output.root_tx.f_code
    unit = weakref.ref(module) if module is not None else lambda: None
    run = compile_captured(gm, example_inputs, Settings.of(options), group)

    def call(*args: Any) -> Any:
        if isinstance(run, EachShape):  # which may compile now
            group.unit, group.code = unit(), code
        return run(*args)

    call.group = group  # type: ignore[attr-defined]
    return call


def _compiled_module() -> torch.nn.Module | None:
    """The module whose code is being traced, if the code belongs to one."""
    tx = frame_traced()
    if tx is None:  # the caller has its own graph
        return None
    return next((module for module in _objects_of(tx.output.root_tx) if isinstance(module, torch.nn.Module)), None)


def _objects_of(tx: Any) -> list[Any]:
    """The owner of the traced method, if it is a method: the variable `self`, which exists after a graph break, too, when the
    arguments differ; or the first argument, of any name, if its class has the traced code as its forward."""
    code, found = tx.f_code, [tx.f_locals.get("self")]
    if code.co_argcount:
        found.append(tx.f_locals.get(code.co_varnames[0]))
    elif code.co_flags & inspect.CO_VARARGS:
        found += tx.f_locals.get(code.co_varnames[code.co_kwonlyargcount], ())[:1]
    found = [value.cell_contents if isinstance(value, types.CellType) else value for value in found]
    return found[:1] + [value for value in found[1:] if getattr(getattr(type(value), "forward", None), "__code__", None) is code]


def _is_at(module: torch.nn.Module) -> bool:
    """Whether the traced code is the module's own, or the wrapper that calls it, as for modules of torch.nn."""
    tx = frame_traced()
    if tx is None:
        return True
    root = tx.output.root_tx
    return any(found is module for found in _objects_of(root)) or root.f_code.co_filename == WRAPS


def _calling_module() -> torch.nn.Module | None:
    """The outermost module whose code calls the traced code."""
    frame, found = inspect.currentframe(), None
    while frame is not None:
        # reading f_locals of other frames would keep their variables alive as long as the frames
        owner = frame.f_locals.get("self") if frame.f_code.co_filename in _CALLING else None
        if isinstance(owner, torch.nn.Module):
            found = owner._orig_mod if isinstance(owner, OptimizedModule) else owner
        frame = frame.f_back
    return found


def _called_with(module: torch.nn.Module) -> list[torch.Tensor]:
    """The tensors among the arguments of a module that is called now."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename == _CALLING[0] and frame.f_locals.get("self") is module:
            return tensors_in(frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {}))
        frame = frame.f_back
    return []


def optimize(module: torch.nn.Module, example_inputs: Any = None, *, budget: int | str | None = None,
             kwargs: Mapping[str, Any] | None = None, ranks: Ranks = None, **options: Unpack[OptimizeOptions]) -> torch.nn.Module:
    """`module`, compiled so that its training step stays within `budget`.

    example_inputs: a tuple of arguments, one tensor, or a mapping: `optimize(model, batch, ...)` plans for `model(**batch)`.
        kwargs: further keyword arguments.  With either, the step is captured, measured and planned before this returns, without
        running it: no buffer changes, no random number is drawn.  Several captured graphs share the budget (sharing.py); the code
        between them then runs once on zeros, on a copy of the module.  Without inputs each graph is planned at its first call,
        beside the memory that exists then, and from the next step on together with the others.
    budget, options: settings.Settings.  Those that are not given are the process's defaults (set_default).
    ranks: who makes this call, and gets one plan (ranks/one_plan.py): "together" (all ranks of the job), a process group (its ranks), or
        "alone".  None: the ranks of DistributedDataParallel or of FSDP2 for a module under it, else this rank alone.

    Parameters and buffers are shared with `module`.  Of a module under DistributedDataParallel the wrapped one is compiled in place, as
    by its method compile(), and the same object is returned; its buckets are part of the plan.  A model under FSDP2 (fully_shard) is
    planned in place, by all of its ranks together, and needs inputs (sharded.py).

    Raises TypeError for wrong arguments, ValueError for wrong options, BudgetError if no plan keeps the budget, CaptureError for a
    module that several ranks share in other ways (ranks/shared.py) and, with fallback="error", for a step that cannot be planned;
    each on all ranks that plan together, and RankError where another rank has failed or is missing.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"optimize takes a torch.nn.Module, not {type(module).__name__}; for a function, "
                        "torch.compile(function, backend=\"lowtide\", options={...})")
    process_group = process_group_of(module, ranks)
    if is_sharded(module):
        with agreeing(process_group) as agreement:
            return optimize_sharded(module, Settings.of({"budget": budget, **options}), example_inputs, kwargs, agreement)
    with planning(process_group) as together:
        settings = Settings.of({"budget": budget, **options})
        group = Group(ranks=together, planning=functools.partial(planning, process_group))
        if not isinstance(module, DistributedDataParallel):
            refuse_shared(module, "optimize", takes_parts=True)
            return compiled_within(module, settings, example_inputs, kwargs, group)
        check_parallel(module)
        refuse_shared(module.module, "optimize")
        group.buckets.meet(module)
        compiled_within(module.module, settings, example_inputs, kwargs, group, in_place=True)
        return module


def compiled_within(module: torch.nn.Module, settings: Settings, example_inputs: Any, kwargs: Mapping[str, Any] | None,
                    group: Group, in_place: bool = False) -> torch.nn.Module:
    """`optimize` with these settings.  group: for the graphs of the module.  in_place: as of _Compiled."""
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} has no size yet: call the lazy module once, under torch.no_grad(), before it is planned")
    planned = example_inputs is not None or kwargs is not None
    given, named = arguments(() if example_inputs is None else example_inputs, kwargs) if planned else ((), {})
    if group.ranks:
        group.ranks.begin({"planned for inputs": planned, **settings.of_all_ranks}, settings.time)
    _know(group, module)
    try:
        if not planned:
            return _Compiled(module, settings, group, in_place).begin()
        compiled, reason = _planned_for(_Compiled(module, settings, group, in_place), given, named)
        why = group.ranks.reason(reason) if group.ranks else reason
    finally:
        group.ranks = None
    return fall_back(why, settings.fallback, compiled.module if reason else module) if why else compiled.begin()


def _planned_for(compiled: _Compiled, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[_Compiled, str | None]:
    """The compiled module, planned for these arguments; and why it runs without a plan, if it does."""
    settings, group = compiled.settings, compiled.group
    on = {p.device.type for p in compiled.plain.parameters()}
    if "cuda" in on:
        gc.collect()  # what nobody can reach, as after a refused budget, is no memory of others
    if settings.reserve is None and on <= {"cpu"}:
        group.held = bytes_held(compiled.plain.state_dict(), tensors_in(given, named))
    with progress.line():
        _rehearse(compiled, given, named)
    if compiled.unplanned:
        group.outside.said(len(compiled.unplanned))
        return compiled, no_backward(compiled.unplanned)
    if group.to_plan:
        with progress.line():
            progress.stage("sharing the budget among the graphs")
            group.share_budget(settings)
            compiled = compiled.again()
            _rehearse(compiled, given, named)
    if gpus_of(compiled.plain, given, named):
        torch.cuda.empty_cache()  # what the rehearsal has copied is the step's to take
    if not compiled.captured_graphs:
        return compiled, ("the tracer compiled nothing of it; nn.LSTM, nn.GRU and nn.RNN, for one, it leaves alone "
                          "unless torch._dynamo.config.allow_rnn is set, and so it does a class of which it has "
                          f"compiled {_RECOMPILES} variants (torch._dynamo.reset() forgets them)")
    return compiled, None


def _rehearse(compiled: _Compiled, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    try:
        compiled.rehearse(given, named)
    except BaseException:
        vars(compiled).clear()  # the tracer keeps a backend that has raised, and with it would keep the module and its optimizer
        raise


def _know(group: Group, module: torch.nn.Module) -> Group:
    """A group for the graphs of a module, whose parameters and buffers are known to stay."""
    group.train(module.parameters())
    group.outside.belongs_to(module)
    stay = [*module.parameters(), *module.buffers()]
    group.calls.know(stay, stay)
    return group


class _Rehearsed(BaseException):
    """Ends a rehearsal.  Not an Exception, so that no handler in the model's code catches it.  error: the reason why a graph with
    open sizes or numbers, which is planned when it is reached, cannot be planned."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error


class _Compiled:
    """A compiled module that can be rehearsed: everything is compiled, nothing is computed.

    A rehearsal ends where the first graph would run, before the model's code uses the results: the tracer defers all side
    effects until then.  There are more graphs only after a graph break; they are reached with zeros as results, and numbered.
    The rehearsal runs a copy of the module with the same parameters, so that the state of the model's code stays unchanged;
    the tracer reuses the compiled code of the copy for the module.

    A copy of the compiled module, by copy.deepcopy or pickle, reaches this object through its backend.  It is planned at its
    own first call, since compiled code and facts about tensors belong to one module.
    """

    def __init__(self, module: torch.nn.Module, settings: Settings, group: Group, in_place: bool = False) -> None:
        """in_place: the module itself is to be called by the compiled code, as after module.compile()."""
        self.settings, self.group = settings, group
        self.plain = module
        self._rehearsing = self._broken = False
        self._stands_in = True
        self._breaks = 0
        self._rehearsed = module
        self._in_place = in_place
        self._backend = self._compile_captured  # one object, by which the tracer knows what it has compiled
        self.captured_graphs = 0  # compiled so far
        self._trains = False  # does one of them have a backward?
        self.unplanned: list[str] = []  # parameters that are trained where none of them has
        self.module = module if in_place else dynamo.compiled(module, self._backend, _RECOMPILES)

    def again(self) -> _Compiled:
        """The same module, to be compiled again."""
        return _Compiled(self.plain, self.settings, self.group, self._in_place)

    def begin(self) -> torch.nn.Module:
        """The module that runs the compiled code from now on."""
        if self._in_place:
            dynamo.call_by(self.plain, self._compile(self.plain))
        return self.module

    def __deepcopy__(self, memo: dict[int, Any]) -> _Compiled:
        return _compiled_anew(copy.deepcopy(self.plain, memo), self.settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled_anew, (self.plain, self.settings)

    def _compile(self, module: torch.nn.Module) -> Callable[..., Any]:
        return (dynamo.compiled_call if self._in_place else dynamo.compiled)(module, self._backend, _RECOMPILES)

    @takes_whole_graphs
    @logs_behind
    def _compile_captured(self, gm: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        reason = getattr(gm, "compile_subgraph_reason", None)
        self._broken = self._broken or bool(reason and reason.graph_break) or _graph_breaks() > self._breaks \
            or self._rehearsing and not _is_at(self._rehearsed)  # the tracer has skipped its own code
        number = self.captured_graphs
        note_tracing(gm)
        find = self._rehearsing and self._broken and self._stands_in and not self.group.assignments
        run = compile_captured(gm, inputs, self.settings, self.group, number if find else None)
        self.captured_graphs += 1
        self._trains = self._trains or torch.is_grad_enabled() and getattr(run, "trains", True)

        def call(*args: Any) -> Any:
            if not self._rehearsing:
                return run(*args)
            if isinstance(run, EachShape):
                _prepare(run, args)
            if not (self._broken and self._stands_in):
                raise _Rehearsed
            if find:
                self.group.order.append(number)
            return stand_ins(gm, args)

        return call

    def rehearse(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Compile every graph that a call with these arguments reaches."""
        progress.stage("tracing the step")
        try:
            module = copy.deepcopy(self.plain, {id(p): p for p in self.plain.parameters()})
        except Exception:  # a module that cannot be copied: only the first graph is reached
            module, self._stands_in = None, False
        self._breaks = _graph_breaks()
        self._rehearsing, self._rehearsed = True, module or self.plain
        own = dict(self.plain.named_buffers())
        self.group.stands_for = {id(copied): own[name] for name, copied in self._rehearsed.named_buffers() if name in own}
        try:
            with torch.random.fork_rng(gpus_of(self.plain, given, named)), generators_kept(self.plain):
                own_inputs, (given, named) = tensors_in(given, named), copied_arguments((given, named))
                there = storages_held(list(self.plain.buffers()), own_inputs)
                copies = storages_held(list(self._rehearsed.buffers()), tensors_in(given, named))
                self.group.copied = sum(size for key, size in copies.items() if key not in there)
                results = self._compile(self.plain if module is None else module)(*given, **named)
                if self.captured_graphs and not self._trains and torch.is_grad_enabled():
                    _, outside = of_results(t for t in pytree.tree_leaves(results) if isinstance(t, torch.Tensor))
                    self.unplanned = self.group.outside.names_among(outside)
        except _Rehearsed as end:
            if end.error:
                raise end.error from None
        except BackendCompilerFailed as error:
            inner = error.inner_exception
            raise inner from (error if not isinstance(inner, (BudgetError, CaptureError, ValueError)) else None)
        except Exception:  # code between graphs may not take zeros; then the later ones are not known
            if not self.group.to_plan:
                raise
        finally:
            self._rehearsing = False
            self.group.stands_for, self.group.copied = {}, 0


def _prepare(run: EachShape, args: tuple[Any, ...]) -> None:
    """Plan a graph for these arguments."""
    try:
        run.prepare(args)
    except Exception as error:
        raise _Rehearsed(error) from error


def _compiled_anew(module: torch.nn.Module, settings: Settings) -> _Compiled:
    """The compiler of a copy of an optimized module."""
    return _Compiled(module, settings, _know(Group(), module))


def _graph_breaks() -> int:
    return sum(counters["graph_break"].values())
