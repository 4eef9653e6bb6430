"""PyTorch's private functions for CUDA."""

import os
from collections.abc import Callable
from typing import Any

import torch


def wait(cycles: int) -> None:
    """Has the current stream do nothing for so many cycles of the clock."""
    torch.cuda._sleep(cycles)


def allocations_of(run: Callable[[], Any], device: torch.device) -> list[int] | None:
    """Bytes of each allocation that `run` makes on a GPU, and of each free as a negative number, in their order.

    None if the user records the process's memory (torch.cuda.memory._record_memory_history), since this call would end that record.
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


def allocator_settings() -> str:
    """The settings of this process's caching allocator for CUDA, as PYTORCH_ALLOC_CONF has them."""
    try:
        return str(torch.cuda.memory._snapshot()["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"])
    except (KeyError, RuntimeError, TypeError):
        return os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
