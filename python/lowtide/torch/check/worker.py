"""The process in which sections run: makes steps repeatable, and runs one section after the other."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .measure import clean
from .section import Context, DeviceLost, Section

# read when libraries are loaded, so they are the parent's to set
ENVIRONMENT = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def make_repeatable() -> None:
    """Have a step give the same bits each time.

    An error where an operator cannot: with a warning alone the backward of attention takes the way that differs.
    """
    torch.use_deterministic_algorithms(True)
    deterministic: Any = torch.utils.deterministic  # whose stubs do not have its properties
    deterministic.fill_uninitialized_memory = False  # the filling would be timed
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def events_to_parent() -> Callable[[dict[str, Any]], None]:
    """A function that sends an event to the parent.  All other output goes to standard error."""
    pipe = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def tell(event: dict[str, Any]) -> None:
        pipe.write(json.dumps(event, default=str) + "\n")

    return tell


def run(sections: Iterable[Section], context: Context, tell: Callable[[dict[str, Any]], None], seconds: float,
        factor: float = 1.0) -> int:
    """Run sections in their order, in so many seconds; returns the status of the process."""
    deadline = time.monotonic() + seconds
    for section in sections:
        tell({"begin": section.name})
        # what a section does in the last seconds before it would be stopped it may as well leave
        context.begin(section.name, min(deadline, time.monotonic() + factor * section.seconds) - 2)
        try:
            with context.guarded("section"):
                section.run(context)
            clean()
        except DeviceLost:
            tell({"end": section.name})
            return 3
        tell({"end": section.name})
    return 0
