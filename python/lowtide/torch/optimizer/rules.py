"""The optimizer's step as ops of a captured graph: one update for each parameter, as soon as its gradient is computed.

There is no rule per optimizer.  The optimizer's own step is recorded on fake tensors of the parameter's size, with its group's
settings.  The first step makes the state.  The calls of a later step give the update's time, and the largest memory beyond
parameter, gradient and state its workspace.  So `foreach`, which makes a list of results before it uses the first, takes more
than a loop, and `fused`, one kernel, takes none.  Steps that read a count on the host read 10.

The optimizer must treat every parameter separately, as all of torch.optim except LBFGS do.
"""

from __future__ import annotations

import inspect
import weakref
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ...frontend.errors import CaptureError
from ..compat import pytree
from ..compat.counting import operations_of
from ..compat.dispatch import OpOverload, TorchDispatchMode
from ..compat.fake import FakeTensorMode
from ..compat.optimizers import initial_state, not_compiling
from ..tensors.operators import Kernel, leaves
from ..tensors.storages import allocated, bytes_of, storage
from .given import Update

aten = torch.ops.aten

_COUNT = 10  # what a step reads on the host
_COUNT_NOTHING = ("SGD", "Muon")
_HOMES = ("device", "host")


def check_update(update: Update, state_home: str) -> None:
    """Raises TypeError or ValueError unless they are what `capture` takes."""
    check_home(state_home)
    if isinstance(update, (list, tuple)):
        _check_several(update)
        return
    if update is None:
        return
    if isinstance(update, str):
        _named(update)
    elif isinstance(update, type):
        if not issubclass(update, torch.optim.Optimizer):
            raise TypeError(f"update must be an optimizer, its class or name, or a function of the module that returns "
                            f"one, not {update!r}")
        _check_class(update)
    elif isinstance(update, torch.optim.Optimizer):
        check_optimizer(update)
    elif not callable(update):
        raise TypeError("update must be an optimizer, its class or name, or a function of the module that returns one, "
                        f"not {update!r}")


def _check_several(updates: Sequence[Update]) -> None:
    """Raises TypeError or ValueError unless each is an optimizer or a function that returns one, and none shares a
    parameter with another."""
    for update in updates:
        if not callable(update) and not isinstance(update, torch.optim.Optimizer) or isinstance(update, type):
            raise TypeError("update: a list takes optimizers, and functions of the module that return one: each has the "
                            f"parameters that it updates, which {update!r} does not say")
        check_update(update, "device")
    check_apart([update for update in updates if isinstance(update, torch.optim.Optimizer)])


def check_apart(optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Raises ValueError for a parameter that two of these optimizers update."""
    seen: dict[int, str] = {}
    for k, optimizer in enumerate(optimizers):
        words = f"optimizer {k} ({type(optimizer).__name__})"
        for i, group in enumerate(optimizer.param_groups):
            for j, p in enumerate(group["params"]):
                name = (group.get("param_names") or {j: f"parameter {j}"})[j]
                if id(p) in seen:
                    raise ValueError(f"{name} of group {i} of {words}, of shape {list(p.shape)}, is one of {seen[id(p)]} as "
                                     "well, and each would update it: give every parameter to one optimizer")
        seen |= {id(p): words for group in optimizer.param_groups for p in group["params"]}


def check_home(state_home: str) -> None:
    """Raises ValueError unless it is where a state can be."""
    if state_home not in _HOMES:
        raise ValueError(f"state_home must be 'device' or 'host', not {state_home!r}")


def _named(name: str) -> type[torch.optim.Optimizer]:
    known = {c.lower(): getattr(torch.optim, c) for c in dir(torch.optim)
             if isinstance(getattr(torch.optim, c), type) and issubclass(getattr(torch.optim, c), torch.optim.Optimizer)
             and c != "Optimizer"}
    if name.lower() not in known:
        raise ValueError(f"torch.optim has no optimizer {name!r}; known are {', '.join(known)}")
    _check_class(known[name.lower()])
    return known[name.lower()]


def _check_class(optimizer: type[torch.optim.Optimizer]) -> None:
    """Raises ValueError for an optimizer whose updates cannot be made one by one, as gradients come."""
    name = optimizer.__name__
    if issubclass(optimizer, torch.optim.LBFGS):
        raise ValueError("update: LBFGS reads all gradients at once, so none can go before the others are there; give it "
                         "as optimizer= alone, which counts its state, and step it after the backward")
    if issubclass(optimizer, torch.optim.SparseAdam):
        raise ValueError("update: SparseAdam takes sparse gradients, and a plan knows dense tensors alone")
    if getattr(torch.optim, name, None) is not optimizer:
        raise ValueError(f"update: {name} is none of torch.optim, so nothing says that it updates each parameter by "
                         "itself; count its state with optimizer= or reserve=, and step it after the backward")


def check_optimizer(optimizer: torch.optim.Optimizer, cuda_graph: bool = False) -> None:
    """Raises ValueError for an optimizer whose updates cannot be made one by one, as gradients come.  cuda_graph: within a CUDA graph."""
    _check_class(type(optimizer))
    if cuda_graph and type(optimizer).__name__ not in _COUNT_NOTHING \
            and not all(group.get("capturable") or group.get("fused") for group in optimizer.param_groups):
        raise ValueError(f"cuda_graph: {type(optimizer).__name__} counts its steps on the host, and each replay would read the same count; "
                         "build it with capturable=True or fused=True, of an optimizer that has these")
    for word, why in (("differentiable", "keeps the graph of every step for a backward through it, and an update makes none"),
                      ("capturable", "is for steps within CUDA graphs (cuda_graph=True)")):
        if not (cuda_graph and word == "capturable") and any(group.get(word) for group in optimizer.param_groups):
            raise ValueError(f"update: {word}=True {why}; leave it out, or step the optimizer after the backward")


@dataclass(frozen=True)
class Rule:
    """How one parameter is updated: the optimizer, and the settings of the parameter's group."""

    optimizer: torch.optim.Optimizer
    group: dict[str, Any]

    @staticmethod
    def of(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> Rule:
        """The rule of a group's parameters."""
        return Rule(optimizer, {key: value for key, value in group.items() if key not in ("params", "param_names")})

    @property
    def name(self) -> str:
        return type(self.optimizer).__name__

    def implementation(self, on_gpu: bool) -> str:
        """"fused", "foreach" or "loop"; where nobody said which, what PyTorch takes on such a device."""
        for word in ("fused", "foreach"):
            if self.group.get(word):
                return word
        unsaid = "foreach" in self.group and self.group["foreach"] is None
        chooses = unsaid and any(hasattr(inspect.getmodule(c), "_default_to_fused_or_foreach")
                                 for c in type(self.optimizer).__mro__)
        plain = not isinstance(self.group.get("lr"), torch.Tensor) and not self.group.get("differentiable")
        return "foreach" if on_gpu and chooses and plain else "loop"


@dataclass
class Rules:
    """The rules of a model's parameters, by their names in it."""

    of: dict[str, Rule] = field(default_factory=dict)
    home: str = "device"

    def read(self, model: nn.Module, update: Update) -> None:
        """Enter those of a module.  Raises CaptureError for an update that could not be made as gradients come."""
        if isinstance(update, (list, tuple)):
            for one in update:
                self.read(model, one)
            return
        optimizer: Any = update
        if isinstance(update, str):
            optimizer = _named(update)
        if isinstance(optimizer, type):
            optimizer = optimizer(model.parameters())
        elif not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = optimizer(model)
            if not isinstance(optimizer, torch.optim.Optimizer):
                raise CaptureError(f"update: the function must return an optimizer, not {type(optimizer).__name__}")
            try:
                check_optimizer(optimizer)
            except ValueError as error:
                raise CaptureError(str(error)) from error
        if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
            raise CaptureError("update: the optimizer has hooks on its step, which would run once for each parameter; "
                               "remove them, or step it after the backward")
        names = {id(p): name for name, p in model.named_parameters()}
        for i, group in enumerate(optimizer.param_groups):
            rule = Rule.of(optimizer, group)
            for k, p in enumerate(group["params"]):
                if id(p) not in names:
                    raise CaptureError(f"update: parameter {k} of group {i}, of shape {list(p.shape)}, is not one of the "
                                       "model's; give the optimizer the parameters of the module that is captured")
                if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
                    raise CaptureError(f"update: {names[id(p)]} has hooks on its gradient, which an update within the "
                                       "backward would pass by; remove them, or step the optimizer after the backward")
                name = names[id(p)]
                if name in self.of and self.of[name].optimizer is not optimizer:
                    raise CaptureError(f"update: {name} is one of two optimizers' parameters ({self.of[name].name} and "
                                       f"{rule.name}), and each would update it: give it to one of them")
                self.of[name] = rule


@dataclass(frozen=True)
class Watched:
    """The effect of an update on one parameter.

    state: fake tensors by their names.  parameter, gradient: those of the watched step.  kernels: its calls.
    temporaries: the most bytes of what it makes and drops.  mutates_gradient: does it write to the gradient?  implementation: as of Rule.
    """

    parameter: torch.Tensor
    gradient: torch.Tensor
    state: dict[str, torch.Tensor]
    kernels: list[Kernel]
    temporaries: int
    mutates_gradient: bool
    implementation: str


class Watcher:
    """Watches updates, each rule on each size once."""

    def __init__(self, mode: FakeTensorMode, on_gpu: bool) -> None:
        self._mode, self._on_gpu = mode, on_gpu
        self._known: dict[Any, Watched] = {}

    def __call__(self, rule: Rule, parameter: torch.Tensor) -> Watched:
        size, stride = tuple(map(int, parameter.shape)), tuple(map(int, parameter.stride()))
        key = (id(rule.group), size, stride, parameter.dtype)
        if key not in self._known:
            self._known[key] = self._watch(rule, size, stride, parameter.dtype)
        return self._known[key]

    def _watch(self, rule: Rule, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Watched:
        implementation = rule.implementation(self._on_gpu)
        # the user's optimizer stays as it is
        optimizer = object.__new__(type(rule.optimizer))
        optimizer.__dict__.update(rule.optimizer.__dict__)
        step = getattr(type(optimizer).step, "__wrapped__", type(optimizer).step)  # without the profiler's record
        with self._mode, not_compiling():
            made = nn.Parameter(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))
            made.grad = torch.empty_strided(size, stride, dtype=dtype, device="cpu")
            group = pytree.tree_map_only(torch.Tensor, lambda t: torch.empty((), dtype=t.dtype, device="cpu"), rule.group)
            if "capturable" in group:
                group["capturable"] = False  # which fakes of a CPU cannot be; all but the place of the count is the same
            if "foreach" in group and not group.get("fused"):
                group["foreach"] = implementation == "foreach"
            optimizer.param_groups, optimizer.state = [{**group, "params": [made]}], _State()
            optimizer.state[made].update(initial_state(optimizer, made, group))
            with _Calls():
                step(optimizer)
            state = {name: value for name, value in optimizer.state[made].items() if isinstance(value, torch.Tensor)}
            with _Memory(self._on_gpu) as memory:
                step(optimizer)
            with _Calls() as calls:
                step(optimizer)
        return Watched(made, made.grad, state, calls.kernels, memory.peak, storage(made.grad) in calls.written,
                       implementation)


def state_bytes(optimizer: torch.optim.Optimizer, on_gpu: bool, but: Container[int] = ()) -> int:
    """Bytes of the state that an optimizer keeps when it has stepped, but for parameters in those storages."""
    watch = Watcher(FakeTensorMode(), on_gpu)
    rules = [(Rule.of(optimizer, group), group["params"]) for group in optimizer.param_groups]
    return sum(allocated(bytes_of(t), p.device) for rule, parameters in rules for p in parameters
               if p.requires_grad and storage(p) not in but for t in watch(rule, p).state.values())


class _State(defaultdict[torch.Tensor, dict[str, Any]]):
    """An optimizer's state by parameter."""

    def __missing__(self, parameter: torch.Tensor) -> dict[str, Any]:
        return self.setdefault(parameter, {})


class _Calls(TorchDispatchMode):
    """Notes the kernels that run, and the storages that they write to of what they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[Kernel] = []
        self.written: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default:
            return float(_COUNT) if args[0].is_floating_point() else _COUNT
        result = func(*args, **kwargs)
        if not isinstance(func, OpOverload) or func.namespace == "prim":
            return result
        given = leaves((args, kwargs))
        # fused kernels write to gradients only to take a scale from them
        changed = [t for value, argument in zip(args, func._schema.arguments, strict=False)
                   if argument.is_write and (argument.name != "grads" or kwargs.get("grad_scale") is not None)
                   for t in leaves([value])]
        self.written |= {storage(t) for t in changed}
        old = {storage(t) for t in given}
        made = [t for t in leaves(result) if storage(t) not in old]
        if made or changed:
            flops = operations_of(func.overloadpacket, func, args, kwargs, result) or 0
            self.kernels.append(Kernel(func, args, kwargs, given, [*made, *changed], result, flops))
        return result


class _Memory(TorchDispatchMode):
    """Counts the bytes of what is made and not yet dropped; peak: the most of them.  on_gpu: in blocks of a GPU's allocator?"""

    def __init__(self, on_gpu: bool) -> None:
        super().__init__()
        self._device = torch.device("cuda" if on_gpu else "cpu")
        self.peak = self._live = 0
        self._holders: dict[int, int] = {}  # storage -> tensors in it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default:
            return float(_COUNT) if args[0].is_floating_point() else _COUNT
        result = func(*args, **kwargs)
        given = {id(t) for t in leaves((args, kwargs))}
        old = {storage(t) for t in leaves((args, kwargs))}
        for t in leaves(result):
            if id(t) not in given and (storage(t) not in old or storage(t) in self._holders):
                self._hold(t)
        return result

    def _hold(self, t: torch.Tensor) -> None:
        where, size = storage(t), allocated(bytes_of(t), self._device)
        if where not in self._holders:
            self._live += size
            self.peak = max(self.peak, self._live)
        self._holders[where] = self._holders.get(where, 0) + 1
        weakref.finalize(t, self._drop, where, size)

    def _drop(self, where: int, size: int) -> None:
        self._holders[where] -= 1
        if self._holders[where] == 0:
            del self._holders[where]
            self._live -= size
