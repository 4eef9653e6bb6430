"""A training step as the planner sees it, for any framework."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, ClassVar, Protocol, TypeVar

import lowtide

from .exactness import Exactness

Self = TypeVar("Self", bound="Program")


class Program(Protocol):
    """A graph, and what the code that will run it can do; a dataclass.

    graph: of its ops and tensors.  barrier: the index of the op between forward and backward.  device: where it runs, as the
    front end's options know it.  kept: tensors that the barrier overwrites in the graph alone, so that no plan reads them
    after it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    graph: lowtide.Graph
    barrier: int
    kept: tuple[int, ...]

    @property
    def device(self) -> Any: ...

    def without_kept(self: Self) -> Self:
        """The same program for plans that may read the `kept` tensors."""

    def homes(self) -> Mapping[int, Any]:
        """The tensors at home on the host, with their names in the front end."""

    def movable(self) -> Set[int]:
        """The tensors that code can send to the host."""

    def order(self, computes: list[int]) -> list[int]:
        """The computations of a plan in the order in which code will make them."""

    def elided(self, computes: list[int]) -> set[int]:
        """Ops that need not run when the step makes these computations: no code is made of them."""

    def as_run(self, computes: list[int]) -> lowtide.Graph:
        """The graph with the bytes that code takes when it makes these computations."""

    def is_made_by_next(self, op: int) -> bool:
        """Does the code of the op that follows make the results of this one?"""

    def splittable(self: Self) -> Self:
        """The program, with a graph that describes only ops for which code can be generated in parts."""

    def transformed(self: Self, transforms: list[dict[str, Any]]) -> Self:
        """The program after these transforms.  Raises CaptureError for what cannot be put into code."""

    def exactness(self, transforms: list[dict[str, Any]]) -> Exactness:
        """Which bits a plan of this program keeps, which these transforms have made."""
