"""The ways in: `backend` for torch.compile, and `optimize`, which plans before the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.exc import BackendCompilerFailed
from torch.utils import _pytree as pytree

from .errors import BudgetError, CaptureError
from .meter import bytes_held
from .region import compile_region, fall_back, forget_reports, reports
from .settings import Settings
from .sharing import Group

# torch.compile hands the same dict to every region of one model; kept here, so that its id stays its own
_groups: dict[int, tuple[Any, Group]] = {}


def backend(gm: fx.GraphModule, example_inputs: list[Any], *, options: dict[str, Any] | None = None,
            **_: Any) -> Callable[..., Any]:
    """torch.compile(model, backend="lowtide", options={"budget": "8GiB"}); options: settings.Settings.

    Raises ValueError for options that are wrong; while the region is compiled, BudgetError if no plan keeps
    the budget (torch.compile wraps it in its own BackendCompilerFailed).  A model that the tracer breaks
    into several regions gets them one by one as they are first called: each is planned beside what the
    earlier ones have saved by then.  `optimize` knows all of them before it plans the first.
    """
    _, group = _groups.setdefault(id(options), (options, Group(watched=True)))
    return compile_region(gm, example_inputs, Settings.of(options), group)


def optimize(module: torch.nn.Module, example_inputs: Any = None, *, budget: int | str,
             **options: Any) -> torch.nn.Module:
    """`module`, compiled so that its training step stays within `budget`.

    example_inputs: a tuple of arguments, or one tensor.  With it the step is captured, measured and planned
        before this returns, and nothing of it runs: no buffer moves, no random number is drawn.  Where the
        tracer breaks the model into several regions, they share the budget (sharing.py); that needs
        example_inputs.  Without it each region is planned at the first call, beside what stands then.
    budget, options: settings.Settings.

    Parameters and buffers are shared with `module`.  Raises ValueError for wrong options, BudgetError if no
    plan keeps the budget, CaptureError (with fallback="error") for a step that cannot be planned.
    """
    settings = Settings.of({"budget": budget, **options})
    group = Group(finding=example_inputs is not None)
    before = len(reports())
    first = _Compiled(module, settings, group)
    if example_inputs is None:
        return first.module
    arguments = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    first.rehearse(arguments)
    group.finding = False
    if not first.compiled:
        return fall_back("the tracer compiled nothing of it; nn.LSTM, nn.GRU and nn.RNN, for one, it leaves alone "
                         "unless torch._dynamo.config.allow_rnn is set", settings, first.module)
    if len(group.found) < 2:
        group.found.clear()
        return first.module
    if settings.reserve is None and all(p.device.type == "cpu" for p in module.parameters()):
        group.held = bytes_held(module.state_dict(), arguments)
    group.settle(settings.budget, settings.order)
    forget_reports(before)  # of the first region, planned as if it were the only one
    second = _Compiled(module, settings, group)
    second.rehearse(arguments)
    group.found.clear()
    return second.module


class _Compiled:
    """A compiled module that can be rehearsed: all is compiled, and nothing computed."""

    def __init__(self, module: torch.nn.Module, settings: Settings, group: Group) -> None:
        self._settings, self._group = settings, group
        self._plain = module
        self._rehearsing = False
        self.compiled = 0  # regions
        self.module = torch.compile(module, backend=self._backend)

    def _backend(self, gm: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        later = self._rehearsing and bool(self._group.found) and not self._group.shares
        run = compile_region(gm, inputs, self._settings, self._group, only_find=later)
        self.compiled += 1

        def call(*args: Any) -> Any:
            return _stand_ins(gm, args) if self._rehearsing else run(*args)

        return call

    def rehearse(self, arguments: tuple[Any, ...]) -> None:
        """Compile every region that a call with these arguments reaches; what the regions would compute is
        zeros meanwhile, and buffers and generators are put back."""
        state = {name: buffer.clone() for name, buffer in self._plain.named_buffers()}
        self._rehearsing = True
        try:
            with torch.random.fork_rng():
                self.module(*arguments)
        except BackendCompilerFailed as error:
            inner = error.inner_exception
            raise inner from (error if not isinstance(inner, (BudgetError, CaptureError, ValueError)) else None)
        except Exception:  # code between regions may not take zeros; then the later ones are not known
            if not self._group.found:
                raise
        finally:
            self._rehearsing = False
            with torch.no_grad():
                for name, buffer in self._plain.named_buffers():
                    if name in state and not torch.equal(buffer, state[name]):
                        buffer.copy_(state[name])


def _stand_ins(gm: fx.GraphModule, args: tuple[Any, ...]) -> Any:
    """Zeros in the place of a graph's results; what it hands through is handed through."""
    inputs = dict(zip(gm.graph.find_nodes(op="placeholder"), args, strict=True))

    def stand_in(value: Any) -> Any:
        if not isinstance(value, fx.Node):
            return value
        if value in inputs:
            return inputs[value]
        like = value.meta.get("example_value", value.meta.get("val"))
        if not isinstance(like, torch.Tensor):
            return int(like) if isinstance(like, torch.SymInt) else like
        made = torch.zeros([int(n) for n in like.shape], dtype=like.dtype, device=like.device)
        return made.requires_grad_(like.requires_grad)

    (output,) = gm.graph.find_nodes(op="output")
    return pytree.tree_map(stand_in, output.args[0])
