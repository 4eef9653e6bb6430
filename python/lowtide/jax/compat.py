"""What Lowtide needs of JAX that is private or differs between its versions; no other file names it."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

try:
    import jax
    from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var
except ImportError as error:  # missing, or too old to have this
    raise ImportError("lowtide.jax needs JAX 0.5 or later, which is missing or older here: "
                      f"pip install 'lowtide[jax]' ({error})") from error

from ..frontend.errors import CaptureError

__all__ = ["KEEPS_BARRIERS", "BindContext", "ClosedJaxpr", "Jaxpr", "Literal", "Var", "abstract", "argument_names", "array_key",
           "bind", "closed", "context_of", "copied", "device_of", "get_aval", "has_marks", "inner_jaxprs", "is_array", "is_info", "is_tracer", "nbytes", "raw", "scope_of", "shape_of", "sub_jaxpr"]

BindContext = Any  # of an equation: the precision, where it computes and the like

# Makes XLA for CPUs leave optimization barriers where they are until its code is scheduled.
KEEPS_BARRIERS: dict[str, Any] = {"xla_disable_hlo_passes": "cse_barrier_expander"}

# What is replaced by what it calls, with the parameter that has the jaxpr.
_CALLS = {"pjit": "jaxpr", "jit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
          "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr",
          "remat2": "jaxpr", "checkpoint": "jaxpr", "remat": "jaxpr"}

_MARKS = ("remat2", "checkpoint", "remat")


def sub_jaxpr(equation: Any) -> tuple[Any, Sequence[Any]] | None:
    """The jaxpr that a call applies to the equation's inputs, with its constants; None if the equation is no call."""
    found = equation.params.get(_CALLS.get(equation.primitive.name, ""))
    if isinstance(found, ClosedJaxpr):
        return found.jaxpr, found.consts
    return (found, ()) if isinstance(found, Jaxpr) else None


def context_of(equation: Any) -> BindContext | None:
    """The context in which an equation was traced."""
    return getattr(equation, "ctx", None)


def scope_of(equation: Any) -> str:
    """The name stack of an equation."""
    return str(getattr(equation.source_info, "name_stack", ""))


def bind(primitive: Any, params: dict[str, Any], arguments: Sequence[Any], context: BindContext | None) -> list[Any]:
    """The results of a primitive, as a list."""
    left = primitive.get_bind_params(params)
    functions: Sequence[Any] = ()
    if isinstance(left, tuple):  # before 0.10
        functions, left = left
    with context.manager if context is not None else contextlib.nullcontext():
        results = primitive.bind(*functions, *arguments, **left)
    return list(results) if primitive.multiple_results else [results]


def get_aval(value: Any) -> Any:
    """The shape and number type of an array, with what else JAX tells apart."""
    return jax.typeof(value)


def abstract(leaf: Any) -> Hashable:
    """Equal for arguments that one executable takes.  Raises CaptureError for what is no array of known shape."""
    try:
        aval = jax.typeof(leaf)
    except TypeError:  # a ShapeDtypeStruct, which stands for an array
        aval = leaf
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        raise CaptureError(f"an argument of the step is the {type(leaf).__name__} {leaf!r}, and no array: name it in static_argnums or "
                           "static_argnames")
    wrong = next((extent for extent in aval.shape if not isinstance(extent, int)), None)
    if wrong is not None:
        raise CaptureError(f"an argument of the step has the open dimension {wrong}: plan for shapes that are known; others are planned at "
                           "their first call")
    return tuple(aval.shape), str(aval.dtype), getattr(aval, "weak_type", False)


def is_info(leaf: Any) -> bool:
    """Is it what JAX says of an argument (an ArgInfo)?  Objects of libraries may have all of its attributes."""
    return isinstance(leaf, jax.stages.ArgInfo)


def argument_names(args_info: Any) -> list[str]:
    """The names of a step's traced arguments, for people: "args[0]['w']", "kwargs['x']"."""
    paths = jax.tree_util.tree_leaves_with_path(args_info, is_leaf=is_info)
    return [("args" if path[0].idx == 0 else "kwargs") + jax.tree_util.keystr(path[1:]) for path, _ in paths]


def device_of(leaves: Sequence[Any], name: str) -> Any:
    """The device that the arguments lie on, by default JAX's.  Raises CaptureError for several."""
    devices: set[Any] = set()
    for leaf in leaves:
        sharding = getattr(leaf, "sharding", None)
        if sharding is not None and getattr(leaf, "committed", True):
            devices |= set(sharding.device_set)
    if len(devices) > 1:
        raise CaptureError(f"the arguments of {name} lie on {len(devices)} devices; lowtide.jax plans steps of one: put them there "
                           "with jax.device_put")
    return devices.pop() if devices else jax.devices()[0]


def nbytes(array: Any, value: Any) -> int:
    """The bytes that an array holds; of keys of random numbers, which do not say it, those of the value."""
    return int(array.nbytes) if is_array(value.aval) and hasattr(array, "nbytes") else int(value.bytes)


def closed(jaxpr: Any) -> Any:
    """A closed jaxpr of one without constants."""
    return ClosedJaxpr(jaxpr, ())


def shape_of(aval: Any) -> Any:
    """What stands for an array of this shape and type while a function is traced."""
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def has_marks(jaxpr: Any) -> bool:
    """Does it have what jax.checkpoint makes of a function, at any depth?"""
    return any(e.primitive.name in _MARKS or any(map(has_marks, inner_jaxprs(e.params))) for e in jaxpr.eqns)


def raw(array: Any) -> Any:
    """The numbers of an array, also of keys."""
    return array if not hasattr(array, "dtype") or not jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended) else jax.random.key_data(array)


def copied(leaf: Any) -> Any:
    """A copy of an argument's array."""
    return jax.numpy.copy(leaf) if isinstance(leaf, jax.Array) else leaf


def is_tracer(leaf: Any) -> bool:
    return isinstance(leaf, jax.core.Tracer)


def is_array(aval: Any) -> bool:
    """Is it an ordinary array, not a key of random numbers or a token?"""
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and not jax.dtypes.issubdtype(dtype, jax.dtypes.extended)


def inner_jaxprs(params: dict[str, Any]) -> list[Any]:
    """The jaxprs of an equation's loops and branches, without those that have captured arrays."""
    found = []
    for value in params.values():
        for one in value if isinstance(value, (tuple, list)) else [value]:
            jaxpr = one.jaxpr if isinstance(one, ClosedJaxpr) else one
            if isinstance(jaxpr, Jaxpr) and not jaxpr.constvars:
                found.append(jaxpr)
    return found


def array_key(value: Any) -> Any:
    """Equal for equal literals: a number, or the bytes of a small array."""
    return getattr(value, "dtype", type(value)), np.asarray(value).tobytes()
