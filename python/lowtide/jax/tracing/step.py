"""A step of the caller, traced by JAX: its flat equations, its plain code, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from ...frontend.errors import CaptureError
from ..compat import abstract, argument_names, device_of, has_marks, is_info
from .equations import FlatStep
from .flatten import flatten


@dataclass(frozen=True)
class Traced:
    """flat: the step's equations.  lowered: what jax.jit makes of the step, lowered.  leaves: the arguments that it was traced
    with.  structure, result: of its arguments and of its results.  device: that runs it.  marked: has the
    caller marked what may be computed again?"""

    flat: FlatStep
    lowered: Any
    leaves: list[Any]
    structure: Any
    result: Any
    result_names: list[str]
    device: Any
    name: str
    marked: bool

    def of_leaves(self, compiled: Callable[..., Any]) -> Callable[..., list[Any]]:
        """What jax.jit has compiled, as a function of flat arguments with flat results."""
        def call(*leaves: Any) -> list[Any]:
            args, kwargs = jax.tree.unflatten(self.structure, leaves)
            return jax.tree.leaves(compiled(*args, **kwargs))

        return call


class Caller:
    """A step with the arguments that jax.jit is told about it."""

    def __init__(self, step: Callable[..., Any], statics: Mapping[str, Any]) -> None:
        if not callable(step):
            raise TypeError(f"step must be the function of one training step, not {step!r}")
        jitted = hasattr(step, "trace") and hasattr(step, "lower")
        given = {name: value for name, value in statics.items() if value is not None}
        if jitted and given:
            raise ValueError(f"{', '.join(given)}: the step is a jax.jit already, which has its own; give the function inside")
        self.name = getattr(step, "__name__", type(step).__name__)
        self.step = step
        _check_donated(step, given.get("donate_argnums"))
        self._static_numbers, self._static_names = _statics(step, given.get("static_argnums"), given.get("static_argnames"))
        try:
            self._jitted: Any = step if jitted else jax.jit(step, **given)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{', '.join(given) or 'step'} of {self.name}: {error}") from error

    def split(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], Hashable]:
        """The leaves of the arguments that are traced, and a key that is equal for calls with one plan."""
        fixed = {number % max(1, len(args)) for number in self._static_numbers if -len(args) <= number < len(args)}
        static = (tuple((i, args[i]) for i in sorted(fixed)),
                  tuple((name, kwargs[name]) for name in sorted(self._static_names & kwargs.keys())))
        dynamic = (tuple(None if i in fixed else arg for i, arg in enumerate(args)),
                   {name: value for name, value in kwargs.items() if name not in self._static_names})
        leaves, tree = jax.tree.flatten(dynamic)
        return leaves, (static, tree, tuple(map(abstract, leaves)))

    def trace(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Traced:
        """Raises CaptureError for a step that cannot be traced, with the place."""
        try:
            traced = self._jitted.trace(*args, **kwargs)
            donated = [info.donated for info in jax.tree.leaves(traced.args_info, is_leaf=is_info)]
            lowered = traced.lower()
        except Exception as error:
            raise CaptureError(f"{self.name} cannot be traced: {_first_line(error)}") from error
        leaves, _ = self.split(args, kwargs)
        if len(leaves) != len(traced.jaxpr.jaxpr.invars):
            raise CaptureError(f"{self.name} is a jax.jit with static arguments: give the function inside of it, and "
                               "static_argnums or static_argnames")
        flat = flatten(traced.jaxpr, donated, argument_names(traced.args_info))
        results = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(traced.out_info)]
        structure = jax.tree.structure(traced.args_info, is_leaf=is_info)
        return Traced(flat, lowered, leaves, structure, jax.tree.structure(traced.out_info), results, device_of(leaves, self.name), self.name,
                      has_marks(traced.jaxpr.jaxpr))


def _statics(step: Callable[..., Any], numbers: Any, names: Any) -> tuple[frozenset[int], frozenset[str]]:
    """The places and the names of static arguments: as jax.jit, each follows from the other."""
    given_numbers = [] if numbers is None else [numbers] if isinstance(numbers, int) else list(numbers)
    given_names = [] if names is None else [names] if isinstance(names, str) else list(names)
    try:
        known = [p.name for p in inspect.signature(step).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):  # of a function that has none
        known = []
    if not given_names:
        given_names = [known[n] for n in given_numbers if -len(known) <= n < len(known)]
    if not given_numbers:
        given_numbers = [known.index(name) for name in given_names if name in known]
    return frozenset(given_numbers), frozenset(given_names)


def _check_donated(step: Callable[..., Any], numbers: Any) -> None:
    """Raises ValueError or TypeError for places at which the step takes no argument."""
    given = [] if numbers is None else [numbers] if isinstance(numbers, int) else numbers
    if not isinstance(given, (list, tuple)) or not all(isinstance(n, int) and not isinstance(n, bool) for n in given):
        raise TypeError(f"donate_argnums must be the place of an argument, or a tuple of them, not {numbers!r}")
    try:
        known = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):  # of a function that has none
        return
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in known)
    wrong = [n for n in given if not -count <= n < count]
    if wrong and not any(p.kind is p.VAR_POSITIONAL for p in known):
        raise ValueError(f"donate_argnums: there is no argument {wrong[0]} of {getattr(step, '__name__', step)}, which takes {count}, "
                         f"from 0 to {count - 1}")


def _first_line(error: Exception) -> str:
    """What is wrong, in one line, without JAX's links."""
    text = str(error).strip().split("\n")[0] or type(error).__name__
    return f"{type(error).__name__}: {text}"
