"""What copies between a device and its host take, measured once for each device and kept with the times of kernels."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch

from ... import cache
from ..costs import identity, untraced
from .host import Host

_FORMAT = 2  # to be raised when what is measured, or how, changes: older figures are not believed
_LARGE, _SMALL = 1 << 26, 1 << 12  # bytes: of a copy that runs at the link's rate, and of one that is all latency
_RUNS = 7


@functools.cache
def measured_link(device: torch.device) -> tuple[int, int]:
    """Bytes a second of a direction while both are busy, and the latency of a transfer in ns."""
    file = cache.path_of("costs", "link", _FORMAT, *identity(device))
    known = cache.read(file)
    if not (isinstance(known, list) and len(known) == 2 and all(isinstance(n, int) and n >= 0 for n in known) and known[0]):
        with untraced(device):  # a plan is made while the step is traced, where a copy would be of fake tensors
            known = _measured(device)
        cache.write(file, known)
    rate, latency = known
    return rate, latency


def _measured(device: torch.device) -> tuple[int, int]:
    host = Host(2 * _LARGE + 2 * _SMALL if device.type == "cuda" else 0)
    small, large = (_seconds_of_both(host, size, device) for size in (_SMALL, _LARGE))
    host.close()
    if not large > small:
        raise RuntimeError(f"a copy of {_LARGE} bytes to the host and back takes {large:.2e} s, one of {_SMALL} bytes "
                           f"{small:.2e} s: the link to the host cannot be measured here; say what it is by link=")
    return max(1, int((_LARGE - _SMALL) / (large - small))), int(1e9 * small)


def _seconds_of_both(host: Host, size: int, device: torch.device) -> float:
    """Seconds until copies of so many bytes have gone both ways at once: a plan keeps both directions busy, and on most
    machines each is slower then."""
    leaving, coming = (torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2))
    (there, _), (back, _) = host.take(size), host.take(size)
    if device.type != "cuda":
        # a CPU has one thread for both, and a transfer is charged to one lane
        return max(_seconds(lambda: there.copy_(leaving), device), _seconds(lambda: coming.copy_(back), device))
    out, home = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def copy_both() -> None:
        with torch.cuda.stream(out):
            there.copy_(leaving, non_blocking=True)
        with torch.cuda.stream(home):
            coming.copy_(back, non_blocking=True)

    torch.cuda.synchronize(device)  # what fills the tensors is in another stream
    return _seconds(copy_both, device)


def _seconds(copy: Callable[[], object], device: torch.device) -> float:
    """The lower quartile of some runs after a first: whatever else the machine does only adds."""
    times = []
    for _ in range(_RUNS + 1):
        began = time.perf_counter()
        copy()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return sorted(times[1:])[_RUNS // 4]
