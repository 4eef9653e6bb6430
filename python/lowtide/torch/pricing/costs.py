"""The cost of a kernel: time, workspace and bytes of its results, measured, or from a roofline model of a named device.

Every distinct kernel (operator, shapes, strides, number types, other arguments) is measured once, on tensors made for the
measurement:

* Time: the lower quartile of a few runs after a warm-up run, since other activity of the machine only adds time.  On a GPU
  the time between events around calls that the host has queued before the first of them runs.  So launches cost nothing,
  as in a step that keeps the device busy.  A kernel of a millisecond or more is timed once there.
* Workspace: the rise of the device's memory during a run, without the results.
* Bytes of the results' storages, which may be larger than the results: on a CPU the mean of mse_loss is one number in a
  storage as large as the input.

All three are cached on disk under a key of device, driver, torch version and _FORMAT.  A kernel that failed is tried again
at the next start.  Measurements restore the random generators and leave profilers alone.  A GPU's peak statistics change
only by the memory of the kernels that run.

Collectives and other operators with side effects never run to be priced (effects.py).  The time of a collective is that of the
bytes that it sends over the device's link to its peers, behind the link's latency (ranks/collectives.py); waiting for it takes no
time of its own.  Its memory is counted where it is lowered.

A kernel that cannot run alone gets the roofline's time, scaled by the measured times of other kernels on the device.  With
"auto", large kernels run once on a CPU, for time and workspace.  The kernels with the largest estimated total time in the step
are measured first.  When the time for measurements is used up, the other times are scaled estimates.  A large kernel is then
assumed to need no workspace if other kernels of its operator needed none.  Estimates are cached like measurements, so that the
same step has the same prices next time, and its plan is found again.  Memory is measured wherever kernels can run, also if
times are estimated.
"""

from __future__ import annotations

import operator
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import lowtide

from ... import cache
from ...frontend import progress
from ...frontend.roofline import DEVICES, collective_ns, kernel_ns, sheet_of
from ..compat import pytree
from ..compat.cuda import wait
from ..device.allocations import in_own_thread
from ..device.identity import identity, untraced
from ..device.meter import workspace
from ..ranks.collectives import bytes_sent, is_wait
from ..tensors.effects import communicates, is_of_pytorch, may_be_priced
from ..tensors.operators import DTYPES, Kernel, flagged_as, flags_of, leaves, touched_bytes
from ..tensors.storages import bytes_of, storage

_FORMAT = 6  # to be raised when what is measured, or how, becomes something else: older figures are not believed
_RUNS = 9  # at most, after one that is not counted
_LEAST = 3
_ENOUGH = 0.02  # seconds of runs of one kernel after which there are no more
_QUEUED = 16  # calls at most between two events on a GPU
_LONG = 1_000_000  # ns of a kernel whose time on a GPU one run tells
_QUEUEING = 50_000  # ns in which the host has queued one call
_LIMIT = 1.0  # seconds for the times of one graph under "auto", and for what workspaces may be spared

aten = torch.ops.aten
_CONVOLUTIONS = (aten.convolution, aten.convolution_backward)


def _all_rows(named: dict[str, Any]) -> int:
    """The rows that the groups of a product divide among them, from its arguments."""
    left, right = named["self"], named["mat2"]
    return left.shape[0] if right.dim() == 3 else right.shape[-1] if left.dim() == 3 else left.shape[-1]


# Arguments that an operator reads on the host, though its fake kernel says that they lie on the device: the seeds that the
# forward of attention has drawn.
_ON_HOST = {
    aten._scaled_dot_product_efficient_attention_backward.default: ("philox_seed", "philox_offset"),
    aten._efficient_attention_backward.default: ("philox_seed", "philox_offset"),
}
# Arguments that are rows of a table, with the number of its rows: equal ones would be added up one after the other.
_ROWS: dict[Any, tuple[str, Callable[[dict[str, Any]], int]]] = {
    aten.embedding.default: ("indices", lambda named: named["weight"].shape[0]),
    aten.embedding_dense_backward.default: ("indices", lambda named: named["num_weights"]),
    aten.index_select.default: ("index", lambda named: named["self"].shape[named["dim"]]),
}
# Arguments that count elements: of none a kernel makes nothing.  It takes the most where no bag of embeddings is empty,
# and one group of rows has them all.
_MOST: dict[str, Callable[[dict[str, Any]], int]] = {"bag_size": lambda _: 1, "offs": _all_rows}


# Operators -> what puts numbers into made-up arguments with which the operator has the most to do.
_FILLED: dict[Any, Callable[[Any], None]] = {}


def enter_made_up(target: Any, fill: Callable[[Any], None]) -> None:
    """Have `fill` put numbers into the made-up arguments of an operator."""
    _FILLED[target] = fill


def check_costs(costs: str) -> None:
    """Raises ValueError unless `costs` is one of

    "auto"      measured for some seconds where the tensors are real, else the roofline of an A100
    "measured"  measured, every kernel
    "flops"     matrix operations alone, a tick each
    a name of roofline.DEVICES: estimated
    """
    known = ("auto", "measured", "flops", *DEVICES)
    if costs not in known:
        raise ValueError(f"unknown costs {costs!r}; known are {', '.join(known)}")


def pricing(costs: str, device: torch.device, real: bool, by_clock: bool = True) -> Prices:
    """The price function that lowering.lower takes; costs: as of check_costs; real: can kernels run?  by_clock: may the time that
    measuring takes decide what is measured?"""
    check_costs(costs)
    real = real or costs == "measured"
    if costs == "measured" or (costs == "auto" and real):
        return Prices(device, None, _LIMIT if costs == "auto" else float("inf"), real)
    limit = _LIMIT if by_clock else float("inf")
    if costs == "flops":
        return Prices(device, lambda kernel: kernel.flops, limit, real)
    return Prices(device, roofline(DEVICES["a100" if costs == "auto" else costs]), limit, real)


def known_as(device: torch.device) -> str:
    """The name in roofline.DEVICES of this device, or of the card that it is like; of an A100 for a GPU that is not there."""
    if device.type != "cuda" or not torch.cuda.is_available():
        return "cpu" if device.type == "cpu" else "a100"
    card = torch.cuda.get_device_properties(device)
    return sheet_of(card.name, card.total_memory, (card.major, card.minor))


def roofline(device: lowtide.Device) -> Callable[[Kernel], int]:
    """Estimates the ns of a kernel from a device's data sheet (roofline.py)."""

    def estimate(kernel: Kernel) -> int:
        if communicates(kernel.operator):
            return _collective_ns(kernel, device)
        tensors = [*kernel.read, *kernel.written]
        floats = [t.dtype for t in tensors if t.dtype.is_floating_point or t.dtype.is_complex]
        dtype = DTYPES.get(floats[0], "f32") if floats else "f32"
        if dtype == "f32" and kernel.operator.overloadpacket in _CONVOLUTIONS:
            dtype = "tf32"
        moved = touched_bytes(kernel.read) + touched_bytes(kernel.written)
        return kernel_ns(device, kernel.flops, dtype, moved)

    return estimate


def _collective_ns(kernel: Kernel, device: lowtide.Device) -> int:
    return 0 if is_wait(kernel.operator) else collective_ns(device, bytes_sent(kernel))


class Prices:
    """The costs of kernels, as a lowering.Price: called with one kernel, after `prepare` with all of a graph.

    times: ticks of a kernel, or None to measure them.  seconds: what measuring a graph's times, and a part of
    its workspaces, may take; infinite: every kernel is measured, and several times.
    """

    def __init__(self, device: torch.device, times: Callable[[Kernel], int] | None, seconds: float,
                 real: bool) -> None:
        self._device, self._times, self._seconds, self.real = device, times, seconds, real
        self._estimate = roofline(DEVICES[known_as(device)])
        self._of_collectives = times or self._estimate
        self._file = cache.path_of("costs", _FORMAT, *identity(device)) if real else None
        self._known = _known(self._file)

    def __call__(self, kernel: Kernel) -> tuple[int, int, list[int]]:
        if communicates(kernel.operator):
            return self._of_collectives(kernel), 0, []
        key = _key(kernel) if self.real else ""
        ticks = self._times(kernel) if self._times else self._known["ns"][key]
        return ticks, self._known["workspace"].get(key, 0), self._known["held"].get(key, [])

    def prepare(self, kernels: Sequence[Kernel]) -> None:
        """Measure what is not known of these kernels, and keep it on disk."""
        if not self.real:
            return
        keyed = [(_key(kernel), kernel) for kernel in kernels if not communicates(kernel.operator)]
        distinct, runs = dict(keyed), Counter(key for key, _ in keyed)
        sizes = {key: kernel for key, kernel in distinct.items()
                 if key not in self._known["workspace"] and may_be_priced(kernel.operator)}
        times = {key: kernel for key, kernel in distinct.items() if not self._times and key not in self._known["ns"]}
        if not sizes and not times:
            return
        # when the time for measuring is used up, what is left matters little
        times = dict(sorted(times.items(), key=lambda item: -runs[item[0]] * self._estimate(item[1])))

        def measure(which: Callable[[Kernel], bool]) -> None:
            with untraced(self._device):
                found: dict[str, int] = {}
                here = {key: kernel for key, kernel in sizes.items() if which(kernel)}
                if here:
                    workspaces, found = self._memory(here)
                    self._known["workspace"].update(workspaces)
                here = {key: kernel for key, kernel in times.items() if which(kernel)}
                self._known["ns"].update(self._measured_times(here, {k: v for k, v in found.items() if k in here}))

        if self._device.type == "cpu":
            in_own_thread(lambda: measure(lambda kernel: is_of_pytorch(kernel.operator)))
            # a user's own may compile something within, and the tracer lets no other thread do that meanwhile
            measure(lambda kernel: not is_of_pytorch(kernel.operator))
        else:  # a GPU's libraries keep workspaces for each thread that calls them
            measure(lambda _: True)
            torch.cuda.empty_cache()  # what kernels were measured with is the step's to take
        cache.write(self._file, self._known)

    def _memory(self, kernels: dict[str, Kernel]) -> tuple[dict[str, int], dict[str, int]]:
        """Workspaces, each from one run; and ns of the large kernels' run.  What results hold beyond what they show
        is entered on the way.

        Budgets rest on these bytes, so time being up spares only kernels of a kind of which the largest needed none:
        a kind is an operator, the number types it reads, and how what it reads lies (a kernel may copy what is not
        contiguous).  Products and convolutions choose their way by their sizes, and are never spared.  The largest of
        each kind runs first, then the others, the cheap ones before.  A kernel that failed is not among them: what it
        needs stays unknown.
        """
        ns: dict[str, int] = {}
        found: dict[str, int] = {}
        needs: dict[Any, bool] = {}  # kind -> whether any so far needed more than its results
        cheap_first = sorted(kernels.items(), key=lambda item: self._estimate(item[1]))
        largest = {_kind(kernel): key for key, kernel in cheap_first}
        began = time.perf_counter()
        for at, (key, kernel) in enumerate(sorted(cheap_first, key=lambda item: largest[_kind(item[1])] != item[0])):
            progress.stage("measuring what kernels need", at, len(kernels))
            kind = _kind(kernel)
            if needs.get(kind) is False and not kernel.flops and time.perf_counter() - began > self._seconds:
                found[key] = 0
                continue
            try:
                found[key], held, took = self._run(kernel)
            except Exception:  # any kernel may refuse made-up numbers, or memory not do
                needs[kind] = True  # unknown, so none of its kind is spared
                continue
            if self._device.type == "cpu" and not self._is_small(kernel):  # a GPU's first run looks for kernels, and loads them
                ns[key] = took
            if held:
                self._known["held"][key] = held
            needs[kind] = needs.get(kind, False) or found[key] > 0 or bool(held)
        return found, ns

    def _run(self, kernel: Kernel) -> tuple[int, list[int], int]:
        """Workspace, what the results hold (_held), and ns of one run."""
        args, kwargs = self._made_up(kernel)
        made: list[Any] = []
        began = time.perf_counter()
        needed = workspace(lambda: made.append(kernel.target(*args, **kwargs)), self._device)
        took = int((time.perf_counter() - began) * 1e9)
        return needed, _held(kernel, made[0], (args, kwargs)), took

    def _made_up(self, kernel: Kernel) -> tuple[Any, Any]:
        """Arguments for it, of numbers that any kernel takes, and with which it does the most that it may have to do."""
        args, kwargs = real_arguments(kernel.target, kernel.args, kernel.kwargs, self._device)
        named = dict(zip((a.name for a in kernel.operator._schema.arguments), args, strict=False)) | kwargs
        for name in _MOST.keys() & named.keys():
            if isinstance(named[name], torch.Tensor):
                named[name].fill_(_MOST[name](named))
        if kernel.operator in _ROWS:
            name, rows_of = _ROWS[kernel.operator]
            indices, rows = named[name], max(1, int(rows_of(named)))
            indices.copy_(torch.arange(indices.numel(), device=indices.device).remainder_(rows).view(indices.shape))
        if kernel.target in _FILLED:
            _FILLED[kernel.target](args)
        return args, kwargs

    def _is_small(self, kernel: Kernel) -> bool:
        return self._seconds == float("inf") or self._estimate(kernel) < _ENOUGH * 1e9

    def _measured_times(self, kernels: dict[str, Kernel], found: dict[str, int]) -> dict[str, int]:
        """`found` and the ns of the others: measured, or as estimated where that cannot be or the time is up."""
        ratios = [ns / self._estimate(kernels[key]) for key, ns in found.items()]
        left = self._seconds
        for at, (key, kernel) in enumerate(kernels.items()):
            progress.stage("timing kernels", at, len(kernels))
            if key in found:
                continue
            began = time.perf_counter()
            run = self._runnable(kernel) if left > 0 and may_be_priced(kernel.operator) else None
            ns = self._time(run) if run else None
            if ns:
                ratios.append(ns / self._estimate(kernel))
            found[key] = ns or int(self._estimate(kernel) * (statistics.median(ratios) if ratios else 1))
            left -= time.perf_counter() - began
        return found

    def _runnable(self, kernel: Kernel) -> Callable[[], Any] | None:
        """The kernel on tensors of its own, run once; None if it refuses made-up numbers."""
        try:
            args, kwargs = self._made_up(kernel)
            kernel.target(*args, **kwargs)
            self._wait()
        except Exception:  # any kernel may
            return None
        return lambda: kernel.target(*args, **kwargs)

    def _time(self, run: Callable[[], Any]) -> int:
        if self._device.type == "cuda":
            return self._queued_time(run)
        times: list[float] = []
        while (len(times) < _LEAST and sum(times) < 5 * _ENOUGH) or (len(times) < _RUNS and sum(times) < _ENOUGH):
            began = time.perf_counter()
            run()
            self._wait()
            times.append(time.perf_counter() - began)
        return max(1, int(sorted(times)[len(times) // 4] * 1e9))

    def _queued_time(self, run: Callable[[], Any]) -> int:
        """ns of a call among several that the host has queued while the device was busy with something else."""
        def between_events(calls: int) -> float:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            cycles = 2 * calls * _QUEUEING  # of a clock of 2 GHz at most
            with torch.cuda.device(self._device):
                wait(cycles)
                first.record()
                for _ in range(calls):
                    run()
                last.record()
                last.synchronize()
            return first.elapsed_time(last) * 1e6 / calls

        once = between_events(1)
        if once < _LONG:
            calls = min(_QUEUED, max(_LEAST, int(2 * _LONG / max(once, 1.0))))
            once = min(between_events(calls) for _ in range(2))
        return max(1, int(once))

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def _kind(kernel: Kernel) -> tuple[Any, ...]:
    """The key of kernels with similar workspaces: operator, number types, and the layout of their inputs."""
    def lies(t: torch.Tensor) -> tuple[Any, ...]:
        steps = [int(step) for step in t.stride()]
        return flags_of(t), t.is_contiguous(), tuple(sorted(range(len(steps)), key=steps.__getitem__, reverse=True))

    return (kernel.operator, *((t.dtype, *lies(t)) for t in kernel.read))


def _held(kernel: Kernel, made: Any, given: Any) -> list[int]:
    """Bytes of the storage of each result in `made` that is none of `given`'s; empty if none is more than it shows."""
    old = {storage(t) for t in leaves(given)}

    def of(tree: Any) -> list[int]:
        return [bytes_of(t) if isinstance(t, torch.Tensor) and storage(t) not in old else 0
                for t in pytree.tree_leaves(tree)]

    held, shown = of(made), of(kernel.results)
    return held if len(held) == len(shown) and any(map(operator.gt, held, shown)) else []


def _known(file: Path | None) -> dict[str, dict[str, Any]]:
    """Earlier measurements; invalid entries of the file are ignored."""
    entry = cache.read(file)
    tables = {name: entry.get(name) if isinstance(entry, dict) else None for name in ("ns", "workspace", "held")}
    return {name: {key: value for key, value in table.items() if _is_figure(value, name == "held")}
            if isinstance(table, dict) else {} for name, table in tables.items()}


def _is_figure(value: Any, several: bool) -> bool:
    return isinstance(value, list) and all(isinstance(n, int) for n in value) if several else isinstance(value, int)


def _key(kernel: Kernel) -> str:
    return key_of(kernel.target, kernel.args, kernel.kwargs)


def key_of(target: Any, args: Any, kwargs: Any) -> str:
    """The identity of a kernel: operator, shapes, strides, number types and flags of its tensors, other arguments."""
    def of(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return (tuple(map(int, value.shape)), tuple(map(int, value.stride())), str(value.dtype), *map(str, flags_of(value)))
        return value

    return repr((str(target), pytree.tree_map(of, (args, kwargs))))


def real_arguments(target: Any, args: Any, kwargs: Any, device: torch.device) -> tuple[Any, Any]:
    """The arguments of a call with real tensors in the place of fake ones, each where the kernel wants it."""
    on_host = _ON_HOST.get(target)
    if not on_host:
        return materialise((args, kwargs), device)
    host = torch.device("cpu")
    made = (materialise(value, host if a.name in on_host else device)
            for a, value in zip(target._schema.arguments, args, strict=False))
    return tuple(made), materialise(kwargs, device)


def materialise(tree: Any, device: torch.device) -> Any:
    """Real tensors in the place of fake ones, of numbers that any kernel takes.

    On a GPU floats are random: a product of equal numbers draws less power than one of a step, and is up to an eighth faster.
    """

    def real(value: Any) -> Any:
        return flagged_as(value, made_for(value)) if isinstance(value, torch.Tensor) else value

    def made_for(value: torch.Tensor) -> torch.Tensor:
        size = [int(n) for n in value.shape]
        made = torch.empty_strided(size, [int(n) for n in value.stride()], dtype=value.dtype, device=device)
        if not (value.dtype.is_floating_point or value.dtype.is_complex):
            return made.zero_()
        if device.type == "cuda" and value.dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            stored = made.untyped_storage().nbytes() // made.element_size()  # once each, however strides repeat them
            made.as_strided((stored,), (1,), 0).uniform_(0.25, 0.75)
            return made
        return made.fill_(0.5)

    return pytree.tree_map(real, tree)
