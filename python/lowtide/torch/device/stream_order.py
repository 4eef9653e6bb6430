"""The order of work in several streams of a GPU around a backward."""

from __future__ import annotations

import torch

from ..compat.autograd import when_backward_ends


def wait_when_backward_ends(device: torch.device) -> None:
    """At the end of the backward that is running, have the stream of its caller wait for the work of the node that calls this.

    The engine runs a node in the stream of its forward, and has the caller's stream wait only for the nodes of leaves.  Updates within
    a backward write to parameters whose leaves run no node.
    """
    if device.type != "cuda":
        return
    mine = torch.cuda.current_stream(device)

    def wait() -> None:
        callers = torch.cuda.current_stream(device)
        if callers != mine:
            callers.wait_stream(mine)

    when_backward_ends(wait)
