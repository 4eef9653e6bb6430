"""What a user may say about a compiled region: the options of the backend and of `optimize`."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch

import lowtide

from .costs import check_costs
from .meter import bytes_held, storages_held
from .offloading.host import host_limit, host_of
from .offloading.link import measured_link
from .program import Program
from .roofline import DEVICES
from .techniques import NOTHING, TRANSFORMS, host_budget_of, link_of, names_offload, techniques_of
from .guess import Guess
from .updates import check_apart, check_home, check_optimizer, state_bytes
from .updating.updater import check_hooks
from .workspaces import take_workspaces

_STATE_TENSORS = {  # optimizer -> how many numbers it keeps for each parameter
    "sgd": 0, "adam": 2, "adamw": 2, "nadam": 2, "radam": 2, "adamax": 2, "adagrad": 1, "rmsprop": 1,
    "adadelta": 2, "rprop": 2, "asgd": 1, "muon": 1,
}  # fmt: skip


_NOT_OPTIONS = ("whole", "state_home", "named_offload")


@dataclass(frozen=True)
class Settings:
    """Options, as torch.compile(options={...}) and lowtide.torch.optimize(...) take them.

    budget: bytes of the whole peak (an int or "8GiB"), or a share ("60%", "act:50%").
    order: "free" (ops may change places) or "given".
    reserve: bytes that stand beside the region (old gradients, other models, a loss computed outside it; an int
        or "512MB"); by default what the GPU's allocator holds when the region is compiled beyond the region's own
        inputs, and on a CPU what earlier regions of the model have saved.
    optimizer: a torch.optim optimizer, its class or its name, or a list of optimizers, none of which shares a parameter
        with another; their state is counted by their rules.
    update: "step" (the optimizers step after the backward, as ever) or "backward" (each parameter is updated as soon as
        its gradient is there, which ends then; updating/).  What no optimizer knows has its gradient handed out.
    costs: "auto", "measured", "flops", or a device's name (costs.py).
    time, work, seed, threads: limits of the planner, as of lowtide.plan; time is in seconds for a region.
    solver, solver_options: which solver plans ("hiremate"; auto: all that suit the graph) and its options, as names,
        numbers and lists of names.  What it finds no plan for, auto plans, and says so.
    fallback: what happens to a region that no plan can run: "warn" (it runs as it would without Lowtide)
        or "error".  A budget that cannot be kept is an error always.
    inner: what runs the planned halves: "eager" (kernel by kernel, to the last bit as eager PyTorch) or
        "inductor" (fused; as near to Inductor without a plan as another choice of fusions is; emission/inductor.py).
    techniques: what plans may use, of "recompute", "in_place", "offload", "split", "hoist" and "substitute"; None: the
        first three; "all": all.  On a CPU, where the host is emulated, "offload" counts only if it is named.
    link: to the host, bytes a second and the latency of a transfer ("25GB/s,10us"); None: that of the device that `costs`
        names, else as measured (offloading/link.py).
    host_budget: the most bytes of copies on the host (an int or "8GiB"); None: on a GPU half of the host's memory
        (offloading/host.py), on a CPU as many as help.
    loss_scale: what a backward that runs in the forward takes for the gradient of the loss: "last", what it was in
        the last backward; a number, a tensor of one element or a GradScaler.
    progress: called with the planner's events (lowtide.plan).

    Raises ValueError or TypeError naming the option that is wrong; numbers are kept as int and float.
    """

    budget: int | str
    order: str = "free"
    reserve: int | str | None = None
    optimizer: Any = None
    update: str = "step"
    costs: str = "auto"
    time: float | None = 0.9
    work: int | None = None
    seed: int = 1
    threads: int = 0
    solver: str = "auto"
    solver_options: Any = None
    fallback: str = "warn"
    inner: str = "eager"
    techniques: Any = None
    loss_scale: Any = "last"
    link: str | None = None
    host_budget: int | str | None = None
    progress: Callable[[Any], None] | None = None
    whole: bool = field(default=False, kw_only=True)  # forward, backward and updates in one call: `step` says it, no user
    state_home: str = field(default="device", kw_only=True)  # of the state of updates; `step` says it
    named_offload: bool | None = field(default=None, kw_only=True)  # found out; no user says it

    @property
    def optimizers(self) -> tuple[torch.optim.Optimizer, ...]:
        """Those that were given, not as a class or a name."""
        given = self.optimizer if isinstance(self.optimizer, tuple) else (self.optimizer,)
        return tuple(o for o in given if isinstance(o, torch.optim.Optimizer))

    def __post_init__(self) -> None:
        if isinstance(self.optimizer, list):
            object.__setattr__(self, "optimizer", tuple(self.optimizer))
        if self.fallback not in ("warn", "error"):
            raise ValueError(f"fallback must be 'warn' or 'error', not {self.fallback!r}")
        if self.inner not in ("eager", "inductor"):
            raise ValueError(f"inner must be 'eager' or 'inductor', not {self.inner!r}")
        check_order(self.order)
        self._check_update()
        check_home(self.state_home)
        check_costs(self.costs)
        if self.progress is not None and not callable(self.progress):
            raise TypeError(f"progress must be callable, not {self.progress!r}")
        checked = {"techniques": techniques_of(self.techniques), "link": link_of(self.link),
                   "host_budget": None if self.host_budget is None else host_budget_of(self.host_budget),
                   "named_offload": names_offload(self.techniques) if self.named_offload is None else self.named_offload,
                   "budget": _budget(self.budget),
                   "reserve": _reserve(self.reserve), "time": seconds(self.time),
                   "work": None if self.work is None else whole("work", self.work, 0, 2**63 - 1),
                   "solver_options": _solver_options(self.solver, self.solver_options),
                   "seed": whole("seed", self.seed, 0, 2**64 - 1), "threads": whole("threads", self.threads, 0, 4096)}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.inner != "eager" and self.named_offload and "offload" in self.techniques:
            raise ValueError("techniques: offload needs inner='eager': Inductor's code makes no copies to the host")
        if self.state_home == "host":
            if "offload" not in self.techniques:
                raise ValueError("state_home='host' is for plans that offload, and techniques leaves that out")
            object.__setattr__(self, "named_offload", True)
        for name in ("link", "host_budget"):
            if getattr(self, name) is not None and "offload" not in self.techniques:
                raise ValueError(f"{name} is for plans that offload, and techniques leaves that out")

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
            check_optimizer(optimizer)
        if self.inner != "eager":
            raise ValueError("update='backward' runs with inner='eager' alone: Inductor's code calls no optimizer")
        for optimizer in self.optimizers:
            check_hooks(optimizer, (p for group in optimizer.param_groups for p in group["params"]))

    @staticmethod
    def of(options: dict[str, Any] | None) -> Settings:
        """From the dict that torch.compile hands on.  Raises ValueError or TypeError naming what is wrong."""
        options = dict(options or {})
        known = [f.name for f in fields(Settings) if f.name not in _NOT_OPTIONS]
        for name in options:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
                raise ValueError(f"lowtide knows no option {name!r}{hint}")
        if "budget" not in options:
            raise ValueError("lowtide needs a budget: torch.compile(model, backend=\"lowtide\", "
                             "options={\"budget\": \"8GiB\"})")
        return Settings(**options)

    def plan_key(self) -> tuple[Any, ...]:
        """What of this a plan depends on, beside graph, budget and order."""
        return (self.time, self.work, self.seed, sorted(self.techniques), self.costs in DEVICES and self.costs,
                self.solver, self.solver_options)

    def on(self, device: torch.device) -> Settings:
        """The same for regions on that device: with the techniques that plans may use there."""
        by_itself = device.type == "cuda" and self.costs != "flops"  # by which nothing says what takes longer
        copies = self.inner == "eager" and (by_itself or device.type in ("cpu", "cuda") and self.named_offload)
        return self if copies or "offload" not in self.techniques else self._with(self.techniques - {"offload"})

    def _with(self, techniques: frozenset[str]) -> Settings:
        copies = {} if "offload" in techniques else {"link": None, "host_budget": None}
        return replace(self, techniques=techniques or frozenset({"in_place"}), **copies)

    def planning(self, alone: bool, device: torch.device) -> dict[str, Any]:
        """What a Problem is told beside graph, budget and order.

        alone: is nothing limited but the budget?  Else the graph is not changed.  device: where the region runs.
        """
        techniques = self.techniques - {"hoist"} if self.update == "backward" else self.techniques
        if not alone or self.inner != "eager":
            techniques -= TRANSFORMS
        told: dict[str, Any] = {}
        if techniques & TRANSFORMS:
            told["techniques"] = sorted(techniques)
            if self.costs in DEVICES or device.type == "cpu":
                told["device"] = self.costs if self.costs in DEVICES else "cpu"
        if "offload" in techniques:
            told |= {"techniques": sorted(techniques), "link": self._link(device), "host_budget": self.host_budget}
            if device.type == "cuda":
                told["host_budget"] = host_limit() if self.host_budget is None else self.host_budget
                host_of(device).allow(told["host_budget"])
        return told

    def told(self, program: Program, alone: bool) -> dict[str, Any]:
        """The same of one of several regions that share a budget."""
        return self.on(program.device).planning(alone, program.device)

    def _link(self, device: torch.device) -> str:
        if self.link:
            return self.link
        known = DEVICES[self.costs].host_link if self.costs in DEVICES else None
        rate, latency = known or measured_link(device)
        return f"{rate}B/s,{latency}ns"

    def without_transforms(self) -> Settings:
        """The same for plans of the graph as it was captured."""
        return self._with(self.techniques - TRANSFORMS)

    def without_copies(self) -> Settings:
        """The same for plans that copy nothing to the host."""
        return self._with(self.techniques - {"offload"})

    def guess(self) -> Guess:
        """Of the tangent of a backward that runs in the forward."""
        return Guess(self.loss_scale)

    def standing(self, known: int, device: torch.device) -> int:
        """Bytes beside a region: `reserve`, or what a GPU holds beyond so many known bytes."""
        if self.reserve is not None:
            return self.reserve
        if device.type != "cuda":
            return 0
        take_workspaces(device)
        return max(0, torch.cuda.memory_allocated(device) - known)

    def state(self, device: torch.device, trained: dict[int, int], updated: Container[int] = ()) -> int:
        """Bytes of the state that the optimizer will hold, beside what `standing` says.

        trained: storages of the model, with their bytes, that the optimizer keeps a state for.  updated: those whose
        state is in the region's graph.
        """
        if self.update == "backward":
            counted = self.reserve is None and device.type == "cuda"
            there = [t for optimizer in self.optimizers for state in optimizer.state.values() for t in state.values()
                     if getattr(t, "is_cuda", False)]
            states = sum(state_bytes(optimizer, device.type == "cuda", updated) for optimizer in self.optimizers)
            return states - counted * bytes_held(there)
        known = self.optimizers
        listed = [group["params"] for optimizer in known for group in optimizer.param_groups]
        state = state_by_rule(self.optimizer, sum((trained | storages_held(listed)).values()))
        if known and self.reserve is None and device.type == "cuda":
            state = max(0, state - bytes_held(known))  # what is there is in `standing` already
        return state


class _SolverOptions(tuple[tuple[str, str], ...]):
    """Options that a solver takes, of settings that others are made of."""


def _solver_options(solver: Any, given: Any) -> _SolverOptions:
    """As texts, by name; refused before anything is traced if the solver has none of that name or value."""
    if not isinstance(solver, str):
        raise TypeError(f"solver must be the name of one, not {solver!r}")
    if isinstance(given, _SolverOptions):
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
    return _SolverOptions(sorted(texts.items()))


def check_order(order: Any) -> None:
    """Raises ValueError unless it is one of the two."""
    if order not in ("free", "given"):
        raise ValueError(f"order must be 'free' or 'given', not {order!r}")


def seconds(time: Any) -> float | None:
    """`time` as the planner takes it.  Raises ValueError, or TypeError for what is no number."""
    if time is None:
        return None
    if not isinstance(time, numbers.Real) or isinstance(time, bool):
        raise TypeError(f"time must be a number of seconds or None, not {time!r}")
    if not 0 <= time < math.inf:
        raise ValueError(f"time must be a number of seconds, 0 or more, not {time!r}")
    return float(time)


def whole(name: str, value: Any, least: int, most: int) -> int:
    """The option `name` as an int.  Raises ValueError, or TypeError for what is no whole number."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value}")
    return int(value)


def _budget(budget: Any) -> int | str:
    if isinstance(budget, torch.Tensor):
        raise TypeError(f'budget must be an int (bytes) or a str ("8GiB", "60%", "act:50%"), not {budget!r}')
    budget = int(budget) if isinstance(budget, numbers.Integral) and not isinstance(budget, bool) else budget
    lowtide.Problem(NOTHING, budget)
    return budget


def _reserve(reserve: Any) -> int | None:
    if reserve is None:
        return None
    words = f'reserve is bytes beside the region (an int, or "512MB"), not {reserve!r}'
    if isinstance(reserve, float) and reserve.is_integer():
        reserve = int(reserve)
    if not isinstance(reserve, (str, numbers.Integral)) or isinstance(reserve, bool):
        raise (ValueError if isinstance(reserve, float) else TypeError)(words)
    if isinstance(reserve, str) and "%" in reserve:
        raise ValueError(words)
    try:
        return int(lowtide.Problem(NOTHING, reserve if isinstance(reserve, str) else int(reserve)).budget)
    except ValueError as error:
        raise ValueError(words) from error


def state_by_rule(optimizer: Any, trained: int) -> int:
    """Bytes of the state of an optimizer with so many bytes of trained parameters, or of several, each with the
    parameters that it lists.  Raises as `state_tensors`, and for several that share a parameter."""
    if not isinstance(optimizer, (list, tuple)):
        return state_tensors(optimizer) * trained
    check_several(optimizer)
    return sum(state_tensors(o) * sum(storages_held([group["params"] for group in o.param_groups]).values())
               for o in optimizer)


def check_several(optimizers: Any) -> None:
    """Raises TypeError or ValueError unless a list has optimizers alone, that share no parameter."""
    for one in optimizers if isinstance(optimizers, (list, tuple)) else ():
        if not isinstance(one, torch.optim.Optimizer):
            raise TypeError(f"optimizer: a list takes optimizers as they are built of the model's parameters, not {one!r}")
    check_apart(optimizers if isinstance(optimizers, (list, tuple)) else ())


def state_tensors(optimizer: Any) -> int:
    """How many numbers the optimizer keeps for each parameter.  Raises ValueError for one without a rule, and
    TypeError for what is none."""
    if optimizer is None:
        return 0
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
