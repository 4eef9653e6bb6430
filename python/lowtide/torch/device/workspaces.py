"""Allocates the workspaces that a GPU's libraries keep, before a plan counts the memory beside it.

cuBLAS gets a workspace for each thread and stream at its first product there, 32 MiB on a Hopper card, and PyTorch keeps it.
Autograd runs the backward in its own thread, so the first step of a process allocates two workspaces that no plan has counted.
AOTAutograd disables that thread during tracing; `take_workspaces` enables it for its own backward.  CUDA graphs are recorded in a
stream of their own, where both threads get another workspace.

A workspace that was allocated within a backward lies in a segment of that step, say the one of its logits, and keeps the whole segment
from being given back.  So workspaces of earlier steps are freed first.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any

import torch
from torch.nn import functional as F

from ..compat.cuda import free_workspaces, recording_stream
from .identity import untraced

_SIDE = 32  # of a matrix that a library takes


def take_workspaces(device: torch.device, recorded: bool = False) -> None:
    """Run a small product of each kind on the device, forward and backward, once for each thread and stream that plans.  recorded: in
    the stream in which CUDA graphs are recorded."""
    if not recorded:
        _free_earlier()
    stream = None if recorded or device.type != "cuda" else torch.cuda.current_stream(device).cuda_stream
    _take(device, recorded, stream, threading.get_ident())


@functools.cache
def _take(device: torch.device, recorded: bool, stream: int | None, thread: int) -> None:
    index = torch.cuda.current_device() if recorded and device.index is None else device.index
    with torch.cuda.stream(recording_stream(index)) if recorded else contextlib.nullcontext():
        _multiply(device)
    torch.cuda.synchronize(device)


@functools.cache
def _free_earlier() -> None:
    free_workspaces()


def _multiply(device: torch.device) -> None:
    with untraced(device), torch.enable_grad(), torch.autocast(device.type, enabled=False), \
            torch.autograd.set_multithreading_enabled(True):
        _products(device)
        _ProductsInBackward.apply(torch.zeros(1, device=device, requires_grad=True)).backward()


def _products(device: torch.device) -> None:
    """A product with a bias, for which cuBLASLt has a workspace of its own, and one without."""
    for dtype in (torch.float32, torch.bfloat16):
        weight, bias, x = (torch.zeros(shape, dtype=dtype, device=device) for shape in ((_SIDE, _SIDE), (_SIDE,), (_SIDE, _SIDE)))
        F.linear(x, weight, bias) @ weight


class _ProductsInBackward(torch.autograd.Function):
    """The same products in the thread of backwards, which runs products of the forward where a plan computes them again."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> None:
        _products(gradient.device)
