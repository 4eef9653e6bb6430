"""What a model is called with, as `optimize`, `explain` and `capture` take it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree


def arguments(inputs: Any, kwargs: Mapping[str, Any] | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments.

    inputs: a tuple or a list of arguments, a mapping of keyword arguments (a dict, or the batch that a tokenizer
        makes), or one argument of another kind.  kwargs: further keyword arguments.

    Raises TypeError for keywords that are no strings, or are given twice.
    """
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"kwargs must be a mapping of keyword arguments, not {type(kwargs).__name__}")
    named = dict(kwargs or {})
    if isinstance(inputs, Mapping):
        twice = sorted(map(str, set(inputs) & set(named)))
        if twice:
            raise TypeError(f"{', '.join(twice)}: given as an input and in kwargs, too")
        given, named = (), dict(inputs) | named
    else:
        is_one = not isinstance(inputs, (tuple, list)) or hasattr(inputs, "_fields")
        given = (inputs,) if is_one else tuple(inputs)
    wrong = [key for key in named if not isinstance(key, str)]
    if wrong:
        raise TypeError(f"a mapping in the place of inputs is keyword arguments, and {wrong[0]!r} is no name; a dict "
                        "that is one argument goes into a tuple: (batch,)")
    return given, named


def map_tensors(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """`value` with each tensor in it replaced: in tuples, lists, dicts and what else pytree knows, other mappings
    and dataclasses."""
    def mapped(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            return function(part)
        if dataclasses.is_dataclass(part) and not isinstance(part, type):
            fields = {f.name: map_tensors(function, getattr(part, f.name)) for f in dataclasses.fields(part) if f.init}
            return dataclasses.replace(part, **fields)
        if isinstance(part, collections.UserDict):
            made = part.copy()
            made.data = map_tensors(function, dict(part.data))
            return made
        return part

    return pytree.tree_map(mapped, value)


def tensors_in(*values: Any) -> list[torch.Tensor]:
    """The tensors that map_tensors would replace."""
    found: list[torch.Tensor] = []
    for value in values:
        map_tensors(lambda t: found.append(t) or t, value)
    return found
