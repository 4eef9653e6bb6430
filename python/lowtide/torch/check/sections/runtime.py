"""The assumptions of plans: the link to the host, the sizes of the allocator's blocks, repeated random draws."""

from __future__ import annotations

import time
from typing import Any

import torch

from ...device.host import Host
from ...device.link import measured_link
from ...device.meter import bytes_held
from ...program.lowerings.random_draws import STATE_BYTES, read_state, replay
from ..measure import least_seconds, mib, wait
from ..section import Context

_SIZES = (1, 511, 513, 1 << 20, (1 << 20) + 1, 3 * (1 << 20) + 1, 11 << 20, 27 << 19, (21 << 20) + 1, (99 << 20) + 5)
_COPIED = 1 << 30  # bytes
_LEFT_OVER = 1 << 20  # bytes: of a free block as much may be given out beside a tensor


def runtime(context: Context) -> None:
    if context.on_gpu:
        with context.guarded("link"):
            _link(context)
        with context.guarded("blocks"):
            _blocks(context)
    with context.guarded("draws"):
        _draws(context)


def _link(context: Context) -> None:
    """Rates each way and both at once, beside what plans are made with; does the host go on while a copy runs?"""
    planned = measured_link(torch.device("cuda", torch.cuda.current_device()))
    host = Host(4 * _COPIED)
    found = _copies(context, host)
    host.close()
    context.say("link", [] if found["pinned"] and found["host_goes_on"] else ["pinning"],
                planned_GB_s=round(planned.alone / 1e9, 2), planned_both_GB_s=round(2 * planned.together / 1e9, 2),
                planned_latency_us=round(planned.latency / 1e3, 2), **found)


def _copies(context: Context, host: Host) -> dict[str, Any]:
    """The time of copies of _COPIED bytes; frees their host memory afterwards."""
    began = time.perf_counter()
    here, place = host.take(_COPIED)
    pinning = time.perf_counter() - began
    other, _ = host.take(_COPIED)
    there, back = (torch.empty(_COPIED, dtype=torch.uint8, device=context.device) for _ in range(2))
    out, into = torch.cuda.Stream(), torch.cuda.Stream()

    def leave() -> None:
        here.copy_(there, non_blocking=True)

    def come() -> None:
        back.copy_(other, non_blocking=True)

    def both() -> None:
        with torch.cuda.stream(out):
            leave()
        with torch.cuda.stream(into):
            come()

    found = {name: round(count * _COPIED / least_seconds(run, 5) / 1e9, 2)
             for name, run, count in (("out_GB_s", leave, 1), ("in_GB_s", come, 1), ("both_GB_s", both, 2))}
    began = time.perf_counter()
    leave()
    queued = time.perf_counter() - began
    wait()
    return {**found, "pinned": place.pinned, "host_goes_on": queued < _COPIED / (1e9 * found["out_GB_s"]) / 4,
            "pinning_s_GiB": round(pinning, 3)}


def _blocks(context: Context) -> None:
    """Does the allocator count a tensor as plans do, which leave room for a little more in large blocks?"""
    by_size = {}
    for size in _SIZES:
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        t = torch.empty(size, dtype=torch.uint8, device=context.device)
        counted, expected = torch.cuda.memory_allocated() - before, bytes_held(t)
        if counted != expected:
            by_size[size] = {"planned": expected, "counted": counted}
        del t
    far = any(not 0 <= found["counted"] - found["planned"] <= _LEFT_OVER for found in by_size.values())
    context.say("blocks", ["blocks"] if far else [], counted_otherwise=by_size,
                largest_mib=mib(max(_SIZES)))


def _draws(context: Context) -> None:
    """Is a dropout that is computed again the same, and one whose mask was kept?"""
    device = torch.device(context.device)
    x = torch.randn(1 << 20, device=device)
    torch.ops.aten.native_dropout(x, 0.3, True)  # the generator's state is then where a step finds it
    state = read_state(device)
    first = torch.ops.aten.native_dropout(x, 0.3, True)
    after = read_state(device)
    again = replay(state, device, torch.ops.aten.native_dropout.default, x, 0.3, True)
    same = all(map(torch.equal, first, again)) and torch.equal(after, read_state(device))
    applied = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        out, mask = torch.ops.aten.native_dropout(x.to(dtype), 0.3, True)
        applied[str(dtype)] = torch.equal(torch.ops.lowtide.dropout_apply(x.to(dtype), mask, 0.3), out)
    fine = same and all(applied.values()) and state.numel() == STATE_BYTES[context.device]
    context.say("draws", [] if fine else ["draws"], again_equal=same, kept_mask_equal=applied, state_bytes=state.numel())
