"""What is known of a planned step: the planner's report, and what XLA and the first call have shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...frontend.errors import size_text, some
from ...frontend.planning.report import Report
from ..compat import raw


@dataclass
class StepReport(Report):
    """Beside a Report: figures of the whole step, in bytes by XLA's own count (temporaries + arguments + outputs - aliases).

    total: of the planned step; None if it runs op by op.  own_total: of jax.jit(step).  totals: of each executable that was
    compiled, jax.jit's first.  loops: do its loops stack less for their backward than the step's own?  bits: the results of the first
    call beside those of jax.jit(step), in words.
    """

    total: int | None = None
    own_total: int = 0
    totals: list[int] = field(default_factory=list)
    loops: bool = False
    bits: str = "results not yet compared with jax.jit's"

    def __str__(self) -> str:
        memory = (f"XLA's total {size_text(self.total)}" if self.total is not None else f"holds {size_text(self.peak)} op by op")
        took = "from the cache" if self.cached else f"planned in {self.seconds:.2f} s"
        again = sum(sum(names.values()) for names in self.again.values())
        return (f"lowtide: {self.name}: {memory}, budget {size_text(self.budget)} (jax.jit {size_text(self.own_total)}), "
                f"{again} ops computed again{', loops that save less' if self.loops else ''}, overhead {100 * self.overhead:.2f} %, {took}, {len(self.totals)} compiled; {self.bits}")


def compared(planned: list[Any], plain: list[Any], names: list[str]) -> str:
    """The results of both in words: whether their bits are equal, or which differ, and by how much."""
    differ: list[tuple[float, str]] = []
    for ours, theirs, name in zip(planned, plain, names, strict=True):
        a, b = np.asarray(raw(ours)), np.asarray(raw(theirs))
        if a.tobytes() == b.tobytes():
            continue
        scale = float(np.max(np.abs(b.astype(np.float64)), initial=0.0)) if b.dtype.kind != "V" else 0.0
        apart = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)))) / scale if scale else 0.0
        differ.append((apart, name or "result"))
    if not differ:
        return f"bit-identical to jax.jit in the first call ({len(names)} results compared)"
    differ.sort(key=lambda one: -one[0])
    return (f"in the first call {len(differ)} of {len(names)} results differed from jax.jit's, by at most {differ[0][0]:.1e} of the largest "
            f"number in them: {some([name for _, name in differ], 3)}")
