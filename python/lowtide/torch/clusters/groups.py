"""Which fusible nodes of a joint graph form a cluster.

1. The level of a node is the number of ops on its longest path that are in no cluster.  Connected fusible nodes of one level, on
   one side of the barrier, are a cluster.  A path that leaves it leads to a higher level or over the barrier, so it never returns.
2. Clusters of one level that read the same result of an op are one.
3. A producer without large inputs (a mask from a seed, an index range) is copied into its readers.  A cluster that one other alone
   reads joins that one, if that holds no more bytes in between.  Where what draws may run in parts, masks drawn from seeds are clusters
   for themselves: they are made whole, and parts read slices of them.
4. Values that only change buffers get clusters of their own (writers.py): the buffers change before the barrier, and what else such a
   cluster made would have to be computed before it too.
5. A pointwise value of the forward that the backward alone reads, made of one value that is no larger and of statistics, is
   computed again by its readers.  Nothing is computed again of an input that the forward writes to.
6. A copy that is left alone, and that is no producer as in 3, stays an op, since the eager kernel copies as well.  As a cluster, each
   shape would be compiled: a network has gradients of as many shapes as it has convolutions, and kernels of convolutions return these
   gradients in another layout than the weights have.

Inductor's own scheduler is no source of clusters: it fuses over the barrier and merges recomputations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import fx

from ..tensors.operators import leaves
from .kinds import SEED, Kinds, is_atomic, is_copy, is_reduction, name_of, size_of
from .writers import together

_LARGEST = 120  # nodes of one cluster, whose code takes seconds to compile
_CONE = 12  # nodes that are computed again with a value
_SMALL = 8  # times smaller than a value: a statistic of it


@dataclass(eq=False)
class Group:
    """The nodes of one cluster, in the order of the graph.  writes: does it only change buffers?  draws: does it only draw from seeds?"""

    nodes: list[fx.Node]
    late: bool
    writes: bool = False
    draws: bool = False

    @property
    def repeats(self) -> bool:
        """Has it the same bits each time?"""
        return not any(map(is_atomic, self.nodes))


@dataclass(eq=False)
class Groups:
    """of: the group of a node.  copied: nodes that each reading cluster makes for itself.  again: nodes of the forward that clusters
    of the backward compute again, and ends: what they compute them of.  levels: of nodes."""

    kinds: Kinds
    of: dict[fx.Node, Group] = field(default_factory=dict)
    copied: set[fx.Node] = field(default_factory=set)
    again: set[fx.Node] = field(default_factory=set)
    ends: set[fx.Node] = field(default_factory=set)
    levels: dict[fx.Node, int] = field(default_factory=dict)

    def all(self) -> list[Group]:
        return list(dict.fromkeys(self.of.values()))

    def makes_for_itself(self, group: Group, node: fx.Node) -> bool:
        """Does a cluster compute a node that it reads and that is none of its own?"""
        return node in self.copied or group.late and node in self.again

    def enter(self, group: Group) -> Group:
        group.nodes = sorted(dict.fromkeys(group.nodes), key=self.kinds.place.__getitem__)
        self.of.update(dict.fromkeys(group.nodes, group))
        return group

    def borders(self, group: Group) -> list[str]:
        """Why the cluster ends where it does, in words."""
        found: dict[str, None] = {}
        mine = set(group.nodes)
        for node in group.nodes:
            for other in self.kinds.sources(node):
                if other not in mine and other.op == "call_function" and not self.makes_for_itself(group, other):
                    found[f"reads {name_of(other)} ({self._why(group, other)})"] = None
            for other in self.kinds.readers.get(node, ()):
                if other not in mine and other not in self.copied:
                    found[f"read by {name_of(other)} ({self._why(group, other)})"] = None
        return list(found)

    def _why(self, group: Group, other: fx.Node) -> str:
        if other in self.kinds.apart:
            return self.kinds.apart[other]
        theirs = self.of.get(other)
        if theirs is None:
            return "a copy, by the eager kernel" if is_copy(other) else "a producer for its own"
        if theirs.late != group.late:
            return "on the other side of the barrier"
        if theirs.writes or group.writes:
            return "changes a buffer"
        if theirs.draws or group.draws:
            return "drawn whole, for parts to read slices of"
        mine = {self.levels[node] for node in group.nodes}
        return "a library's kernel is in between" if self.levels[other] not in mine else "one kernel is large enough"


def grouped(kinds: Kinds, in_parts: bool = False) -> Groups:
    """The clusters of a graph.  in_parts: may the step run in parts?"""
    found = Groups(kinds, copied=_without_inputs(kinds))
    writing = _writing(kinds)
    drawing = _drawing(kinds, found.copied) - writing if in_parts else set()
    found.copied -= writing | drawing
    found.levels = _levels(kinds)
    for group in _by_level(kinds, found.levels, kinds.fusible - found.copied - writing - drawing):
        found.enter(group)
    for part in _connected(kinds, drawing):
        found.enter(Group(part, part[0] in kinds.late, draws=True))
    for nodes in together(kinds, _connected(kinds, writing)):
        found.enter(Group(nodes, nodes[0] in kinds.late, writes=True))
    returned = _returned(kinds)
    for node in found.copied:
        readers = kinds.readers.get(node, {})
        if node in returned or any(reader not in kinds.fusible for reader in readers):
            found.enter(Group([node], node in kinds.late))
    _sink(found, returned)
    _compute_again(found, returned)
    _leave_copies(found)
    return found


def _returned(kinds: Kinds) -> set[fx.Node]:
    return {maker for node, _ in kinds.outputs() for maker in kinds.makers(node)}


def _without_inputs(kinds: Kinds) -> set[fx.Node]:
    """Producers whose inputs are at most seeds and producers alike."""
    found: set[fx.Node] = set()
    for node in kinds.nodes:
        if node in kinds.fusible and not is_reduction(node) \
                and all(source in found or source.meta.get(SEED) for source in kinds.sources(node)):
            found.add(node)
    return found


def _drawing(kinds: Kinds, producers: set[fx.Node]) -> set[fx.Node]:
    """Of producers without inputs those that draw from seeds, and what is smaller than the draws that it is made of: masks.  What readers
    make of masks, as large or larger, they make for themselves."""
    found: set[fx.Node] = set()
    for node in kinds.nodes:
        if node in producers and any(source.meta.get(SEED) or source in found and size_of(node) < size_of(source)
                                     for source in kinds.sources(node)):
            found.add(node)
    return found


def _writing(kinds: Kinds) -> set[fx.Node]:
    """Values that only become new values of inputs."""
    written: set[fx.Node] = set()
    handed_out: set[fx.Node] = set()
    for node, descriptor in kinds.outputs():
        (written if hasattr(descriptor, "mutated_input") else handed_out).update(kinds.makers(node))
    found: set[fx.Node] = set()
    for node in reversed(kinds.nodes):
        readers = kinds.readers.get(node, {})
        if node in kinds.fusible and node not in handed_out and (node in written or readers) and readers.keys() <= found:
            found.add(node)
    return found


def _levels(kinds: Kinds) -> dict[fx.Node, int]:
    """Effects keep their order: none is on a lower level than one before it."""
    levels: dict[fx.Node, int] = {}
    of_effects = 0
    for node in kinds.nodes:
        if node in kinds.fusible or node in kinds.apart:
            levels[node] = max((levels.get(source, 0) + (source in kinds.apart) for source in kinds.sources(node)), default=0)
            if kinds.apart.get(node) in ORDERED:
                levels[node] = of_effects = max(levels[node], of_effects)
    return levels


ORDERED = ("an effect", "a random draw", "an operator of its own")  # of Kinds.apart: what keeps its order


class _Sets:
    """Disjoint sets of nodes that are united."""

    def __init__(self, nodes: Iterable[fx.Node]) -> None:
        self._parent = {node: node for node in nodes}

    def find(self, node: fx.Node) -> fx.Node:
        while self._parent[node] is not node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def unite(self, one: fx.Node, other: fx.Node) -> None:
        self._parent[self.find(one)] = self.find(other)

    def all(self, order: list[fx.Node]) -> list[list[fx.Node]]:
        found: dict[fx.Node, list[fx.Node]] = {}
        for node in order:
            if node in self._parent:
                found.setdefault(self.find(node), []).append(node)
        return list(found.values())


def _by_level(kinds: Kinds, levels: dict[fx.Node, int], nodes: set[fx.Node]) -> list[Group]:
    sets = _Sets(nodes)

    def side(node: fx.Node) -> tuple[int, bool]:
        return levels[node], node in kinds.late

    for node in nodes:
        for source in kinds.sources(node):
            if source in nodes and side(source) == side(node):
                sets.unite(source, node)
    for source in kinds.apart:
        first: dict[tuple[fx.Node, bool], fx.Node] = {}
        for reader in kinds.readers.get(source, ()):
            if reader in nodes and levels[reader] == levels[source] + 1:
                for result in kinds.results(reader, source):
                    sets.unite(reader, first.setdefault((result, reader in kinds.late), reader))
    return [Group(part[i:i + _LARGEST], part[0] in kinds.late)
            for part in sets.all(kinds.nodes) for i in range(0, len(part), _LARGEST)]


def _connected(kinds: Kinds, nodes: set[fx.Node]) -> list[list[fx.Node]]:
    """The nodes that are connected to one another, without regard to all others."""
    sets = _Sets(nodes)
    for node in nodes:
        for source in kinds.sources(node):
            if source in nodes:
                sets.unite(source, node)
    return sets.all(kinds.nodes)


def _sink(found: Groups, returned: set[fx.Node]) -> None:
    """Have clusters with one reader join it."""
    kinds, changed = found.kinds, True
    while changed:
        changed = False
        for group in found.all():
            mine = set(group.nodes)
            readers = {reader for node in mine for reader in kinds.readers.get(node, ()) if reader not in mine}
            others = {found.of.get(reader) for reader in readers}
            if mine & returned or len(others) != 1 or not readers.isdisjoint(found.copied):
                continue
            (other,) = others
            if other is None or other.late != group.late or other.writes != group.writes or other.draws != group.draws:
                continue
            inputs = {source for node in mine for source in kinds.sources(node)
                      if source not in mine and source not in found.copied and source.op == "call_function"}
            handed = [node for node in mine if not kinds.readers.get(node, {}).keys() <= mine]
            pointwise = not any(map(is_reduction, mine))
            if sum(map(size_of, inputs)) <= sum(map(size_of, handed)) or pointwise and group.late:
                found.enter(Group([*group.nodes, *other.nodes], other.late, other.writes))
                changed = True


def _compute_again(found: Groups, returned: set[fx.Node]) -> None:
    kinds = found.kinds
    for value in kinds.nodes:
        if value not in found.of or value in kinds.late or value in returned or value in found.copied \
                or found.of[value].writes or found.of[value].draws or _is_kept(value):
            continue
        mine = found.of[value]
        outside = [r for r in kinds.readers.get(value, ()) if found.of.get(r) is not mine and r not in found.copied]
        if not outside or not all(reader in kinds.late and reader in found.of for reader in outside):
            continue
        cone, ends, large, left = {value}, set(), set(), [value]
        while left:
            for source in kinds.sources(left.pop()):
                if source in found.copied or source in cone:
                    continue
                if size_of(source) * _SMALL <= size_of(value):
                    ends.add(source)
                elif found.of.get(source) is mine and not _is_kept(source):
                    cone.add(source)
                    left.append(source)
                else:
                    large.add(source)
        if not kinds.changed.isdisjoint(ends | large):
            continue
        if len(large) <= 1 and sum(map(size_of, large)) <= size_of(value) and len(cone) <= _CONE:
            found.again |= cone
            found.ends |= {source for source in ends | large if source in found.of}


def _leave_copies(found: Groups) -> None:
    for group in found.all():
        node = group.nodes[0]
        if len(group.nodes) == 1 and is_copy(node) and node not in found.copied \
                and all(source in found.of or not found.makes_for_itself(group, source) for source in found.kinds.sources(node)):
            del found.of[node]


def _is_kept(node: fx.Node) -> bool:
    return is_reduction(node) or is_atomic(node) or len(leaves(node.meta["val"])) != 1
