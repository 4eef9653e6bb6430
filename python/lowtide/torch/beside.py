"""What stands beside a region's plan when its forward begins, and the plan does not count.

Gradients that were not set to None live through the forward, and through the backward beside the new ones, to
which they are added when the backward has returned: the whole step takes that much more.  DDP's buckets stand
from its construction on.  It gives the new gradients to its buckets when the region's backward has returned all of them
at once, so gradients that are views of buckets save nothing while that backward runs.

A look is cheap: as long as no gradient stands and there is no DDP it costs a look-up for each parameter.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from .distributed import bucket_bytes
from .errors import size_text

MARKS = ("the marks of torch.utils.checkpoint in this model are leave to compute again, and no orders: what is kept and "
         "what is computed again, within the marks and outside, is the plan's choice, and the budget decides how much; "
         "a step is to take less than the budget only if the budget says less")


@dataclass
class Said:
    """What was said of one model, each cause once, and the most bytes; and the parameters of all of its regions."""

    causes: set[str] = field(default_factory=set)
    most: int = 0
    leaves: dict[int, weakref.ref[torch.Tensor]] = field(default_factory=dict)

    def meet(self, leaf: torch.Tensor) -> None:
        """Note a leaf that a region was given."""
        known = self.leaves.get(id(leaf))
        if known is None or known() is not leaf:
            self.leaves[id(leaf)] = weakref.ref(leaf)

    def standing(self) -> int:
        """Bytes of the gradients that all known leaves have now, each storage once."""
        tensors = [ref() for ref in self.leaves.values()]
        return gradient_storages(t for t in tensors if t is not None)


def gradient_storages(leaves: Iterable[Any]) -> int:
    """Bytes of the storages of the gradients of those that are leaves and have one."""
    gradients = [t.grad for t in leaves if isinstance(t, torch.Tensor) and t.is_leaf and t.grad is not None]
    strided = [g.untyped_storage() for g in gradients if g.layout == torch.strided]
    return sum({data._cdata: data.nbytes() for data in strided}.values())


def buckets(gradients: int) -> int:
    """Bytes of the buckets of the DDP module that runs now, beyond the `gradients` that are views of them."""
    ddp = DistributedDataParallel._get_active_ddp_module()
    if ddp is None:
        return 0
    return max(0, bucket_bytes(ddp) - (gradients if ddp.gradient_as_bucket_view else 0))


class Watch:
    """Looks at what stands beside one region, whose plan takes `peak` of `budget` and counts `counted` bytes of such."""

    def __init__(self, said: Said, peak: int, budget: int, counted: int) -> None:
        self._said, self._room, self._peak, self._budget, self._counted = said, budget - peak, peak, budget, counted
        self._leaves: list[int] | None = None  # their positions among the arguments

    def look(self, args: list[Any], left: int) -> str | None:
        """Words to be said, once, if gradients or buckets break the budget; left: bytes of other forwards."""
        if self._leaves is None:
            self._leaves = [i for i, t in enumerate(args)
                            if isinstance(t, torch.Tensor) and t.is_leaf and t.requires_grad]
        none = True
        for i in self._leaves:
            self._said.meet(args[i])  # a region may run for one block after another
            none = none and args[i].grad is None
        if none and DistributedDataParallel._active_ddp_module is None:
            return None
        gradients = self._said.standing()
        held = buckets(gradients)
        beside = left + gradients + held
        if beside - self._counted <= self._room:
            return None
        new = {cause for cause, size in (("gradients", gradients), ("buckets", held)) if size} - self._said.causes
        if not new or beside <= self._said.most:
            return None
        self._said.causes |= new
        self._said.most = beside
        words = []
        if "gradients" in new:
            words.append(f"gradients of {size_text(gradients)} ({gradients} bytes), made before, stand while this "
                         "region runs: set them to None first (optimizer.zero_grad()), unless they accumulate")
        if "buckets" in new:
            words.append(f"the buckets of DistributedDataParallel take {size_text(held)} ({held} bytes)")
        peak = self._peak + beside - self._counted
        return (f"{'; '.join(words)}. The plan counts {size_text(self._counted)} of what stands beside the region, so "
                f"the step can take {size_text(peak)} of {size_text(self._budget)}; reserve={beside} counts it")
