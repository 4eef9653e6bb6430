"""Dynamo: torch.compile, its state and its exceptions."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch

from .versions import before, needed, optional

with needed("tracer Dynamo"):
    from torch._dynamo import config, eval_frame, external_utils, reset, trace_rules
    from torch._dynamo.backends.registry import lookup_backend
    from torch._dynamo.convert_frame import compile_lock
    from torch._dynamo.eval_frame import OptimizedModule
    from torch._dynamo.exc import BackendCompilerFailed, TorchDynamoException
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.utils import counters

__all__ = ["CALLS", "WRAPS", "BackendCompilerFailed", "OptimizedModule", "TorchDynamoException", "backends_within", "call_by", "compile_lock", "compiled",
           "compiled_call", "compiled_whole", "counters", "frame_traced", "lookup_backend", "never_traced", "reset",
           "takes_whole_graphs"]

CALLS, WRAPS = eval_frame.__file__, external_utils.__file__  # where it calls what it has compiled, and what it wraps

_WHOLE = "_lowtide_takes_whole_graphs"
_WRAPPERS = 8  # of one backend, at most


# Within DistributedDataParallel Dynamo parts a graph at the buckets, so that gradients come bucket by bucket.
with optional("graphs that are not parted within DistributedDataParallel"):
    from torch._dynamo.backends import distributed
    from torch._dynamo.backends.distributed import DDPOptimizer

    class _WholeOrParted(DDPOptimizer):
        def __init__(self, bucket_bytes_cap: int, backend_compile_fn: Any, first_bucket_cap: int | None = None) -> None:
            self._whole = any(hasattr(backend, _WHOLE) for backend in backends_within(backend_compile_fn))
            super().__init__(bucket_bytes_cap, backend_compile_fn, bucket_bytes_cap if self._whole else first_bucket_cap)

        def compile_fn(self, gm: Any, example_inputs: Any, **rest: Any) -> Any:
            return self.backend_compile_fn(gm, example_inputs, **rest) if self._whole else super().compile_fn(gm, example_inputs, **rest)

    distributed.DDPOptimizer = _WholeOrParted  # type: ignore[misc]


def takes_whole_graphs(backend: Callable[..., Any]) -> Callable[..., Any]:
    """A backend that is to get the graphs of a module under DistributedDataParallel as they are traced."""
    setattr(backend, _WHOLE, True)
    return backend


def frame_traced() -> Any:
    """The frame that is traced in this thread now, or None."""
    try:
        return InstructionTranslator.current_tx()
    except AttributeError:
        return None


def backends_within(compiler: Any) -> Iterator[Any]:
    """What compiles, and the backends that it wraps, from the outermost to the innermost."""
    for _ in range(_WRAPPERS):
        yield compiler
        inner = getattr(compiler, "compiler_fn", None) or getattr(compiler, "backend", None) \
            or getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(compiler, "__wrapped__", None)
        if inner is None:
            return
        compiler = inner


class Compiled(OptimizedModule):
    """A compiled module whose forward has the signature of the module's own: trainers read it to choose what a batch brings."""

    def _initialize(self) -> None:
        super()._initialize()
        with contextlib.suppress(TypeError, ValueError):  # a forward without a signature
            vars(self.forward)["__signature__"] = inspect.signature(self._orig_mod.forward)

    @property
    def _compile_kwargs(self) -> dict[str, Any]:
        """The arguments with which Lightning's Fabric compiles a module again.

        Lightning replaces torch.compile to note a copy of them on the module.  A copy of a backend would be one of a copied module.
        """
        *_, backend = backends_within(self.dynamo_ctx.callback)
        return {"backend": backend}


def compiled(module: torch.nn.Module, backend: Callable[..., Any], recompile_limit: int) -> torch.nn.Module:
    """torch.compile, with at most so many variants of one function; before 2.12 that limit is one of the process, which
    is raised and stays so."""
    made = _compiled(module, backend, recompile_limit)
    made.__class__ = Compiled
    made._initialize()
    return cast(torch.nn.Module, made)


def compiled_call(module: torch.nn.Module, backend: Callable[..., Any], recompile_limit: int) -> Callable[..., Any]:
    """A compiled call of a module, as `compiled`."""
    return cast("Callable[..., Any]", _compiled(module._call_impl, backend, recompile_limit))


def call_by(module: torch.nn.Module, call: Callable[..., Any]) -> None:
    """From now on the module is called by this, as after module.compile()."""
    module._compiled_call_impl = call


def _compiled(what: Any, backend: Callable[..., Any], recompile_limit: int) -> Any:
    options: dict[str, Any] = {"recompile_limit": recompile_limit}
    if before(2, 12):
        config.recompile_limit = max(config.recompile_limit, options.pop("recompile_limit"))
    return inspect.unwrap(torch.compile)(what, backend=backend, **options)  # as it is in PyTorch


def compiled_whole(function: Callable[..., Any], backend: Callable[..., Any], recompile_limit: int) -> Callable[..., Any]:
    """torch.compile of a function without graph breaks, with at most so many variants of it (`compiled`)."""
    options: dict[str, Any] = {"recompile_limit": recompile_limit}
    if before(2, 12):
        config.recompile_limit = max(config.recompile_limit, options.pop("recompile_limit"))
    return inspect.unwrap(torch.compile)(function, backend=backend, fullgraph=True, **options)


def never_traced(*packages: str) -> None:
    """Exclude the functions of these packages from Dynamo's tracing.

    Compiled autograd has Dynamo trace the code of a planned backward, and Dynamo then compiles the functions that this code calls.
    """
    for package in packages:
        trace_rules.add(package)
