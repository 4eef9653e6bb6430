"""The largest batch of a model that fits the GPU."""

from __future__ import annotations

import torch

from .section import Context

_SHARE = 0.7  # of the free memory, for a step without a plan


def batch_that_fits(context: Context, batch: int, gib_each: float, fixed: float = 0.5) -> int:
    """The batch, or what of it fits into the memory of the card; one at least.

    gib_each: GiB that a step takes for each sample, fixed: beside those; generously.
    """
    if not context.on_gpu:
        return batch
    free = torch.cuda.mem_get_info()[0] / 2**30
    return max(1, min(batch, int((_SHARE * free - fixed) / gib_each)))
