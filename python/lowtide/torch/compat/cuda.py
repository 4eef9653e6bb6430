"""PyTorch's private functions for CUDA."""

from collections.abc import Callable
from typing import Any

import torch


def wait(cycles: int) -> None:
    """Has the current stream do nothing for so many cycles of the clock."""
    torch.cuda._sleep(cycles)


def allocations_of(run: Callable[[], Any], device: torch.device) -> list[int] | None:
    """Bytes of each allocation that `run` makes on a GPU, and of each free as a negative number, in their order.

    None where the process records its memory already (torch.cuda.memory._record_memory_history): that record is the user's.
    """
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if enabled is None or enabled():
        return None
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)
    try:
        made = run()
        torch.cuda.synchronize(device)
        index = torch.cuda.current_device() if device.index is None else device.index
        trace = torch.cuda.memory._snapshot()["device_traces"][index]
        del made
    finally:
        torch.cuda.memory._record_memory_history(None)
    signs = {"alloc": 1, "free_completed": -1}
    return [signs[entry["action"]] * entry["size"] for entry in trace if entry["action"] in signs]
