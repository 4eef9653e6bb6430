"""Watches for memory that others hold beside a running graph and that its plan does not count.

Gradients that were not set to None are live through the forward, and through the backward beside the new ones, to which they
are added after the backward: the whole step takes that much more.  DDP's buckets exist from its construction on.  DDP copies the
new gradients into its buckets when the graph's backward returns all of them at once, so gradients that are views of buckets
save nothing during that backward.

Without gradients and DDP a check costs one look-up per parameter.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from ...frontend.errors import LowtideWarning, OverBudgetWarning, size_text
from ..compat.distributed import running_ddp
from ..ranks.buckets import bucket_bytes
from ..ranks.shared import beside_sharded
from ..tensors.storages import gradient_bytes, trained_arguments
from .outside import LOSS, tangent_bytes, upstream
from .over_budget import Cause

MARKS = ("the marks of torch.utils.checkpoint in this model allow recomputation but do not request it: the plan decides which ops "
         "are recomputed, inside and outside of the marks, and recomputes only as much as the budget needs. For less memory, "
         "set a smaller budget")

TOGETHER = ("several graphs of this model share the budget: only the last one may use split, hoist and substitute, because the others "
            "wait while another graph runs. Remove graph breaks (TORCH_LOGS=graph_breaks shows them) to use these techniques for "
            "more of the model")

_LOOKS = 64  # at what code outside holds, before the first backward


@dataclass
class ModelWatch:
    """State shared by the watches of one model's graphs: all leaves, and the warnings given.

    causes: what warnings were about, each of which comes once.  most: the most bytes that one was about.  counted: are
    gradients from earlier steps part of the plans (group.py)?

    Until the first backward begins the forwards are looked at for what code outside of all graphs holds.
    held: storages that it has saved or made for the graphs so far.  saved: the most bytes of these beside a graph.
    piece: the most bytes that one piece of such code takes.  broken: are these too much for a plan?
    whole: is there no code between the graphs?
    running: the watch whose forward ran last.  trained: has a backward begun?  looks: how many forwards were looked at.
    """

    causes: set[str] = field(default_factory=set)
    most: int = 0
    held: dict[int, int] = field(default_factory=dict)
    saved: int = 0
    piece: int = 0
    broken: bool = False
    whole: bool = False
    leaves: dict[int, weakref.ref[torch.Tensor]] = field(default_factory=dict)
    running: GraphWatch | None = None
    trained: bool = False
    looks: int = 0
    counted: bool = False

    def meet(self, inputs: list[Any], places: Iterable[int]) -> bool:
        """Record the leaves that are at these places among a graph's inputs.  Has one of them a gradient?

        Each step calls this, and the loop runs for each parameter.
        """
        leaves, found = self.leaves, False
        for i in places:
            t = inputs[i]
            if not t.is_leaf:  # or not any more, since its owner has written to it
                continue
            known = leaves.get(id(t))
            if known is None or known() is not t:
                leaves[id(t)] = weakref.ref(t)
            found = found or t.grad is not None
        return found

    def standing(self) -> int:
        """Bytes of the gradients that all known leaves have now, each storage once."""
        tensors = {key: ref() for key, ref in self.leaves.items()}
        for key in [key for key, t in tensors.items() if t is None]:
            del self.leaves[key]
        return gradient_bytes(tensors.values())


def buckets(gradients: int) -> int:
    """Bytes of the buckets of the DDP module that runs now, beyond the `gradients` that are views of them."""
    ddp = running_ddp()
    if ddp is None:
        return 0
    return max(0, bucket_bytes(ddp) - (gradients if ddp.gradient_as_bucket_view else 0))


class GraphWatch:
    """Measures the memory that others hold beside one running graph, and warns of memory that its plan does not count.

    peak, between, budget: of the plan's Report.  counted: bytes beside the graph for which the plan leaves room.  saved_earlier: of
    these, bytes saved by earlier forwards.  base: the `reserve` to pass, minus the bytes found beside the graph.
    reserved: did the user pass `reserve`?  allocator: or was it read from a GPU's allocator?
    """

    def __init__(self, model: ModelWatch, plan: tuple[int, int, int], *, counted: int, saved_earlier: int, base: int,
                 reserved: bool, allocator: bool) -> None:
        self._reserved, self._allocator = reserved, allocator
        self._model, self._counted, self._earlier, self._base = model, counted, saved_earlier, base
        self._peak, self._between, self._budget = plan
        self._leaves: set[int] | None = None  # their positions among the arguments
        self._left = 0  # bytes of other forwards when this one began

    def grow(self, peak: int, between: int, budget: int) -> None:
        """The plan has run at larger sizes, with this peak."""
        self._peak, self._between, self._budget = peak, between, budget

    def forward(self, args: list[Any], left: int) -> list[tuple[type[LowtideWarning], str]]:
        """Warnings with their classes, when the forward begins.  args: the graph's, leaves as they are outside of it.  left: bytes
        saved by other forwards."""
        words: list[tuple[type[LowtideWarning], str]] = []
        if self._leaves is None:
            sharded = None if self._reserved or "FSDP" in self._model.causes else beside_sharded(args)
            if sharded:
                self._model.causes.add("FSDP")
                words.append((LowtideWarning, f"this graph {sharded}"))
            self._leaves = trained_arguments(args)
        if not self._model.trained and self._model.looks < _LOOKS:
            self._model.looks += 1
            self._meet_outside(args, left)
        has_gradients = self._model.meet(args, self._leaves)  # at each call: a graph may run for one block after another
        return words + self._standing(left) if has_gradients or running_ddp() is not None else words

    def backward(self, tangents: list[Any]) -> list[Cause]:
        """What breaks the budget when the first backward of all begins: that of the last graph, behind which is the
        loss."""
        model, left = self._model, self._left
        if model.trained:
            return []
        model.trained = True
        handed = tangent_bytes(tangents) if model.running is self else 0
        loss = handed > 0 and self._over(self._between, left + model.saved + LOSS * handed) > 0
        reserve = self._base + max(left, self._earlier) + model.saved + max(model.piece, LOSS * handed if loss else 0)
        causes: list[Cause] = []
        if model.broken:
            causes.append(Cause(OverBudgetWarning, "code between the graphs that the tracer made of this model runs without a "
                                f"plan: it holds {size_text(model.saved)} ({model.saved} bytes) beside a graph, which no plan "
                                f"counts, and one piece of it takes about {size_text(model.piece)} in its backward",
                                "Remove graph breaks (TORCH_LOGS=graph_breaks shows them)", reserve))
        if loss:
            room = max(0, -self._over(self._between, left + model.saved))
            causes.append(Cause(LowtideWarning, f"the code behind the last graph, which uses results of {size_text(handed)} "
                                f"({handed} bytes), runs without a plan, and no plan counts it: F.cross_entropy takes twice "
                                f"these bytes, other losses up to {LOSS} times, and the plan leaves {size_text(room)} of the "
                                "budget", "Compute the loss within the module", reserve))
        model.held.clear()
        model.running = None
        return causes

    def _over(self, held: int, beside: int) -> int:
        """Bytes by which the budget is exceeded if the plan holds `held`, including the part of `beside` that it counts."""
        return held + max(0, beside - self._counted) - self._budget

    def _meet_outside(self, args: list[Any], left: int) -> None:
        model = self._model
        self._left = left
        if model.whole:
            model.running = self
            return
        saved, piece, made = upstream(args)
        model.held |= saved
        beside = 0 if self._allocator else sum(size for key, size in model.held.items() if key not in made)
        taken = sum(piece.values())
        previous = model.running
        model.broken |= self._over(self._peak, left + beside) > 0 and beside > 0
        if previous is not None and taken > 0:
            model.broken |= previous._over(previous._between, left + beside + taken) > 0
        model.saved, model.piece, model.running = max(model.saved, beside), max(model.piece, taken), self
        model.held |= made

    def _standing(self, left: int) -> list[tuple[type[LowtideWarning], str]]:
        gradients = 0 if self._model.counted else self._model.standing()
        held = buckets(gradients)
        beside = left + gradients + held
        if self._over(self._peak, beside) <= 0:
            return []
        new = {cause for cause, size in (("gradients", gradients), ("buckets", held)) if size} - self._model.causes
        if not new or beside <= self._model.most:
            return []
        self._model.causes |= new
        self._model.most = beside
        words = []
        if "gradients" in new:
            words.append(f"gradients of {size_text(gradients)} ({gradients} bytes), made before, exist while this "
                         "graph runs: set them to None first (optimizer.zero_grad()), unless they accumulate")
        if "buckets" in new:
            words.append(f"the buckets of DistributedDataParallel take {size_text(held)} ({held} bytes)")
        peak, reserve = self._peak + max(0, beside - self._counted), self._base + beside + max(0, self._earlier - left)
        return [(OverBudgetWarning, f"the budget is not kept: {'; '.join(words)}. The plan counts "
                 f"{size_text(self._counted)} of the memory beside the graph, so the step can take {size_text(peak)} of "
                 f"{size_text(self._budget)}; reserve={reserve} counts it")]
