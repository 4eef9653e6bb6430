"""The limits of a card that an administrator may have changed, as a part of the key of measurements."""

from __future__ import annotations

import functools
import subprocess

import torch

_LIMITS = "power.limit,clocks.max.sm,clocks.max.memory"
_SECONDS = 5.0  # for an answer, once in a process


def limits_of(device: torch.device) -> tuple[str, ...]:
    """Power limit and highest clocks of a card, as nvidia-smi tells them; empty where it tells nothing of the card."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return _limits_by_card().get(str(uuid).removeprefix("GPU-"), ())


@functools.cache
def _limits_by_card() -> dict[str, tuple[str, ...]]:
    ask = ["nvidia-smi", f"--query-gpu=uuid,{_LIMITS}", "--format=csv,noheader"]
    try:
        told = subprocess.run(ask, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [[cell.strip() for cell in line.split(",")] for line in told.splitlines()]
    return {uuid.removeprefix("GPU-"): tuple(limits) for uuid, *limits in rows}
