"""What a kernel costs: ns and workspace, measured on the device or from a roofline model of a named one.

Measured: every distinct kernel once (operator, shapes, strides, number types, other arguments), warmed up,
the lower quartile of a few runs (whatever else the machine does only adds), on tensors made for that; kept on disk under a key of device, driver and
torch version.  The generators of random numbers are left as they were.  A kernel that cannot be run alone
gets the roofline's figure, scaled by what others of this device took, and so do, under "auto", those that
come when the time for measuring is used up.  Such a figure is kept like a measured one, so that the same
step is priced the same the next time, and its plan is found again.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import cache
from .operators import DTYPES, Kernel, touched_bytes
from .roofline import DEVICES, Device, kernel_ns

_RUNS = 9  # at most, after one that is not counted
_LEAST = 3
_ENOUGH = 0.02  # seconds of runs of one kernel after which there are no more
_LIMIT = 2.0  # seconds for the measurements of one region under "auto"
_TOO_LONG = 0.2  # seconds beyond which "auto" scales an estimate: large kernels scale well

aten = torch.ops.aten
_CONVOLUTIONS = (aten.convolution, aten.convolution_backward)
# A CPU core or two, for kernels that are not measured there.
_CPU = Device("CPU", {"f64": 2e10, "f32": 5e10, "tf32": 5e10, "bf16": 2e10, "f16": 2e10}, 1e10, 0, fixed=3000)


def check_costs(costs: str) -> None:
    """Raises ValueError unless `costs` is one of

    "auto"      measured for some seconds where the tensors are real, else the roofline of an A100
    "measured"  measured, every kernel
    "flops"     matrix operations alone, a tick each
    "cpu", or a name of roofline.DEVICES: estimated
    """
    known = ("auto", "measured", "flops", "cpu", *DEVICES)
    if costs not in known:
        raise ValueError(f"unknown costs {costs!r}; known are {', '.join(known)}")


def pricing(costs: str, device: torch.device, real: bool) -> Callable[..., tuple[int, int]]:
    """The price function that lowering.lower takes; costs: as of check_costs; real: can kernels run?"""
    check_costs(costs)
    if costs == "measured" or (costs == "auto" and real):
        return Measured(device, _LIMIT if costs == "auto" else float("inf"))
    if costs == "flops":
        return lambda kernel: (kernel.flops, 0)
    return Roofline(_CPU if costs == "cpu" else DEVICES["a100" if costs == "auto" else costs])


class Roofline:
    """Times of a device's data sheet (roofline.py); no workspaces."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __call__(self, kernel: Kernel) -> tuple[int, int]:
        tensors = [*kernel.read, *kernel.written]
        floats = [t.dtype for t in tensors if t.dtype.is_floating_point or t.dtype.is_complex]
        dtype = DTYPES.get(floats[0], "f32") if floats else "f32"
        if dtype == "f32" and kernel.target.overloadpacket in _CONVOLUTIONS:
            dtype = "tf32"
        moved = touched_bytes(kernel.read) + touched_bytes(kernel.written)
        return kernel_ns(self._device, kernel.flops, dtype, moved), 0


class Measured:
    """Times and workspaces of this machine's device."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        self._device, self._left = device, seconds
        self._file = cache.path_of("costs", *_identity(device))
        self._known: dict[str, list[int]] = cache.read(self._file) or {}
        self._roofline = Roofline(_CPU if device.type == "cpu" else DEVICES["a100"])
        self._ratios: list[float] = []  # measured over estimated, of the kernels measured here
        self._new = False

    def __call__(self, kernel: Kernel) -> tuple[int, int]:
        key = _key(kernel)
        if key not in self._known:
            estimate, _ = self._roofline(kernel)
            scaled = int(estimate * (statistics.median(self._ratios) if self._ratios else 1))
            worth = self._left == float("inf") or (self._left > 0 and scaled < _TOO_LONG * 1e9)
            found = self._measure(kernel) if worth else None
            if found:
                self._ratios.append(found[0] / estimate)
            else:
                found = scaled, 0
            self._known[key] = list(found)
            self._new = True
        ns, workspace = self._known[key]
        return ns, workspace

    def save(self) -> None:
        """Keep what was measured on disk."""
        if self._new:
            cache.write(self._file, (cache.read(self._file) or {}) | self._known)
            self._new = False

    def _measure(self, kernel: Kernel) -> tuple[int, int] | None:
        began = time.perf_counter()
        try:
            with torch.no_grad(), _untraced(), torch.random.fork_rng(
                    [self._device] if self._device.type == "cuda" else []):
                args, kwargs = _materialise((kernel.args, kernel.kwargs), self._device)
                return self._time(lambda: kernel.target(*args, **kwargs))
        except Exception:  # noqa: BLE001: any kernel may refuse made-up numbers
            return None
        finally:
            self._left -= time.perf_counter() - began

    def _time(self, run: Callable[[], Any]) -> tuple[int, int]:
        gpu = self._device.type == "cuda"
        if gpu:
            torch.cuda.synchronize(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
            before = torch.cuda.memory_allocated(self._device)
        result = run()
        workspace = 0
        if gpu:
            torch.cuda.synchronize(self._device)
            after = torch.cuda.memory_allocated(self._device)
            workspace = max(0, torch.cuda.max_memory_allocated(self._device) - max(after, before))
        del result
        times: list[float] = []
        while len(times) < _LEAST or (len(times) < _RUNS and sum(times) < _ENOUGH):
            began = time.perf_counter()
            run()
            if gpu:
                torch.cuda.synchronize(self._device)
            times.append(time.perf_counter() - began)
        return max(1, int(sorted(times)[len(times) // 4] * 1e9)), workspace


def _identity(device: torch.device) -> tuple[Any, ...]:
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return ("cuda", properties.name, properties.total_memory, torch.version.cuda, torch.__version__)
    return (device.type, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads(), torch.__version__)


def _key(kernel: Kernel) -> str:
    def of(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return (tuple(map(int, value.shape)), tuple(map(int, value.stride())), str(value.dtype))
        return value

    return repr((str(kernel.target), pytree.tree_map(of, (kernel.args, kernel.kwargs))))


@contextlib.contextmanager
def _untraced() -> Any:
    """Real kernels, whatever is being traced around."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), unset_fake_temporarily(), disable_proxy_modes_tracing():
        yield


def _materialise(tree: Any, device: torch.device) -> Any:
    """Real tensors in the place of fake ones, of numbers that any kernel takes."""

    def real(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        size = [int(n) for n in value.shape]
        made = torch.empty_strided(size, [int(n) for n in value.stride()], dtype=value.dtype, device=device)
        return made.fill_(0.5) if value.dtype.is_floating_point or value.dtype.is_complex else made.zero_()

    return pytree.tree_map(real, tree)
