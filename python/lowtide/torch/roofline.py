"""Time of one kernel on a named GPU, from a roofline model; nothing is measured.

time = fixed + max(flops / rate, bytes / bandwidth), in whole ns, rounded up, where

* `fixed` is the start and the drain of a kernel that runs back to back with others,
* `rate` and `bandwidth` are a fixed share of the vendor's figures (kComputeShare, kMemoryShare: what
  large matrix products and streaming kernels of vendor libraries commonly reach).

A collective takes _CALL + bytes / link, where `link` is what the data sheet says of one direction of the GPU's
links to others.

An estimate for planning: it orders ops rightly (matrix products against pointwise ops, large against
small) and is off by tens of per cent for a single op.  It loses on ops that neither compute nor
stream, such as embedding gradients with many equal indices, and it knows no workspace.
"""

from __future__ import annotations

from dataclasses import dataclass

COMPUTE_SHARE = 0.6
MEMORY_SHARE = 0.8
_CALL = 20_000  # ns from the call of a collective to its first byte


@dataclass(frozen=True)
class Device:
    """What a GPU can do by its data sheet.

    flops: dense operations a second (a multiply-add is two) for each number type; "tf32" is what a
    convolution of f32 tensors runs in by PyTorch's default, matrix products of f32 run in "f32".
    bandwidth: bytes a second of device memory.  memory: bytes.  link: bytes a second to other devices, one way.
    fixed: ns that any kernel takes.
    """

    title: str
    flops: dict[str, float]
    bandwidth: float
    memory: int
    link: float
    fixed: int = 2000


def _flops(f64: float, f32: float, tf32: float, half: float) -> dict[str, float]:
    """Teraflops as data sheets print them -> operations a second by number type."""
    tera = {"f64": f64, "f32": f32, "tf32": tf32, "bf16": half, "f16": half}
    return {dtype: value * 1e12 for dtype, value in tera.items()}


# From the vendor's public data sheets.  Dense figures: sheets that print twice as much mean 2:4
# sparsity.  Half precision accumulates in f32, which on GeForce cards halves the printed f16 rate.
DEVICES = {
    # NVIDIA A100 Tensor Core GPU data sheet, SXM 80 GB
    "a100": Device("NVIDIA A100 80GB", _flops(9.7, 19.5, 156, 312), 2039e9, 80 << 30, 300e9),
    # NVIDIA H100 Tensor Core GPU data sheet, SXM
    "h100": Device("NVIDIA H100 80GB", _flops(34, 67, 494.7, 989.4), 3350e9, 80 << 30, 450e9),
    # NVIDIA H200 Tensor Core GPU data sheet, SXM
    "h200": Device("NVIDIA H200 141GB", _flops(34, 67, 494.7, 989.4), 4800e9, 141_000_000_000, 450e9),
    # NVIDIA L4 Tensor Core GPU data sheet
    "l4": Device("NVIDIA L4 24GB", _flops(0.49, 30.3, 60, 121), 300e9, 24 << 30, 32e9),
    # NVIDIA Ampere GA102 architecture white paper, GeForce RTX 3090
    "rtx3090": Device("NVIDIA GeForce RTX 3090", _flops(0.56, 35.6, 35.6, 71), 936e9, 24 << 30, 32e9),
    # NVIDIA Ada architecture white paper, GeForce RTX 4090
    "rtx4090": Device("NVIDIA GeForce RTX 4090", _flops(1.29, 82.6, 82.6, 165.2), 1008e9, 24 << 30, 32e9),
}


def collective_ns(device: Device, moved: int) -> int:
    """ns of a collective that sends `moved` bytes to other ranks, or gets so many."""
    return _CALL + -int(-moved / device.link * 1e9 // 1)


def kernel_ns(device: Device, flops: int, dtype: str, moved: int) -> int:
    """ns of a kernel that does `flops` operations in `dtype` and reads and writes `moved` bytes.

    A number type without a rate of its own (integers, complex) counts as f32.
    """
    rate = COMPUTE_SHARE * device.flops.get(dtype, device.flops["f32"])
    seconds = max(flops / rate, moved / (MEMORY_SHARE * device.bandwidth))
    return device.fixed + -int(-seconds * 1e9 // 1)
