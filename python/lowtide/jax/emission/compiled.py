"""The executable that XLA makes of a function, and its memory by XLA's own count."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from ...frontend.errors import CaptureError


@dataclass(frozen=True)
class Executable:
    """call: runs it on flat arguments.  total: temporaries + arguments + outputs - aliases, in bytes.  arguments: of these,
    the arguments.  seconds: that XLA took."""

    call: Callable[..., Any]
    total: int
    arguments: int
    seconds: float


def executable_of(lowered: Any, options: dict[str, Any] | None = None) -> Executable:
    """Compile what was lowered.  Raises CaptureError where XLA gives no account of its memory."""
    began = time.perf_counter()
    compiled = lowered.compile(compiler_options=options) if options else lowered.compile()
    seconds = time.perf_counter() - began
    account = compiled.memory_analysis()
    if account is None:
        raise CaptureError("XLA gives no account of the memory of its code here (compiled.memory_analysis()), so no budget "
                           "can be kept; the backends for CPU, GPU and TPU give one")
    total = (account.temp_size_in_bytes + account.argument_size_in_bytes + account.output_size_in_bytes
             - account.alias_size_in_bytes)
    return Executable(compiled, int(total), int(account.argument_size_in_bytes), seconds)


def lowered(function: Callable[..., Any], leaves: Sequence[Any], donated: Sequence[bool]) -> Any:
    """A function of flat arguments, lowered for these leaves."""
    numbers = tuple(i for i, given_up in enumerate(donated) if given_up)
    return jax.jit(function, donate_argnums=numbers).lower(*leaves)
