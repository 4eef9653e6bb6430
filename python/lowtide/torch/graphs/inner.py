"""Which kernels plans run where the options leave it open (inner="auto").

On a GPU the kernels of eager execution and the fused ones are both measured, and the fused ones run if a step of them takes at least
3 % less: below that, the bits of eager execution are worth more.  They are asked for, and nothing is compared, where PyTorch's
deterministic algorithms are on, which without them no step repeats its bits.  On a CPU plans run the kernels of eager execution:
compiling takes longer than planning does.  The report says what part of the time it could shorten.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

import lowtide

from ..settings import Settings
from ..tensors.effects import ranks

_LEAST = 0.03  # of a step's time that fused kernels have to save


class EagerIsFast(Exception):
    """Fused kernels save too little; the text says how much."""


@dataclass(frozen=True)
class Choice:
    """fused: do plans run fused kernels?  why: in words; empty before both were compared.  refused: did the caller ask for
    fused kernels, of which none can run?"""

    fused: bool
    why: str = ""
    refused: bool = False

    def in_words(self, graph: lowtide.Graph) -> str:
        """For people.  graph: of the kernels that were chosen."""
        if self.fused:
            return f"fused kernels (inner='auto': {self.why})"
        if self.refused:
            return f"eager kernels (inner='fused': {self.why})"
        return f"eager kernels (inner='auto': {self.why}; {_in_kernels_that_fuse(graph)})"


def first_choice(settings: Settings, device: torch.device) -> Choice:
    """What to try first with inner="auto": fused kernels, still to be compared, or eager ones, and why."""
    if device.type != "cuda":
        return Choice(False, "bit-identical to eager execution, and nothing to compile")
    if torch.are_deterministic_algorithms_enabled():
        return Choice(False, "deterministic algorithms ask for the bits of eager execution")
    if settings.costs not in ("auto", "measured"):
        return Choice(False, f"costs={settings.costs!r} measure no kernels")
    if ranks() > 1:
        return Choice(False, "each of several ranks would measure for itself, and all run the same kernels")
    if settings.layout == "exact":
        return Choice(False, "layout='exact' knows no temporaries of fused kernels")
    return Choice(True)


def compare(eager: lowtide.Graph, fused: lowtide.Graph) -> str:
    """What fused kernels save, in words.  Raises EagerIsFast, with them, where that is too little."""
    saved = 1 - fused.duration / eager.duration if eager.duration else 0.0
    words = f"fused ones take {abs(saved) * 100:.0f} % {'less' if saved >= 0 else 'more'} time than eager ones, as measured"
    if saved < _LEAST:
        raise EagerIsFast(words)
    return words


def _in_kernels_that_fuse(graph: lowtide.Graph) -> str:
    """How much of a step of eager kernels fused ones could shorten, in words."""
    other = sum(op.time for op in map(graph.op, graph.order) if '"flops"' not in op.attributes)
    share = other / graph.duration if graph.duration else 0.0
    return f"{100 * share:.0f} % of the time is in ops other than products, which inner='fused' may shorten"
