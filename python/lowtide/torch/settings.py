"""The options of a compiled graph: those of the backend and of `optimize`."""

from __future__ import annotations

import difflib
import numbers
import warnings
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import torch

import lowtide

from ..frontend import defaults
from ..frontend.errors import LowtideWarning, size_text
from ..frontend.options import Counted, Options, PlannerOptions, link_text
from ..frontend.planning.taken import AllocatorState, cuts_one_block
from ..frontend.program import Program
from ..frontend.roofline import DEVICES
from ..frontend.techniques import bytes_of, names_offload
from .device.allocator import Allocator, allocator_of, allocator_state
from .device.host import host_limit, host_of
from .device.link import measured_link
from .device.meter import bytes_held, storages_held
from .device.workspaces import take_workspaces
from .optimizer.given import Optimizer
from .optimizer.rules import check_apart, check_home, check_optimizer, state_bytes
from .optimizer.updater import Updater, check_hooks
from .pricing.costs import check_costs, known_as
from .runtime.recorded import DEVICES as RECORDED
from .tensors.effects import ranks
from .tensors.storages import left_over

_STATE_TENSORS = {  # optimizer -> count of numbers for each parameter
    "sgd": 0, "adam": 2, "adamw": 2, "nadam": 2, "radam": 2, "adamax": 2, "adagrad": 1, "rmsprop": 1,
    "adadelta": 2, "rprop": 2, "asgd": 1, "muon": 1,
}  # fmt: skip


_NOT_OPTIONS = ("whole", "state_home", "named_offload", "estimated", "live_because")
_SMALL_STEP = 256 << 20  # bytes, to which the allocator's segments of 20 MiB are a large part
_WORK_A_SECOND = 500_000  # of a search in one thread, roughly
_SHARING_SECONDS = 0.2
_OF_A_RANK = ("budget", "reserve", "optimizer", "loss_scale", "link", "host_budget", "progress", "threads")


class StepOptions(PlannerOptions, total=False):
    """The `Settings` that `step` takes as keyword arguments, without the budget, for type checkers."""

    reserve: int | str | None
    inner: Literal["auto", "eager", "fused", "inductor"]
    cuda_graph: bool
    loss_scale: float | torch.Tensor | torch.amp.GradScaler | Literal["last"]


class OptimizeOptions(StepOptions, total=False):
    """The same for `optimize`."""

    optimizer: Optimizer
    update: Literal["step", "backward"]
    fallback: Literal["warn", "error"]


@dataclass(frozen=True)
class Settings(Options):
    """Options of torch.compile(options={...}) and lowtide.torch.optimize(...): those of a planner, and these.

    reserve: bytes outside of the graph (existing gradients, other models, a loss computed outside; an int or "512MB").  Default on a
        GPU: the bytes allocated beyond the graph's own inputs at compile time, and 64 KiB of each large tensor for the allocator's rounding
        (tensors/storages.py: left_over).  On a CPU: the bytes that earlier graphs of the model have saved.
    optimizer: a torch.optim optimizer, its class or its name, or a list of optimizers that share no parameter; plans count
        their state.
    update: "step" (the optimizers step after the backward) or "backward" (each parameter is updated, and its gradient freed, as soon
        as the gradient is computed; optimizer/).  Parameters of no optimizer keep their gradients.
    costs: "auto", "measured", "flops", or a device's name (pricing/costs.py).
    fallback: for a graph that cannot be planned: "warn" (it runs as without Lowtide) or "error".  A budget that cannot be kept is
        always an error.
    inner: the kernels that plans run: "eager" (PyTorch's, bit-identical to eager execution), "fused" (clusters of ops that Inductor
        makes kernels of; clusters/) or "auto" (graphs/inner.py).  "inductor" is an older word for "fused".
    cuda_graph: record each side of a step as a CUDA graph, and replay it (runtime/recorded.py).
    techniques: on a CPU, where the host is emulated, "offload" must be named.
    link: None: the link of the device in `costs`, else the measured one (device/link.py).
    footprint: None: "reserved" on a GPU whose allocator the model knows, for a step of one captured graph that is not small; else "live".
    allocator: None: on a GPU those of the process, on a CPU PyTorch's defaults.
    host_budget: None: on a GPU half of the host's memory (device/host.py), on a CPU unlimited.
    loss_scale: the gradient of the loss that a hoisted backward assumes: "last" (of the last backward), a number, a tensor of one
        element, or a GradScaler.

    Raises ValueError or TypeError that names the wrong option; numbers are stored as int and float.
    """

    reserve: int | str | None = None
    optimizer: Any = None
    update: str = "step"
    fallback: str = "warn"
    inner: str = "auto"
    cuda_graph: bool = False
    loss_scale: Any = "last"
    whole: bool = field(default=False, kw_only=True)  # forward, backward and updates in one call: set by `step`, not by users
    state_home: str = field(default="device", kw_only=True)  # of the state of updates; set by `step`
    named_offload: bool | None = field(default=None, kw_only=True)  # derived; not set by users
    estimated: bool = field(default=False, kw_only=True)  # "auto" costs are not measured; set by `with_estimates`

    @property
    def optimizers(self) -> tuple[torch.optim.Optimizer, ...]:
        """The optimizers of `optimizer`, without classes and names."""
        given = self.optimizer if isinstance(self.optimizer, tuple) else (self.optimizer,)
        return tuple(o for o in given if isinstance(o, torch.optim.Optimizer))

    @property
    def reserved(self) -> int | None:
        """`reserve` in bytes."""
        return None if self.reserve is None else int(self.reserve)

    def __post_init__(self) -> None:
        if isinstance(self.optimizer, list):
            object.__setattr__(self, "optimizer", tuple(self.optimizer))
        if self.fallback not in ("warn", "error"):
            raise ValueError(f"fallback must be 'warn' or 'error', not {self.fallback!r}")
        if self.inner not in ("auto", "eager", "fused", "inductor"):
            raise ValueError(f"inner must be 'auto', 'eager' or 'fused', not {self.inner!r}")
        if self.inner == "inductor":
            warnings.warn("lowtide: inner='inductor' is now inner='fused', and will be refused one day", LowtideWarning, stacklevel=4)
            object.__setattr__(self, "inner", "fused")
        if isinstance(self.budget, torch.Tensor):
            raise TypeError(f'budget must be an int (bytes) or a str ("8GiB", "60%", "act:50%"), not {self.budget!r}')
        self._check_update()
        check_home(self.state_home)
        check_costs(self.costs)
        given = self.techniques
        super().__post_init__()
        if self.named_offload is None:
            object.__setattr__(self, "named_offload", names_offload(given))
        object.__setattr__(self, "reserve", _reserve(self.reserve))
        if self.fuses and self.layout == "exact":
            raise ValueError("layout='exact' needs inner='eager': fused kernels allocate their own temporaries")
        if self.cuda_graph is not True and self.cuda_graph is not False:
            raise TypeError(f"cuda_graph must be True or False, not {self.cuda_graph!r}")
        if self.cuda_graph:
            self._check_recorded()
        if self.state_home == "host":
            if "offload" not in self.techniques:
                raise ValueError("state_home='host' needs offloading, but techniques excludes it")
            object.__setattr__(self, "named_offload", True)

    def _check_recorded(self) -> None:
        """Raises ValueError for options that a CUDA graph cannot have."""
        for is_so, words in ((self.named_offload, "the technique offload: copies to the host wait for events, and end on the host"),
                             (self.state_home == "host", "state_home='host': the state is moved by the host"),
                             (self.footprint == "reserved", "footprint='reserved': a CUDA graph has a pool of its own"),
                             (self.layout == "prime", "layout='prime': a CUDA graph has a pool of its own; layout='exact' has its block there")):
            if is_so:
                raise ValueError(f"cuda_graph=True does not go with {words}")

    def check_cuda_graph(self, device: torch.device) -> None:
        """Raises ValueError if steps on that device cannot be recorded as the options say."""
        if not self.cuda_graph:
            return
        for is_so, words in ((device.type not in RECORDED, f"is for GPUs, and this model is on a {device.type}"),
                             (ranks() > 1, "is for one rank: collectives of several wait for one another on the host"),
                             (self.update == "backward" and not self.whole, "does not go with update='backward', whose updates depend on what "
                              "autograd runs: use lowtide.torch.step, which is recorded as a whole")):
            if is_so:
                raise ValueError(f"cuda_graph=True {words}")

    def _check_update(self) -> None:
        if self.update not in ("step", "backward"):
            raise ValueError(f"update must be 'step' or 'backward', not {self.update!r}")
        if self.update == "step":
            state_by_rule(self.optimizer, 0)
            return
        if not self.optimizers:
            raise (TypeError if self.optimizer else ValueError)(
                "update='backward' needs the optimizer that makes the updates, or a list of them: optimizer=, of "
                f"torch.optim as it is built of the model's parameters, not {self.optimizer!r}")
        check_several(self.optimizer)
        for optimizer in self.optimizers:
            check_optimizer(optimizer, self.cuda_graph)
        for optimizer in self.optimizers:
            check_hooks(optimizer, (p for group in optimizer.param_groups for p in group["params"]))

    @property
    def inner_in_words(self) -> str:
        """The kernels that plans run, and why these."""
        return "fused kernels (inner='fused')" if self.fuses else "eager kernels (inner='eager')"

    @property
    def fuses(self) -> bool:
        """Do plans run clusters?"""
        return self.inner == "fused"

    @staticmethod
    def of(options: dict[str, Any] | None) -> Settings:
        """From the dict of torch.compile, and the process's defaults of what is not in it.

        Raises ValueError or TypeError that names the wrong option, and the variable of the environment that has given it.
        """
        given = {name: value for name, value in (options or {}).items() if (name, value) != ("budget", None)}
        options = defaults.complete(given)
        check_names(options)
        if "budget" not in options:
            raise ValueError("lowtide needs a budget: torch.compile(model, backend=\"lowtide\", options={\"budget\": \"8GiB\"}), "
                             "or one for the whole process: lowtide.torch.set_default(budget=\"8GiB\") or LOWTIDE_BUDGET")
        with defaults.naming_variables(given):
            return Settings(**options)

    @property
    def of_all_ranks(self) -> dict[str, Any]:
        """The options that have the same values on all ranks that plan together, in a form that can be compared."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _OF_A_RANK}
        return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in values.items()}

    def by_work(self) -> Settings:
        """The same settings for plans that depend on their graph alone: searches are limited by work, and not by time."""
        if self.time is None:
            return self
        return replace(self, time=None, work=int(self.time * _WORK_A_SECOND) if self.work is None else self.work)

    @property
    def sharing_limits(self) -> dict[str, Any]:
        """The limits of each of the searches by which graphs share a budget."""
        return {"work": int(_SHARING_SECONDS * _WORK_A_SECOND)} if self.time is None else {"time": _SHARING_SECONDS}

    def on(self, device: torch.device) -> Settings:
        """The same settings with the techniques that are possible on that device."""
        by_itself = device.type == "cuda" and self.costs != "flops"  # which does not compare copies with kernels
        copies = by_itself or device.type in ("cpu", "cuda") and self.named_offload
        return self if copies or "offload" not in self.techniques else self.without_copies()

    def allowed(self, alone: bool) -> frozenset[str]:
        techniques = super().allowed(alone)
        if self.cuda_graph:  # copies end on the host; a hoisted backward reads its loss scale there
            techniques -= {"offload"} if self.whole else {"offload", "hoist"}
        return techniques - {"hoist"} if self.update == "backward" else techniques

    def with_estimates(self) -> Settings:
        """The same settings with prices that no measurement decides: equal graphs have equal ones on all ranks."""
        return replace(self, estimated=True)

    def costs_on(self, device: torch.device) -> str:
        """`costs`, as of pricing/costs.py."""
        return known_as(device) if self.estimated and self.costs == "auto" else self.costs

    def prices_of(self, device: torch.device) -> str | None:
        return "cpu" if device.type == "cpu" else None

    def link_of(self, device: torch.device) -> str:
        if self.costs in DEVICES and DEVICES[self.costs].host_link:
            return super().link_of(device)
        link = measured_link(device)
        return link_text(link.together if self.state_home == "host" else link.alone, link.latency)

    def host_room(self, device: torch.device) -> int | None:
        if device.type != "cuda":
            return super().host_room(device)
        room = host_limit() if self.host_budget is None else int(self.host_budget)
        host_of(device).allow(room)
        return room

    def allocator_on(self, device: torch.device) -> str | None:
        if self.allocator is None and device.type == "cuda":
            return allocator_of(device).settings
        return super().allocator_on(device)

    def default_footprint(self, device: torch.device) -> Counted:
        """What the budget limits on that device if neither the options nor the graph say otherwise."""
        if device.type != "cuda":
            return Counted("live", self.allocator)
        found = allocator_of(device) if self.allocator is None else Allocator(self.allocator)
        if self.cuda_graph:
            return Counted("live", found.settings, "a CUDA graph has a pool of memory of its own")
        return Counted("live" if found.settings is None else "reserved", found.settings, found.unknown)

    def counting(self, counted: Counted, graph: lowtide.Graph, beside: str = "") -> Settings:
        """The same settings, which say what the budget limits.  graph: of the step without a plan.  beside: what else takes memory
        during the step, in other ways than the model knows; empty if nothing does."""
        if self.footprint is not None:
            return replace(self, allocator=counted.allocator)
        footprint, because = counted.footprint, counted.live_because
        if footprint == "reserved" and beside:
            footprint, because = "live", f"{beside}, and the allocator's model knows the steps of one graph in one stream"
        elif footprint == "reserved" and graph.own_peak < _SMALL_STEP:
            footprint, because = "live", f"the allocator's segments of 20 MiB are a large part of a step of less than {size_text(_SMALL_STEP)}"
        return replace(self, footprint=footprint, allocator=counted.allocator, live_because=because)

    def allocator_state(self, device: torch.device) -> AllocatorState | None:
        """What the process's allocator holds, if plans are made for it and the budget limits reserved bytes.  Not under settings that round
        sizes up to shares of powers of two, by which blocks that are there would be larger than they are."""
        if "roundup_power2" in (self.allocator or ""):
            return None
        of_process = self.footprint == "reserved" and device.type == "cuda" and self.allocator == allocator_of(device).settings
        return allocator_state(device) if of_process else None

    def check_allocator(self, device: torch.device) -> None:
        """Raises ValueError if the options need an allocator, or its model, that the device has not."""
        if device.type == "cuda" and self.allocator is None and (self.layout is not None or self.footprint == "reserved"):
            found = allocator_of(device)
            if found.settings is None:
                asked = f"layout={self.layout!r}" if self.layout else "footprint='reserved'"
                raise ValueError(f"{asked} needs the model of the allocator: {found.unknown}")
        if self.layout is None:
            return
        if device.type != "cuda":
            raise ValueError(f"layout={self.layout!r} is for GPUs: the allocator of a {device.type} has no blocks that could be laid out")
        allocator = self.allocator_on(device) or ""
        if not cuts_one_block(allocator):
            raise ValueError(f"layout={self.layout!r} needs an allocator that cuts one block into requests, and {allocator!r} says otherwise: "
                             "expandable segments need no such block, and the others of these settings change what is cut")

    def terms_of(self, program: Program, alone: bool) -> dict[str, Any]:
        """The arguments of a Problem for one of several graphs that share a budget."""
        return self.on(program.device).planning(alone, program.device)

    def standing(self, known: int, device: torch.device, program: Program) -> int:
        """Bytes outside a graph: `reserve`, or the bytes that a GPU holds beyond `known` and beyond the graph's tensors."""
        if device.type == "cuda":  # with a `reserve` too: a step that has a pool of its own would allocate the workspaces from that pool
            take_workspaces(device)
            if self.cuda_graph:
                take_workspaces(device, recorded=True)
        if self.reserved is not None:
            return self.reserved
        if device.type != "cuda":
            return 0
        beyond = left_over((t.bytes for t in program.graph.tensors), device)
        return max(0, torch.cuda.memory_allocated(device) - known) + beyond

    def state(self, device: torch.device, trained: dict[int, int], updated: Container[int] = ()) -> int:
        """Bytes of the state that the optimizer will hold, without those that `standing` counts.

        trained: storages of the model for which the optimizer keeps a state, with their bytes.  updated: those whose
        state is in the captured graph.
        """
        if self.update == "backward":
            counted = self.reserve is None and device.type == "cuda"
            there = [t for optimizer in self.optimizers for state in optimizer.state.values() for t in state.values()
                     if getattr(t, "is_cuda", False)]
            states = sum(state_bytes(optimizer, device.type == "cuda", updated) for optimizer in self.optimizers)
            held = sum(Updater.of(optimizer).places.bytes for optimizer in self.optimizers)  # for state that the first step makes
            return states - counted * (bytes_held(there) + held)
        known = self.optimizers
        listed = [group["params"] for optimizer in known for group in optimizer.param_groups]
        state = state_by_rule(self.optimizer, sum((trained | storages_held(listed)).values()))
        if known and self.reserve is None and device.type == "cuda":
            state = max(0, state - bytes_held(known))  # `standing` counts the existing state
        return state


def check_names(options: Iterable[str]) -> None:
    """Raises ValueError for a name that is no option."""
    known = [f.name for f in fields(Settings) if f.name not in _NOT_OPTIONS]
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
            raise ValueError(f"lowtide knows no option {name!r}{hint}")


def _reserve(reserve: Any) -> int | None:
    if reserve is None:
        return None
    words = f'reserve is bytes beside the graph (an int, or "512MB"), not {reserve!r}'
    if isinstance(reserve, float) and reserve.is_integer():
        reserve = int(reserve)
    if not isinstance(reserve, (str, numbers.Integral)) or isinstance(reserve, bool):
        raise (ValueError if isinstance(reserve, float) else TypeError)(words)
    if isinstance(reserve, str) and "%" in reserve:
        raise ValueError(words)
    try:
        return bytes_of(reserve if isinstance(reserve, str) else int(reserve))
    except ValueError as error:
        raise ValueError(words) from error


def state_by_rule(optimizer: Any, trained: int) -> int:
    """Bytes of the state of an optimizer with `trained` bytes of parameters, or of several optimizers, each with its own
    parameters.  Raises as `state_tensors` does, and if several share a parameter."""
    if not isinstance(optimizer, (list, tuple)):
        return state_tensors(optimizer) * trained
    check_several(optimizer)
    return sum(state_tensors(o) * sum(storages_held([group["params"] for group in o.param_groups]).values())
               for o in optimizer)


def check_several(optimizers: Any) -> None:
    """Raises TypeError or ValueError unless a list contains only optimizers, and these share no parameter."""
    for one in optimizers if isinstance(optimizers, (list, tuple)) else ():
        if not isinstance(one, torch.optim.Optimizer):
            raise TypeError(f"optimizer: a list takes optimizers as they are built of the model's parameters, not {one!r}")
    check_apart(optimizers if isinstance(optimizers, (list, tuple)) else ())


def state_tensors(optimizer: Any) -> int:
    """The count of numbers that the optimizer keeps for each parameter.  Raises ValueError if there is no rule for it, and
    TypeError if it is not an optimizer."""
    if optimizer is None:
        return 0
    name: Any
    if isinstance(optimizer, torch.optim.Optimizer):
        name, group = type(optimizer).__name__, optimizer.param_groups[0]
    else:
        name, group = optimizer if isinstance(optimizer, str) else getattr(optimizer, "__name__", None), {}
    if not isinstance(name, str):
        raise TypeError(f"optimizer must be one of torch.optim, its class or its name, not {optimizer!r}")
    if name.lower() not in _STATE_TENSORS:
        raise ValueError(f"no rule for the state of optimizer {name!r}; known are {', '.join(_STATE_TENSORS)}; "
                         "give its bytes as reserve= instead")
    extra = {"sgd": bool(group.get("momentum")), "rmsprop": bool(group.get("momentum")) + bool(group.get("centered"))}
    return _STATE_TENSORS[name.lower()] + int(bool(group.get("amsgrad"))) + int(extra.get(name.lower(), 0))
