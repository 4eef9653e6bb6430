"""An optimizer's state at home on the host: it is copied to the device for its update, and back afterwards.

Between steps `optimizer.state` has tensors on the host, so `state_dict()` saves them as usual.  While a state is on the device,
the optimizer's entry refers to that tensor, and nothing is lost if a step fails: the next step begins by copying back what is
not on the host, as it does with a state that was loaded or made by ordinary steps.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch

import lowtide

from ..device.host import host_of
from ..runtime.transfers import Coming, Leaving

Name = tuple[torch.Tensor, str]  # a parameter, and what its optimizer calls one tensor of its state


class HostStates:
    """The host states of one optimizer."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._homes: dict[tuple[int, str], torch.Tensor] = {}  # of what is on the device
        self._coming: dict[tuple[int, str], Coming] = {}
        self._leaving: dict[tuple[int, str], Leaving] = {}
        hook = optimizer.register_state_dict_pre_hook(_wait_for_copies)
        weakref.finalize(self, hook.remove)

    def go_home(self, names: Iterable[Name]) -> None:
        """Copy home what is not there, one after the other."""
        self._coming.clear()
        self._leaving.clear()
        for p, name in names:
            state = self._optimizer.state[p] if p in self._optimizer.state else {}
            if name in state and not _is_home(p, state[name]):
                state[name] = self._home(p, name, state[name]).copy_(state[name])
        self._homes.clear()

    def fetch(self, p: torch.Tensor, name: str) -> None:
        """Take memory on the device, and begin the copy there; before the first update there is nothing to copy."""
        if p in self._optimizer.state:
            home = self._optimizer.state[p][name]
            self._homes[id(p), name] = home
            self._coming[id(p), name] = Coming(_bytes(home), list(home.shape), list(home.stride()), home.storage_offset(),
                                               home.dtype, p.device)

    def arrive(self, p: torch.Tensor) -> None:
        """The parameter's update runs next: wait for what has been fetched."""
        for key in [key for key in self._coming if key[0] == id(p)]:
            self._optimizer.state[p][key[1]] = self._coming.pop(key).land()

    def leave(self, p: torch.Tensor, name: str) -> None:
        """Begin the copy home."""
        now = self._optimizer.state[p][name]
        home = self._homes[id(p), name] = self._home(p, name, now)
        self._leaving[id(p), name] = Leaving(now, _bytes(home))

    def gone(self, p: torch.Tensor, name: str) -> None:
        """Wait for that copy, and give up what is on the device; where it was fetched for nothing, home has it still."""
        key = id(p), name
        coming, leaving, home = self._coming.pop(key, None), self._leaving.pop(key, None), self._homes.pop(key, None)
        for copy in (coming, leaving):
            if copy is not None:
                copy.land()
        if home is not None:
            if coming is None and leaving is None:
                raise lowtide.InternalError(f"{name}: what an update has made is given up before it is home")
            self._optimizer.state[p][name] = home
        if leaving is not None:
            leaving.give_up()

    def _home(self, p: torch.Tensor, name: str, now: torch.Tensor) -> torch.Tensor:
        """A tensor on the host for what is on the device `now`: where it has come from, if it is as large as that."""
        known = self._homes.get((id(p), name))
        if known is not None and (known.shape, known.stride(), known.dtype) == (now.shape, now.stride(), now.dtype):
            return known
        memory, _ = host_of(p.device).take(now.untyped_storage().nbytes())
        return torch.empty(0, dtype=now.dtype).set_(memory.untyped_storage(), now.storage_offset(), now.shape, now.stride())


def _is_home(p: torch.Tensor, now: torch.Tensor) -> bool:
    return now.device.type == "cpu" and host_of(p.device).place_of(_bytes(now)) is not None


def _bytes(t: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())


def _wait_for_copies(optimizer: torch.optim.Optimizer) -> None:
    """Who reads a state on the host reads what its last copy home has made."""
    for device in {p.device for group in optimizer.param_groups for p in group["params"] if p.is_cuda}:
        torch.cuda.synchronize(device)
