"""The interface between a training step and the planner, for any framework."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, ClassVar, Protocol, TypeVar

import lowtide

from .exactness import Exactness

Self = TypeVar("Self", bound="Program")


class Program(Protocol):
    """A graph, and the abilities of the code generator; a dataclass.

    graph: the ops and tensors.  barrier: the index of the op between forward and backward; None where both run in one call.
    device: the device that runs it, as the front end's options know it.  kept: tensors that the barrier overwrites in the graph
    alone, so that no plan reads them after it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    graph: lowtide.Graph
    kept: tuple[int, ...]

    @property
    def barrier(self) -> int | None: ...

    @property
    def device(self) -> Any: ...

    def without_kept(self: Self) -> Self:
        """The same program for plans that may read the `kept` tensors."""

    def homes(self) -> Mapping[int, Any]:
        """The tensors at home on the host, with their names in the front end."""

    def movable(self) -> Set[int]:
        """The tensors that code can copy to the host."""

    def order(self, computes: list[int]) -> list[int]:
        """The computations of a plan in the order of the generated code."""

    def elided(self, computes: list[int]) -> set[int]:
        """Ops without code, because they need not run if the step makes these computations."""

    def as_run(self, computes: list[int]) -> lowtide.Graph:
        """The graph with the bytes of the code that makes these computations."""

    def is_made_by_next(self, op: int) -> bool:
        """Whether the code of the next op makes the results of this one."""

    def splittable(self: Self) -> Self:
        """The program, with a graph that describes only ops for which code can be generated in parts."""

    def transformed(self: Self, transforms: list[dict[str, Any]]) -> Self:
        """The program after these transforms.  Raises CaptureError if no code can be generated for it."""

    def exactness(self, transforms: list[dict[str, Any]]) -> Exactness:
        """The results that stay bit-identical under a plan of this program, which these transforms have made."""
