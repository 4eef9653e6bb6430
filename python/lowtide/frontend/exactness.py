"""Which bits a plan keeps, in words for people."""

from __future__ import annotations

from dataclasses import dataclass

_SHOWN = 4  # names
OF_FORWARD = {"loss": "the loss", "results": "the results", "buffers": "buffers"}  # what a forward gives, and its words


@dataclass(frozen=True)
class Exactness:
    """Which results of a step have the bits that they have without a plan; str() says it in words.

    sums: results that are added up over parts, each of which has the bits that a loop over the slices would give it.
    follows: other results that may differ.  Whatever is in neither is equal.  What the forward gives is "loss" ("results" if
    that is several, or nothing is trained) and "buffers"; the others are gradients, or with updates in the step parameters,
    by the names of the parameters.
    whole: are all gradients sums over slices of the batch?  parts: of these sums.  in_single: does single precision add
    up what is in half?  masks: are draws of the whole read in slices?  hoisted: is the loss's gradient guessed?
    fused: has Inductor made the kernels?  tried: the instructions with which kernels of parts were tried on this machine
    ("AVX2"); empty where none had to be, or none can run here.
    traced: why the step as PyTorch traces it, with which all this compares, may have other bits than eager execution; empty
    where they are the same.
    """

    sums: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()
    whole: bool = False
    in_single: bool = False
    masks: bool = False
    hoisted: bool = False
    fused: bool = False
    updates: bool = False
    tried: str = ""
    traced: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Is every bit that of the step without a plan, as PyTorch traces it?"""
        return not (self.sums or self.follows or self.fused)

    @property
    def as_eager(self) -> bool:
        """Is every bit that of eager execution?"""
        return self.equal and not self.traced

    def __str__(self) -> str:
        if self.fused:
            return "bits as near to those of Inductor without a plan as another choice of fusions is"
        things = "parameters" if self.updates else "gradients"
        differ = []
        if self.sums:
            many = " or ".join(map(str, self.parts))
            how = f"sums over {many} parts" + (" in single precision" if self.in_single else "")
            if self.whole:
                how += f", as of a loop over {many} micro-batches" + (" with slices of the whole's masks" if self.masks else "")
            differ.append(_named(self.sums, things, self.whole) + f" ({how})")
        if self.follows:
            differ.append(_named(self.follows, things, False) + " (computed in another way, or of such sums)")
        words = "every bit as without a plan" + (", traced" if self.traced else "")
        words += f" but for {' and '.join(differ)}" if differ else ""
        words += f", rows as tried here with {self.tried}" if self.tried else ""
        words += ", if the loss is scaled by powers of two alone" if self.hoisted else ""
        return words + (f"; eager execution may have others: {', and '.join(self.traced)}" if self.traced else "")


def _named(names: tuple[str, ...], things: str, all_: bool) -> str:
    found = [words for name, words in OF_FORWARD.items() if name in names]
    others = [name for name in names if name not in OF_FORWARD]
    if others:
        left = [f"{len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
        found.append(f"all {things}" if all_ else f"the {things} of {_listed([*others[:_SHOWN], *left])}")
    return _listed(found)


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
