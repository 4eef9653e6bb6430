"""The buckets of DistributedDataParallel: memory beside the graphs that run within it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...frontend.errors import CaptureError
from ..compat.distributed import bucket_limits, parameters_of, running_ddp, splits_parameters

if TYPE_CHECKING:
    import torch
    from torch.nn.parallel import DistributedDataParallel


def bucket_bytes(ddp: DistributedDataParallel) -> int:
    """Bytes of the buckets in which DDP gathers the gradients of its parameters."""
    return sum(p.numel() * p.element_size() for p in parameters_of(ddp))


def check_parallel(ddp: DistributedDataParallel) -> None:
    """Raises CaptureError for a module under DDP with other parameters during a step than between steps."""
    reason = splits_parameters(ddp)
    if reason:
        raise CaptureError(f"optimize takes no module under DistributedDataParallel with {reason}: use torch.autocast within the "
                           "module, or train it without Lowtide")


class Buckets:
    """The buckets that one model's plans count.  size: their bytes, the most that was seen.  limits: bytes that fill the first bucket,
    and any other; None without DDP."""

    def __init__(self) -> None:
        self.size = 0
        self.limits: tuple[int, int] | None = None

    def meet(self, ddp: DistributedDataParallel | None = None) -> bool:
        """The model runs within that DDP, by default the one that runs now.  Are there buckets that no plan counts?"""
        ddp = running_ddp() if ddp is None else ddp
        size = 0
        if ddp is not None:
            size, self.limits = bucket_bytes(ddp), bucket_limits(ddp)
        grows = size > self.size
        self.size = max(size, self.size)
        return grows

    def beside(self, device: torch.device, reserved: int | None) -> int:
        """Their bytes, for a plan that does not count them by other ways: by what a GPU has allocated, or by the user's reserve."""
        return self.size if device.type == "cpu" and reserved is None else 0
