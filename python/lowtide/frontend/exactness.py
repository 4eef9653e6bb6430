"""Which results of a planned step are bit-identical, in words for people."""

from __future__ import annotations

from dataclasses import dataclass

_SHOWN = 4  # names
OF_FORWARD = {"loss": "the loss", "results": "the results", "buffers": "buffers"}  # what a forward gives, and its words


@dataclass(frozen=True)
class Exactness:
    """Which results of a planned step are bit-identical to those of the unplanned step; str() says it in words.

    sums: results summed over parts; each addend has the bits that a loop over the slices would give it.  follows: other
    results that may differ.  Results in neither are equal.  Results of the forward are named "loss" ("results" if there are
    several, or if nothing is trained) and "buffers".  Gradients are named by their parameter, and so are the parameters if the
    step updates them.
    whole: are all gradients sums over slices of the batch?  parts: numbers of parts of these sums.  in_single: are sums in
    half precision accumulated in single precision?  masks: are random masks drawn for the whole batch and sliced?
    hoisted: does the backward run with a predicted gradient of the loss?  fused: does Inductor make kernels of clusters of ops?
    atomic: results that these kernels add up by atomics, in an order that may change, and what is computed of them: with or without
    a plan they may differ from run to run.
    tried: the instruction set with which the kernels of parts were tested on this machine ("AVX2"); empty if no test was
    needed, or if none can run here.
    traced: why the traced step, to which all this compares, may differ from eager execution; empty if it does not.
    """

    sums: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()
    whole: bool = False
    in_single: bool = False
    masks: bool = False
    hoisted: bool = False
    fused: bool = False
    atomic: tuple[str, ...] = ()
    updates: bool = False
    tried: str = ""
    traced: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Are all results bit-identical to the unplanned step, as PyTorch traces it?"""
        return self.is_kept and not self.atomic

    @property
    def is_kept(self) -> bool:
        """Does the plan itself change no bits?"""
        return not (self.sums or self.follows)

    @property
    def as_eager(self) -> bool:
        """Are all results bit-identical to eager execution?"""
        return self.equal and not self.traced and not self.fused

    def __str__(self) -> str:
        things = "parameters" if self.updates else "gradients"
        differ = []
        if self.sums:
            many = " or ".join(map(str, self.parts))
            how = f"sums over {many} parts" + (" in single precision" if self.in_single else "")
            if self.whole:
                how += f", as in a loop over {many} microbatches" + (" with slices of the whole batch's masks" if self.masks else "")
            differ.append(_named(self.sums, things, self.whole) + f" ({how})")
        if self.follows:
            differ.append(_named(self.follows, things, False) + " (computed differently, or from such sums)")
        if self.atomic:
            differ.append(_named(self.atomic, things, False) + " (added up by atomics, whose order may change from run to run)")
        words = "bit-identical" + (" to the same fused kernels without a plan" if self.fused else " to the traced step" if self.traced else "")
        words += f" but for {' and '.join(differ)}" if differ else ""
        words += f", rows tested here with {self.tried}" if self.tried else ""
        words += ", if the loss is scaled by powers of two only" if self.hoisted else ""
        if self.fused:
            return words + "; eager execution differs as it does from torch.compile"
        return words + (f"; eager execution may differ: {', and '.join(self.traced)}" if self.traced else "")


def _named(names: tuple[str, ...], things: str, all_: bool) -> str:
    found = [words for name, words in OF_FORWARD.items() if name in names]
    others = [name for name in names if name not in OF_FORWARD]
    if others:
        left = [f"{len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
        found.append(f"all {things}" if all_ else f"the {things} of {_listed([*others[:_SHOWN], *left])}")
    return _listed(found)


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
