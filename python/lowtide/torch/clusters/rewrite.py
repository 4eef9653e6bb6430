"""A joint graph -> the same step with its clusters as ops."""

from __future__ import annotations

import contextlib
import heapq
import operator
from collections.abc import Container, Iterator
from typing import Any

from torch import fx

from ...frontend import progress
from ...frontend.errors import CaptureError
from ..compat.dispatch import OpOverload
from ..tracing.symbolic_layouts import SymbolicLayouts
from .cluster import CLUSTER, Cluster, cluster_of_node, compile_clusters, enter_draws, say_not_compiled
from .form import Form, form_of
from .groups import ORDERED, Group, Groups, grouped
from .kinds import SEED, Kinds
from .prepare import Concrete, Ready, prepared

BORDERS = "lowtide_borders"  # meta of a cluster's node: why it ends where it does

_NOT_OF_A_CLUSTER = ("val", "tensor_meta", "desc", "original_aten", "ac_graph_id", "recompute")


def clustered(joint: fx.GraphModule, in_parts: bool = False, layouts: SymbolicLayouts | None = None) -> tuple[fx.GraphModule, list[Cluster]]:
    """The graph with its clusters as ops, and these, each once.  joint: as prepare.py leaves it; it is not changed.  in_parts: as of
    groups.grouped.  layouts: as of form_of."""
    enter_draws()
    made = _Writer(joint, grouped(Kinds(joint), in_parts), layouts).graph_module()
    return made, list(dict.fromkeys(map(cluster_of_node, made.graph.find_nodes(op="call_function", target=CLUSTER))))


class NotClustered(Exception):
    """No clusters of a graph can run; the text says why."""


class NotCompiled(NotClustered):
    """Inductor can compile none of a graph's clusters.  Op by op they would compute what eager kernels do, but a plan could keep or free
    only what a whole cluster makes."""


def ready_for_clusters(joint: fx.GraphModule, trained: Container[int], real: bool, concrete: Concrete | None = None) -> Ready:
    """The joint graph, which was traced for clusters (prepare.traced_for), as its clusters are formed.  joint is changed.

    trained: as of lay_out_gradients.  real: can kernels run here?  concrete: as of prepared.  Raises NotClustered, CaptureError for a
    graph that no plan can run, and NotOpen.
    """
    progress.stage("forming clusters of ops")
    with _foreseeing():
        return prepared(joint, trained, real, concrete)


def with_clusters(ready: Ready, real: bool, in_parts: bool = False) -> fx.GraphModule:
    """The same step as `ready`, which is not changed, with clusters as ops; compiled if kernels can run here.

    in_parts: may the step run in parts?  Raises NotClustered, NotCompiled and NotOpen.
    """
    with _foreseeing():
        made, clusters = clustered(ready.joint, in_parts, ready.layouts)
    if real:
        compile_clusters(clusters)
        if clusters and all(cluster.is_refused for cluster in clusters):
            raise NotCompiled(f"Inductor can compile no cluster of its ops: {clusters[0].why_not}")
        say_not_compiled(clusters)
    return made


def draws(ready: Ready) -> bool:
    """Does a step draw random numbers from seeds, so that its clusters are others where it may run in parts?"""
    return any(node.meta.get(SEED) for node in ready.joint.graph.nodes)


@contextlib.contextmanager
def _foreseeing() -> Iterator[None]:
    try:
        yield
    except CaptureError:
        raise
    except Exception as error:  # Inductor's passes may meet what nobody has seen yet
        line = (str(error).strip().splitlines() or ["no message"])[0]
        raise NotClustered(f"no clusters of its ops could be formed: {type(error).__name__}: {line}") from error


class _Writer:
    def __init__(self, joint: fx.GraphModule, groups: Groups, layouts: SymbolicLayouts | None) -> None:
        self._joint, self._groups, self._kinds = joint, groups, groups.kinds
        self._graph = fx.Graph()
        self._made: dict[fx.Node, fx.Node] = {}
        self.forms = {group: form_of(joint, groups, group, layouts) for group in groups.all()}

    def graph_module(self) -> fx.GraphModule:
        for unit in self._in_order():
            if isinstance(unit, Group):
                self._cluster(unit, self.forms[unit])
            else:
                self._copy(unit)
        self._copy(self._kinds.nodes[-1])
        made = fx.GraphModule(self._joint, self._graph)
        made.meta.update(self._joint.meta)
        return made

    def _unit(self, node: fx.Node) -> Group | fx.Node:
        return self._groups.of.get(node, node)

    def _in_order(self) -> list[Group | fx.Node]:
        """Clusters and ops for themselves, each after what it reads; else where the last of a cluster's nodes is."""
        kinds, place = self._kinds, self._kinds.place
        units: dict[Group | fx.Node, int] = {}
        for node in kinds.nodes:
            if node.op != "output" and not kinds.passes_on(node) and not (node in self._groups.copied and node not in self._groups.of):
                units[self._unit(node)] = place[node]  # of a cluster's nodes the last
        needs: dict[Any, set[Any]] = {}
        effect = None
        for unit in units:
            read = self.forms[unit].inputs if isinstance(unit, Group) else unit.all_input_nodes
            needs[unit] = {self._unit(maker) for node in read for maker in kinds.makers(node)} - {unit}
        for node in kinds.nodes:
            if kinds.apart.get(node) in ORDERED:
                if effect is not None:
                    needs[node].add(effect)
                effect = node
        readers: dict[Any, list[Any]] = {unit: [] for unit in units}
        for unit, needed in needs.items():
            for one in needed:
                readers[one].append(unit)
        missing = {unit: len(needed) for unit, needed in needs.items()}
        index = {unit: i for i, unit in enumerate(units)}
        ready = [(units[unit], index[unit], unit) for unit in units if not missing[unit]]
        heapq.heapify(ready)
        found: list[Group | fx.Node] = []
        while ready:
            unit = heapq.heappop(ready)[2]
            found.append(unit)
            for reader in readers[unit]:
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, (units[reader], index[reader], reader))
        assert len(found) == len(units), "clusters form no loop"
        return found

    def _get(self, node: fx.Node) -> fx.Node:
        if node not in self._made:
            assert self._kinds.passes_on(node), f"{node} is read before it is made"
            self._copy(node)
        return self._made[node]

    def _copy(self, node: fx.Node) -> None:
        for source in node.all_input_nodes:
            self._get(source)
        self._made[node] = self._graph.node_copy(node, self._made.__getitem__)

    def _cluster(self, group: Group, form: Form) -> None:
        inputs = [self._get(node) for node in form.inputs]
        sizes = [self._get(node) for node in form.sizes]
        made = self._graph.create_node("call_function", CLUSTER, (form.cluster.key, inputs, *([sizes] if sizes else [])), {},
                                       name="fused_" + "_".join(_words(group.nodes)))
        meta = {key: value for key, value in group.nodes[-1].meta.items() if key not in _NOT_OF_A_CLUSTER}
        meta |= {"partitioner_tag": "is_backward" if group.late else "is_forward", BORDERS: self._groups.borders(group)}
        made.meta = meta | {"val": [node.meta["val"] for node in form.results]}
        for i, node in enumerate(form.results):
            item = self._graph.call_function(operator.getitem, (made, i))
            item.meta = meta | {"val": node.meta["val"]}
            self._made[node] = item


def _words(nodes: list[fx.Node]) -> list[str]:
    """The first of its operators, for a name."""
    names = dict.fromkeys(node.target.overloadpacket.__name__.strip("_") for node in nodes
                          if isinstance(node.target, OpOverload))
    return list(names)[:3]
