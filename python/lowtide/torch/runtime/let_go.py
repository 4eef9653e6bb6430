"""A process group lets go of the tensors of a collective a moment after the wait for it has ended.

gloo runs collectives in threads of its own.  Such a thread wakes whoever waits, and drops its references when it runs next, which on
a busy machine may be long after a plan has freed a tensor.  So the code of a plan, after each wait for gloo, stays until the thread
has dropped them.
"""

from __future__ import annotations

import time

import torch
from torch import fx

from ..compat.tensors import holders, references

_LIMIT = 1.0  # seconds after which somebody else must be the one that holds it
_OURS = 2  # who holds its storage then: the tensor and the storage's own object in Python
_patient = True


@fx.node.has_side_effect
def await_sole_owner(t: torch.Tensor) -> None:
    """Returns when nobody but the caller holds the tensor that a wait has returned, or after a limit: then once and never again."""
    global _patient
    if type(t) is not torch.Tensor or not _patient:
        return
    storage, until = t.untyped_storage(), time.monotonic() + _LIMIT
    while references(t) > 1 or holders(storage) > _OURS:
        if time.monotonic() > until:
            _patient = False
            return
        time.sleep(0.0001)
