"""The options of a planned step: those of a planner, and what JAX adds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..frontend import roofline
from ..frontend.options import Options, PlannerOptions
from ..frontend.techniques import TRANSFORMS, names_offload

Argnums = Any  # a number, or several: as jax.jit takes them
Argnames = Any


_LEAST_SECONDS = 0.08  # for a plan


class StepOptions(PlannerOptions, total=False):
    """The options of `optimize` beside its budget, for type checkers."""

    exact: bool
    static_argnums: Argnums
    static_argnames: Argnames
    donate_argnums: Argnums
    donate_argnames: Argnames


@dataclass(frozen=True)
class Settings(Options):
    """Options of `optimize`: those of a planner, and these.

    exact: run op by op, so that the bytes held are the plan's.
    platform: of the device that runs the step ("cpu", "gpu", "tpu"); device: the name of a data sheet for it.

    Raises ValueError or TypeError that names the wrong option.
    """

    exact: bool = False
    platform: str = "cpu"
    allows_offload: bool | None = field(default=None, kw_only=True)  # derived; not set by users
    limited: bool = field(default=False, kw_only=True)  # does the time follow from that of compiling?  Not set by users

    def __post_init__(self) -> None:
        given = self.techniques
        if self.footprint not in (None, "live"):
            raise ValueError("footprint: lowtide.jax counts XLA's own total; 'reserved' is for PyTorch's allocator")
        if not isinstance(self.exact, bool):
            raise TypeError(f"exact must be True or False, not {self.exact!r}")
        super().__post_init__()
        words = given.split(",") if isinstance(given, str) else [str(word) for word in given or ()]
        wrong = sorted({word.strip().lower() for word in words} & TRANSFORMS)
        if wrong:
            raise ValueError(f"techniques: no code for JAX can be made of {', '.join(wrong)}; recompute, in_place and offload "
                             "are possible")
        named = names_offload(given) if self.allows_offload is None else self.allows_offload
        object.__setattr__(self, "allows_offload", named)
        kept = self.techniques - TRANSFORMS
        if "offload" in kept and self.platform == "cpu" and not (self.exact and named):
            if named:
                raise ValueError("techniques: offload on a CPU needs exact=True: XLA's code for CPUs keeps everything in the "
                                 "memory that it would be moved to")
            kept -= {"offload"}
        object.__setattr__(self, "techniques", kept or frozenset({"in_place"}))
        if "offload" not in kept:
            object.__setattr__(self, "link", None)
            object.__setattr__(self, "host_budget", None)

    def planning(self, alone: bool, device: Any) -> dict[str, Any]:
        terms = super().planning(alone, device)
        return terms if terms or "recompute" in self.techniques else {"techniques": sorted(self.techniques)}

    def plan_key(self) -> tuple[Any, ...]:
        """A time that was measured is no part of it: it differs from run to run."""
        asked, *rest = super().plan_key()
        return ("limited" if self.limited else asked, *rest)

    def within_seconds(self, most: float) -> Settings:
        """These settings with less time for a plan, if the caller left the time and the work to us."""
        own = next(f.default for f in fields(self) if f.name == "time")
        return self if self.time != own or self.work is not None else replace(
            self, time=min(own, max(_LEAST_SECONDS, most)), limited=True)

    @property
    def priced_as(self) -> str:
        """The data sheet or the way of measuring that prices are taken from."""
        return ("cpu" if self.platform == "cpu" else "a100") if self.costs == "auto" else self.costs


def sheet_of(device: Any) -> str:
    """The name of the data sheet of a JAX device, or of one that is like it; of an A100 where nothing is known."""
    if device.platform == "cpu":
        return "cpu"
    major, _, minor = str(getattr(device, "compute_capability", "")).partition(".")
    capability = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
    return roofline.sheet_of(str(device.device_kind), capability=capability)
