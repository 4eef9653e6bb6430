"""Trace one training step into a joint forward and backward graph, without running it.

AOTAutograd traces the step on fake CPU tensors: shapes and number types flow, no memory is taken and
no kernel runs, whatever the size of the model.  No decompositions: convolution, norms, dropout, attention
and resampling (own_kernels.py) stay single ops.  Three things that plain tracing gets wrong are put right here:

* A tied weight is one parameter with one gradient.  The tracer knows parameters by name, so the step
  shows it each one once and lends it to the other places while the model runs.
* A CPU build has no attention kernel with dropout and would take it apart; the kernel that a GPU would
  choose is called by name instead (its shape rules and its derivative need no GPU).
* The module that an op belongs to, and the line that asked for it, are written on the graph's nodes
  (origins.py).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.traceback import annotate, preserve_node_meta
from torch.overrides import TorchFunctionMode

from ...frontend.errors import CaptureError
from ..compat.aot import aot_export_joint_with_descriptors
from ..compat.fake import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from ..ranks.shared import refuse_shared
from ..tensors.arguments import map_tensors, tensors_in
from ..tensors.wrapped import map_within, name_by_wrapper, unwrapped
from .origins import MODULE, at_line, mark_modules
from .own_kernels import kernels_of

LossFunction = Callable[..., Any]
Numbers = Literal["f32", "bf16", "amp"]
Built = tuple[nn.Module, tuple[Any, ...], LossFunction | None]

DTYPES = {"f32": "f32", "bf16": "bf16", "amp": "bf16 autocast"}  # the numbers to compute in, for people
_HALF = (torch.bfloat16, torch.float16)
_builtin_attention = F.scaled_dot_product_attention  # the step sees _attention under this name


class _Intercept(TorchFunctionMode):
    """Attention with dropout by its GPU kernel's name; devices other than the CPU refused.

    A fake tensor on an accelerator ends the process of a CPU build, so that is caught before.  What
    PyTorch's own functions call inside passes this by, hence the replaced name in _Step.forward as well.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        asked = [kwargs.get("device"), *args]
        if func is torch.Tensor.cuda or any(_is_accelerator(a) for a in asked):
            raise CaptureError("the model asks for an accelerator by name; capture runs on fake CPU tensors, "
                               "so write device=x.device, or leave the device out")
        with at_line(_Step.forward.__code__):
            return (_attention if func is _builtin_attention else func)(*args, **kwargs)


def _is_accelerator(value: Any) -> bool:
    if isinstance(value, str):
        return value.split(":")[0] in ("cuda", "xpu", "mps", "hpu")
    return isinstance(value, torch.device) and value.type not in ("cpu", "meta")


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None = None,
               dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
               enable_gqa: bool = False) -> torch.Tensor:
    if dropout_p == 0.0 or q.dim() != 4:
        return _builtin_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    if attn_mask is None and q.dtype in _HALF:
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0]
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill(~attn_mask, float("-inf"))
        attn_mask = attn_mask.expand(*q.shape[:3], k.shape[2])
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        q, k, v, attn_mask, True, dropout_p, is_causal, scale=scale)[0]


@contextlib.contextmanager
def _replaced_attention() -> Iterator[None]:
    F.scaled_dot_product_attention = _attention  # type: ignore[assignment]  # stubs have a builtin, without names
    try:
        yield
    finally:
        F.scaled_dot_product_attention = _builtin_attention


class _Faker:
    """Real, meta or foreign fake tensors -> fake CPU tensors of `mode`; one tensor stays one tensor."""

    def __init__(self, mode: FakeTensorMode, dtype: torch.dtype | None) -> None:
        self._mode, self._dtype = mode, dtype
        self._made: dict[int, torch.Tensor] = {}
        self._alive: list[torch.Tensor] = []  # ids stay unique while their tensors live

    def __call__(self, t: torch.Tensor) -> torch.Tensor:
        if t.layout != torch.strided or t.is_nested:
            raise CaptureError(f"a tensor of layout {t.layout} cannot be captured: only dense tensors have one storage")
        if id(t) not in self._made:
            dtype = self._dtype if self._dtype and t.is_floating_point() else t.dtype
            same = isinstance(t, FakeTensor) and t.fake_mode is self._mode and t.device.type == "cpu"
            new = t
            if unwrapped(t) is not t:
                new = self._wrapper(t)
            elif not same or dtype != t.dtype:
                with self._mode:
                    new = torch.empty_strided(t.size(), t.stride(), dtype=dtype, device="cpu")
                if isinstance(t, nn.Parameter):
                    new = nn.Parameter(new, t.requires_grad)
                else:
                    new.requires_grad_(t.requires_grad)
            self._made[id(t)] = new
            self._alive.append(t)
        return self._made[id(t)]

    def _wrapper(self, t: torch.Tensor) -> torch.Tensor:
        if self._dtype and t.is_floating_point() and t.dtype != self._dtype:
            raise CaptureError(f"a {type(t).__name__} keeps its number type: build the model in {DTYPES['bf16']}, and capture it as \"f32\"")
        new = map_within(lambda within: self(within.detach()), t)
        return nn.Parameter(new.detach(), t.requires_grad) if isinstance(t, nn.Parameter) else new.requires_grad_(t.requires_grad)

    def module(self, module: nn.Module) -> nn.Module:
        """A copy of `module` whose tensors are fake; the module itself is left as it is.

        Tensors that are plain attributes become buffers: the tracer takes no fake tensor it was not given.
        """
        refuse_shared(module, "capture", takes_parts=True)
        memo: dict[int, Any] = {}
        for part in module.modules():
            _refuse(part)
            for value in (*part._parameters.values(), *part._buffers.values(), *vars(part).values()):
                if isinstance(value, torch.Tensor):
                    memo[id(value)] = self(value)
        module = copy.deepcopy(module, memo)
        for part in module.modules():
            for key in [key for key, value in vars(part).items() if isinstance(value, torch.Tensor)]:
                part.register_buffer(key, vars(part).pop(key), persistent=False)
        return module


def _refuse(module: nn.Module) -> None:
    if hasattr(module, "_orig_mod"):
        raise CaptureError("the model went through torch.compile; capture the plain module")
    if isinstance(module, nn.RNNBase) and module.training and module.dropout and module.num_layers > 1:
        raise CaptureError(f"tracing loses the dropout between the layers of nn.{type(module).__name__}; write it as "
                           "single layers with nn.Dropout between them")


class _Step(nn.Module):
    """inputs -> (loss, what else the loss function returned, detached)."""

    def __init__(self, model: nn.Module, loss: LossFunction | None, amp: bool) -> None:
        super().__init__()
        self.model = model
        self._loss, self._amp = loss, amp
        homes: dict[int, tuple[dict[str, Any], str]] = {}
        self._ties: list[tuple[dict[str, Any], str, dict[str, Any], str]] = []
        for part in model.modules():
            for table in (part._parameters, part._buffers):
                for key, value in table.items():
                    home = homes.setdefault(id(value), (table, key))
                    if value is not None and (home[0] is not table or home[1] != key):
                        self._ties.append((table, key, *home))
        mark_modules(model)

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, nn.Parameter]]:
        return super().named_parameters(prefix, recurse, True)  # the tracer asks for every name of a tie

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, torch.Tensor]]:
        return super().named_buffers(prefix, recurse, True)

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        own = [table[key] for table, key, _, _ in self._ties]
        for table, key, home, name in self._ties:
            table[key] = home[name]
        autocast = torch.autocast("cpu", torch.bfloat16, cache_enabled=False) if self._amp else contextlib.nullcontext()
        try:
            with _Intercept(), _replaced_attention(), annotate({MODULE: "loss"}), autocast:
                result = self._loss(self.model, *inputs) if self._loss else self.model(*inputs)
        finally:
            for (table, key, _, _), value in zip(self._ties, own, strict=True):
                table[key] = value
        loss, *others = loss_and_others(result)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            got = f"shape {list(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise CaptureError(f"the loss must be a tensor with one element (or come first in a tuple); got {got}")
        if not loss.requires_grad:
            raise CaptureError("the loss depends on nothing that requires a gradient: there is no backward to capture")
        return (loss, *(t.detach() for t in tensors_in(others)))


def loss_and_others(result: Any) -> list[Any]:
    """The loss, and what comes with it: of a mapping or an object with a `loss` that one, else the first."""
    if isinstance(result, Mapping):
        parts = dict(result)
        return [parts.pop("loss"), *parts.values()] if "loss" in parts else list(parts.values()) or [None]
    if isinstance(result, (tuple, list)) and not hasattr(result, "loss"):
        return list(result) or [None]
    return [result.loss, result] if isinstance(getattr(result, "loss", None), torch.Tensor) else [result]


def trace_step(build: Callable[[], Built], dtype: str, decompositions: dict[Any, Any] | None = None,
               localize: Callable[[nn.Module], None] | None = None) -> torch.fx.GraphModule:
    """The joint graph of one training step, with descriptors on its placeholders and outputs.

    build: called with nothing while every new tensor is fake; returns the module, its inputs, and the
        loss function, which is called as loss(module, *inputs) and returns the loss or a tuple that
        begins with it.  Without a loss function the module's own result is the loss.
    dtype: "f32" (as built), "bf16" (parameters, buffers and inputs), "amp" (autocast to bf16).
    decompositions: what operators become, for a tracing that keeps no kernels whole.
    localize: makes the fake module, in place, what one rank of several runs.

    Raises CaptureError, and ValueError for another dtype.
    """
    if dtype not in tuple(DTYPES):
        raise ValueError(f"unknown dtype {dtype!r}; known are {', '.join(DTYPES)}")
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fake = _Faker(mode, torch.bfloat16 if dtype == "bf16" else None)
    try:
        with mode, _Intercept():
            built = build()
        if not (isinstance(built, tuple) and len(built) == 3 and isinstance(built[0], nn.Module)):
            raise CaptureError("the builder must return (module, inputs, loss function)")
        model, inputs, loss = built
        inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        inputs = map_tensors(fake, tuple(inputs))
        module = fake.module(model)
        if localize:
            with mode:
                localize(module)
        step = _Step(module, loss, dtype == "amp")
        with contextlib.ExitStack() as stack, mode, preserve_node_meta(), kernels_of(decompositions is not None):
            joint = aot_export_joint_with_descriptors(stack, step, inputs, decompositions=decompositions).graph_module
            name_by_wrapper(joint)
            return joint
    except CaptureError:
        raise
    except DataDependentOutputException as error:
        raise CaptureError(f"the step reads a tensor's value on the host ({error.func}, as .item() or `if tensor:` "
                           "do); on fake tensors there is none, so take the value out of the step") from error
    except DynamicOutputShapeException as error:
        raise CaptureError(f"the shape of {error.func}'s result depends on values; a plan needs fixed sizes") from error
    except UnsupportedOperatorException as error:
        raise CaptureError(f"{error.func} does not say what shape it returns (no fake implementation)") from error
    except AssertionError as error:
        if "Unexpected fake" not in str(error):
            raise CaptureError(f"tracing failed: {error}") from error
        raise CaptureError("the step uses a tensor that is none of its inputs and no parameter or buffer of the "
                           "module; make it one of these") from error
    except Exception as error:  # a user's model may raise anything
        lines = str(error).strip().splitlines() or ["no message"]
        raise CaptureError(f"tracing failed with {type(error).__name__}: {lines[0]}") from error
