"""Ties: data dependences that make XLA compute something after something else.

Where a plan computes a value again, the inputs of that computation are tied to the newest value.  Without a tie XLA would
take the two computations for one, or run the second one early.

* `barrier`: an optimization barrier over the inputs and the newest value.  Costs nothing.  XLA for CPUs removes barriers
  early, unless it is told to leave that pass out (compat.KEEPS_BARRIERS).
* `apart`: a branch that is always taken, for equations of which XLA for CPUs would make a part long before its place.
* `select`: each input is selected by a predicate that is always true, and that XLA cannot see through: the square of an odd
  number made of the newest value's bits is not 0.  For CPUs whose XLA does not take that option.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from ..compat import KEEPS_BARRIERS, is_array

APART = ("select_and_scatter_add",)  # XLA for CPUs makes indices for it, and would make them long before


def barrier(values: Sequence[Any], newest: Any) -> list[Any]:
    """The same values, which exist once the newest one does."""
    return list(jax.lax.optimization_barrier((*values, newest)))[:-1]


def select(values: Sequence[Any], newest: Any) -> list[Any]:
    """The same."""
    always = _opaque_truth(newest)
    return [jax.lax.select(jax.lax.broadcast(always, value.shape), value, jnp.zeros_like(value)) if is_array(value.aval) else value
            for value in values]


def _opaque_truth(newest: Any) -> Any:
    first = jax.lax.reshape(newest, (newest.size,))[:1].astype(jnp.float32)
    odd = jax.lax.bitcast_convert_type(first, jnp.int32)[0] | 1
    return odd * odd != jnp.int32(0)


def apart(function: Callable[..., list[Any]], arguments: Sequence[Any], newest: Any) -> list[Any]:
    """The function's results, computed in a branch that is always taken."""
    def others(*given: Any) -> list[Any]:
        return [jnp.zeros(made.shape, made.dtype) for made in jax.eval_shape(function, *given)]

    return list(jax.lax.cond(_opaque_truth(newest), function, others, *arguments))


@dataclass(frozen=True)
class Ties:
    """tie: how values are tied.  free: does it cost nothing?  Then everything is tied from the first recomputation on, so that
    XLA keeps the plan's order there.  apart: are equations of APART computed in a branch?  options: for the compiler."""

    tie: Callable[[Sequence[Any], Any], list[Any]]
    free: bool
    apart: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def ties_on(platform: str) -> Ties:
    """How to tie on this platform."""
    if platform != "cpu":
        return Ties(barrier, True)
    return Ties(barrier, True, True, KEEPS_BARRIERS) if _barriers_stay() else Ties(select, False)


@functools.lru_cache(maxsize=1)
def _barriers_stay() -> bool:
    """Does XLA for this CPU leave barriers where they are if it is told to?"""
    try:
        lowered = jax.jit(lambda x: barrier([jnp.sin(x)], x)[0]).lower(jax.ShapeDtypeStruct((8,), jnp.float32))
        return "opt-barrier" in str(lowered.compile(compiler_options=dict(KEEPS_BARRIERS)).as_text())
    except Exception:  # of any kind, of a version that does not know the option
        return False
