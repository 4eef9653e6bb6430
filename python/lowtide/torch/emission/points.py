"""The points of a step at which its code arranges what is allocated next (runtime/arranged.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...frontend.planning.copies import COMPUTES, Step


@dataclass
class Points:
    """number: of the arranged block.  begins: of each point, in the order of the code, the kind of its first step, and how many steps of
    that kind come before."""

    number: int
    begins: list[tuple[str, int]] = field(default_factory=list)
    _fetched: int = 0

    def begin(self, kind: str, at: int) -> int:
        """The number of the point that begins here.  at: how many computations come before."""
        if kind == "prefetch":
            at, self._fetched = self._fetched, self._fetched + 1
        self.begins.append((kind, at))
        return len(self.begins) - 1

    def steps(self, steps: list[Step]) -> list[int]:
        """The first step of each point among these of a schedule."""
        computes = [i for i, (kind, *_) in enumerate(steps) if kind in COMPUTES]
        fetches = [i for i, (kind, *_) in enumerate(steps) if kind == "prefetch"]
        return [(fetches if kind == "prefetch" else computes)[at] for kind, at in self.begins]
