"""The cost models of bench/papers/magis, one for all systems of a table: device files, as docs/reference/devices.md has
them.  Each has a link to the host of PCIe 4, 25 GB/s each way."""
from __future__ import annotations

from typing import Any

LINK = {"bytes_per_second": 25 * 10**9, "latency_ns": 10_000}


def _device(name: str, title: str, f32: float, bf16: float, gigabytes: int, launch_ns: int,
            **more: int) -> dict[str, Any]:
    """Rates in TFLOPS; convolutions run at the same as products, whatever their number type is called."""
    rates = {"f32": int(f32 * 1e12), "tf32": int(f32 * 1e12), "bf16": int(bf16 * 1e12)}
    return {"format": "lowtide-device", "version": 1, "name": name, "title": title, "operations_per_second": rates,
            "bytes_per_second": gigabytes * 10**9, "launch_ns": launch_ns, "host_link": LINK} | more


_EFFECTS = {"launch_ns": 5000, "compute_ramp_ns": 4000, "memory_ramp_ns": 2500, "multiprocessors": 108}

COSTS = {
    # Of the GA102 white paper: 35.6 TFLOPS in f32, and in tf32, which the paper used, as well.
    "rtx3090": _device("rtx3090", "The paper's card by its data sheet, 2 us a launch", 35.6, 71, 936, 2000),
    "waves": _device("waves", "A100 with launch, ramps and waves, f32 at its own rate", 19.5, 312, 2039, **_EFFECTS),
    "waves-tensor": _device("waves-tensor", "The same, f32 at the rate of tensor cores", 156, 312, 2039, **_EFFECTS),
}
