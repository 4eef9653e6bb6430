"""The arguments of a model, as `optimize`, `explain` and `capture` take them."""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import torch

from ..compat import pytree


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
    """`value` with each tensor in it replaced: in tuples, lists, dicts and what else pytree knows, other mutable
    mappings and dataclasses.

    All of them are copied, none is changed, and no `__init__` or `__post_init__` of a dataclass is run again.  A mapping
    that takes no assignment, or whose copy shares its items with it, is left as it is, with the tensors in it.
    """
    made: dict[int, tuple[Any, Any]] = {}  # by id: the part, kept so that the id stays its own, and its copy

    def mapped(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            return function(part)
        if id(part) in made:
            return made[id(part)][1]
        fields, items = _fields(part), _items(part)
        is_mutable = isinstance(part, MutableMapping)
        always = dataclasses.is_dataclass(part) or isinstance(part, collections.UserDict)
        if isinstance(part, type) or not (always or (is_mutable and tensors_in(part))):
            return part
        copied = _copied(part)
        made[id(part)] = part, copied
        new = {name: inside(old) for name, old in fields.items()}
        for name, old in fields.items():
            if new[name] is not old:
                object.__setattr__(copied, name, new[name])
        held = copied.data if isinstance(part, collections.UserDict) else copied
        for key, old in items.items() if is_mutable else ():
            if held[key] is not old:  # the items are what a field holds, and are replaced already
                continue
            held[key] = new[key] if fields.get(key) is old and old is not None else inside(old)
            if held[key] is not old and _items(part)[key] is held[key]:
                part[key] = old
                made[id(part)] = part, copied if fields else part
                break
        return made[id(part)][1]

    def inside(part: Any) -> Any:
        return pytree.tree_map(mapped, part)

    return inside(value)


def tensors_in(*values: Any) -> list[torch.Tensor]:
    """The tensors that map_tensors would replace, and those in mappings that it leaves as they are; nothing is copied."""
    found: list[torch.Tensor] = []
    seen: dict[int, Any] = {}  # by id, kept so that the id stays its own

    def look(value: Any) -> None:
        for part in pytree.tree_leaves(value):
            if isinstance(part, torch.Tensor):
                found.append(part)
                continue
            fields, items = _fields(part), _items(part)
            if id(part) in seen or not (fields or items):
                continue
            seen[id(part)] = part
            start = len(found)
            look(list(fields.values()))
            known = {id(t) for t in found[start:]}
            between = len(found)
            look(list(items.values()))
            found[between:] = [t for t in found[between:] if id(t) not in known]

    for value in values:
        look(value)
    return found


def _fields(part: Any) -> dict[str, Any]:
    """The fields of a dataclass that are set, also those that its `__init__` does not take; none of what else there is."""
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return {}
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if hasattr(part, f.name)}


def _items(part: Any) -> dict[Any, Any]:
    """The items of a mapping, as they are stored where that is known; none of what else there is."""
    if isinstance(part, collections.UserDict):
        return dict(part.data)
    return {key: part[key] for key in part} if isinstance(part, Mapping) else {}


def _copied(part: Any) -> Any:
    """A copy of a dataclass or mapping that does not share the dicts and lists that it holds its items in."""
    copied = copy.copy(part)
    state = getattr(copied, "__dict__", {})
    for name, value in list(state.items()):
        if isinstance(value, (dict, list, collections.UserDict)):
            state[name] = copy.copy(value)
    return copied
