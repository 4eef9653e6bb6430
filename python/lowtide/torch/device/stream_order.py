"""The order of work in several streams of a GPU around a backward."""

from __future__ import annotations

import torch

from ..compat.autograd import when_backward_ends


def wait_when_backward_ends(device: torch.device) -> None:
    """Has the stream that called the backward which runs now wait, at its end, for what the node that runs now queues.

    The engine runs a node in the stream of its forward, and has the caller's stream wait for leaves alone.  Updates within a
    backward write to parameters for which no leaf runs.
    """
    if device.type != "cuda":
        return
    mine = torch.cuda.current_stream(device)

    def wait() -> None:
        callers = torch.cuda.current_stream(device)
        if callers != mine:
            callers.wait_stream(mine)

    when_backward_ends(wait)
