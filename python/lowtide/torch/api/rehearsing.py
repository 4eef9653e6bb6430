"""A call of a module in which nothing is computed: what it may not change, and zeros in the place of results."""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from ..compat import pytree
from ..compat.tensors import is_dense
from ..tensors.arguments import map_tensors, tensors_in
from ..tensors.wrapped import map_within

_OF_TORCH = (set(vars(torch.nn.Module())) - {"training"}) | {"forward"}  # attributes of a module that hold its parts and hooks

def gpus_of(module: torch.nn.Module, given: Any, named: Any) -> list[int]:
    """The GPUs whose generators a step may draw from: those of its tensors, and the current one."""
    if not torch.cuda.is_available():
        return []
    tensors = [*module.parameters(), *module.buffers(), *tensors_in(given, named)]
    return sorted({torch.cuda.current_device(), *(t.device.index for t in tensors if t.is_cuda)})


@contextlib.contextmanager
def generators_kept(module: torch.nn.Module) -> Iterator[None]:
    """Restores the generators of Python and NumPy afterwards, and those that a module's code refers to by name."""
    numpy = sys.modules.get("numpy")
    back: list[Callable[[], object]] = [functools.partial(random.setstate, random.getstate())]
    if numpy:
        back.append(functools.partial(numpy.random.set_state, numpy.random.get_state()))
    for held in _named_in_code(module):
        if isinstance(held, torch.Generator):
            back.append(functools.partial(held.set_state, held.get_state()))
        elif isinstance(held, random.Random):
            back.append(functools.partial(held.setstate, held.getstate()))
        elif numpy and isinstance(held, numpy.random.Generator):
            back.append(functools.partial(setattr, held.bit_generator, "state", held.bit_generator.state))
    try:
        yield
    finally:
        for put in back:
            put()


def _named_in_code(module: torch.nn.Module) -> Iterator[Any]:
    """The variables outside the forwards of a module and its submodules: globals, and locals of enclosing functions."""
    seen: set[Any] = set()
    for part in module.modules():
        forward = inspect.unwrap(getattr(part.forward, "__func__", part.forward))
        if forward in seen or not inspect.isfunction(forward):
            continue
        seen.add(forward)
        for cell in forward.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                yield cell.cell_contents
        for name in forward.__code__.co_names:
            if name in forward.__globals__:
                yield forward.__globals__[name]


def copied_arguments(values: Any) -> Any:
    """The same arguments; tensors are copied if the tracer cannot tell the copy from the original."""
    made: dict[int, torch.Tensor] = {}

    def copied(value: torch.Tensor) -> torch.Tensor:
        if type(value) is not torch.Tensor or not is_dense(value):
            return value
        if id(value) not in made:
            made[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
        return made[id(value)]

    return map_tensors(copied, values)


def _zeros(like: torch.Tensor) -> torch.Tensor:
    return torch.zeros([int(n) for n in like.shape], dtype=like.dtype, device=like.device)


def stand_ins(gm: fx.GraphModule, args: tuple[Any, ...]) -> Any:
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
        return map_within(_zeros, like).detach().requires_grad_(like.requires_grad)

    (output,) = gm.graph.find_nodes(op="output")
    return pytree.tree_map(stand_in, output.args[0])


@contextlib.contextmanager
def attributes_kept(module: torch.nn.Module, values: bool = True) -> Iterator[None]:
    """Restores the attributes of a module and of its submodules afterwards, and what is in their lists, dicts and sets; values: the
    values of buffers, too.  Parameters, submodules and hooks are not looked at."""
    parts = list(module.modules())
    before = [{name: value for name, value in vars(part).items() if name not in _OF_TORCH} for part in parts]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()] if values else []
    held = [dict(part._buffers) for part in parts]
    for part, attributes in zip(parts, before, strict=True):
        vars(part).update({name: _apart(value) for name, value in attributes.items()})
    try:
        yield
    finally:
        for part, attributes, of in zip(parts, before, held, strict=True):
            for name in set(vars(part)) - _OF_TORCH - set(attributes):
                del vars(part)[name]
            vars(part).update(attributes)
            part._buffers.clear()
            part._buffers.update(of)
        with torch.no_grad():
            for buffer, value in buffers:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)


def _apart(value: Any) -> Any:
    """The same lists, dicts and sets, changes of which leave the original's as they are; all else is the original."""
    if type(value) is dict:
        return {key: _apart(item) for key, item in value.items()}
    if type(value) in (list, set, tuple):
        return type(value)(map(_apart, value))
    return value
