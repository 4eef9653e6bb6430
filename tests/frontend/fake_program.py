"""A program for planners alone: a graph, of which nothing is code."""

from dataclasses import dataclass

from lowtide.frontend.exactness import Exactness

import lowtide


@dataclass
class FakeProgram:
    """frontend.program.Program, as of a framework whose ops are one kernel each and that may copy `can_move` to the host."""

    graph: lowtide.Graph
    barrier: int = 0
    kept: tuple = ()
    device: object = None
    can_move: frozenset = frozenset()

    def without_kept(self):
        return self

    def homes(self):
        return {}

    def movable(self):
        return self.can_move

    def order(self, computes):
        return computes

    def idle(self, computes):
        return set()

    def as_run(self, computes):
        return self.graph

    def is_made_by_next(self, op):
        return False

    def splittable(self):
        return self

    def transformed(self, transforms):
        raise AssertionError("no transforms were allowed")

    def exactness(self, transforms):
        return Exactness()
