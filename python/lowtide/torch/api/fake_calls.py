"""The results of a unit of FSDP2 for fake arguments: its forward with fake parameters in the place of the sharded ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..compat import pytree, sharding
from ..compat.fake import FakeTensor
from .rehearsing import attributes_kept


def fake_results(unit: torch.nn.Module, own: Callable[..., Any] | None, states: list[Any], *args: Any, **kwargs: Any) -> Any:
    """What unit(*args, **kwargs) returns, with the casts of the hooks around it.  own: its forward, if it is not that of its class.
    states: of FSDP2, of the whole model."""
    mode = next(t.fake_mode for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, FakeTensor))
    state = next(state for state in states if unit in sharding.modules_of(state))
    taken, given = sharding.casts(state)
    args, kwargs = _cast((args, kwargs), taken)
    with attributes_kept(unit, values=False), _whole(unit, states, mode):
        results = type(unit).forward(unit, *args, **kwargs) if own is None else own(*args, **kwargs)
        return _cast(results, given)


def _cast(values: Any, to: torch.dtype | None) -> Any:
    def cast(value: Any) -> Any:
        return value.to(to) if isinstance(value, torch.Tensor) and value.is_floating_point() and to is not None else value

    return pytree.tree_map(cast, values)


@contextlib.contextmanager
def _whole(unit: torch.nn.Module, states: list[Any], mode: Any) -> Iterator[None]:
    """Within, the parameters and buffers of a module are fake and whole."""
    inside = set(unit.modules())
    whole: dict[tuple[torch.nn.Module, str], torch.nn.Parameter] = {}
    for state in states:
        for group in sharding.groups_of(state):
            for parameter in group.fsdp_params:
                with mode, torch.no_grad():
                    fake = torch.empty(sharding.whole_size(parameter), dtype=sharding.types_of(parameter)[1], device=group.device)
                fake = torch.nn.Parameter(fake, requires_grad=parameter.sharded_param.requires_grad)
                whole |= {place: fake for place in sharding.places_of(parameter) if place[0] in inside}
    back: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for module in inside:
            for held in (module._parameters, module._buffers):
                for name, value in held.items():
                    if value is not None:
                        back.append((held, name, value))
                        held[name] = whole[module, name] if (module, name) in whole else mode.from_tensor(value)
        yield
    finally:
        for held, name, value in back:
            held[name] = value
