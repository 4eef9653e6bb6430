"""Random draws that can be made again: the generator's state before a draw, and the draw from that state.

A replay leaves the generator as it found it, so the numbers that the step draws afterwards are those of a
run without a plan.  Works in eager execution only: the state is read and set on the host.
"""

from __future__ import annotations

from typing import Any

import torch

from .operators import leaves

# bytes of one generator's state as a tensor (on the host for both)
STATE_BYTES = {"cpu": torch.get_rng_state().numel(), "cuda": 16}


def may_replay(node: torch.fx.Node) -> bool:
    """Does this node draw from a default generator whose state can be read and set?

    Where operators of other libraries draw from nobody knows, and cuDNN's recurrent layers keep a state of their own.
    """
    devices = {t.device.type for t in leaves(node.meta.get("val"))}
    return (len(devices) == 1 and devices <= STATE_BYTES.keys() and isinstance(node.target, torch._ops.OpOverload)
            and node.target.namespace in ("aten", "prims") and "rnn" not in node.target.name()
            and torch.Tag.nondeterministic_seeded in node.target.tags
            and node.kwargs.get("generator") is None)


def read_state(device: torch.device) -> torch.Tensor:
    """The state of the device's default generator, a uint8 tensor on the host."""
    return torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)


def replay(state: torch.Tensor, device: torch.device, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs) with the generator at `state`; the generator is put back afterwards."""
    now = read_state(device)
    _write_state(state, device)
    try:
        return function(*args, **kwargs)
    finally:
        _write_state(now, device)


def _write_state(state: torch.Tensor, device: torch.device) -> None:
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)
