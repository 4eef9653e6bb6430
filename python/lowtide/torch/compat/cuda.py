"""What PyTorch has for CUDA and does not name in public."""

import os

import torch


def wait(cycles: int) -> None:
    """Has the current stream do nothing for so many cycles of the clock."""
    torch.cuda._sleep(cycles)


def allocator_settings() -> str:
    """The settings of this process's caching allocator for CUDA, as PYTORCH_ALLOC_CONF has them."""
    try:
        return str(torch.cuda.memory._snapshot()["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"])
    except (KeyError, RuntimeError, TypeError):
        return os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
