"""PyTorch's private functions for CUDA."""

import torch


def wait(cycles: int) -> None:
    """Has the current stream do nothing for so many cycles of the clock."""
    torch.cuda._sleep(cycles)
