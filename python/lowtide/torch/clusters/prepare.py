"""A joint graph traced with Inductor's decompositions -> the graph whose nodes are clustered.

Inductor's own passes run on it (patterns of attention, folded constants, padded products).  They replace random draws by functions
of seeds.  One op draws all seeds of a graph from the default generator, as Inductor's code does, so that the loss has its bits; it
runs once, and whatever reads a seed can be computed again with the same numbers.  The seeds are views of that one result: as
arguments of their own they leave equal layers equal.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from ..compat.fake import detect_fake_mode
from ..compat.inductor import decompositions, joint_passes
from ..tensors.operators import fake_mode_of, is_tangent, leaves
from ..tracing.gradient_layout import lay_out_gradients
from ..tracing.real_types import correct_types
from ..tracing.shared_inputs import tell_apart
from ..tracing.symbolic_layouts import SymbolicLayouts
from ..tracing.unused_results import lay_out_sums
from .higher_order import as_templates
from .kinds import SEED
from .layout import lay_out_convolutions

aten, prims = torch.ops.aten, torch.ops.prims

SIDE = "partitioner_tag"  # meta of AOTAutograd: of the forward, or of the backward


def traced_for(fused: bool) -> dict[str, Any]:
    """Arguments of AOTAutograd for a tracing with clusters, or for one without."""
    return {"decompositions": decompositions()} if fused else {}


@dataclass(frozen=True)
class Ready:
    """A joint graph of which clusters are formed.  layouts: how its tensors lie at other sizes, if these are open."""

    joint: fx.GraphModule
    layouts: SymbolicLayouts | None


Concrete = Callable[[fx.GraphModule], SymbolicLayouts]


def prepared(joint: fx.GraphModule, trained: Container[int], real: bool, concrete: Concrete | None = None) -> Ready:
    """joint is changed.  trained: as of lay_out_gradients.  real: can kernels run here?  concrete: makes open sizes of the graph, which are
    symbols, those at hand."""
    inputs = [node.meta.get("val") for node in joint.graph.find_nodes(op="placeholder")]  # none of what is no tensor
    as_templates(joint, fused=True)
    mode = detect_fake_mode(inputs)
    assert mode is not None, "a graph is traced with fake tensors"
    joint = joint_passes(joint, mode)
    joint.graph.eliminate_dead_code()  # passes leave what made the operands of what they folded, such as those of a product with 0
    _keep_sides(joint.graph)
    _draw_seeds_once(joint.graph)
    _drop_summed(joint.graph)
    FakeTensorProp(joint, mode).propagate_dont_convert_inputs(*inputs)  # passes leave fakes that share no storages
    layouts = None
    if concrete:
        layouts = concrete(joint)
        mode = fake_mode_of(next(iter(leaves([node.meta.get("val") for node in joint.graph.find_nodes(op="placeholder")]))))
    if real:
        lay_out_convolutions(joint, mode)
        tell_apart(joint, trained)
        correct_types(joint, lay_out_sums(joint))
    lay_out_gradients(joint, trained)
    joint.recompile()
    return Ready(joint, layouts)


def _keep_sides(graph: fx.Graph) -> None:
    """A pass may have the forward read a node of the backward that computes the same as one of its own; this one is of the forward then."""
    follows: set[fx.Node] = set()  # what needs a tangent
    for node in graph.nodes:
        if is_tangent(node) or not follows.isdisjoint(node.all_input_nodes):
            follows.add(node)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node.meta.get(SIDE) == "is_forward" and node not in follows:
            for source in node.all_input_nodes:
                if source.meta.get(SIDE) == "is_backward":
                    source.meta[SIDE] = "is_forward"


def _draw_seeds_once(graph: fx.Graph) -> None:
    for node in list(graph.nodes):
        made: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None
        if node.target is prims.inductor_seeds.default:
            count, device = node.args
            made = aten.randint.low, (-2**63, 2**63 - 1, [count]), {"dtype": torch.int64, "device": device}
        elif node.target is prims.inductor_lookup_seed.default:
            seeds, i = node.args
            made = aten.select.int, (seeds, 0, i), {}
        if made:
            target, args, kwargs = made
            with graph.inserting_before(node):
                new = graph.call_function(target, args, kwargs)
            new.meta = node.meta | {SEED: True}
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def _drop_summed(graph: fx.Graph) -> None:
    """Have sums drop the dimensions that a view behind them drops.  Autograd keeps these in the sum for a bias; a view of a cluster's
    result is an op of its own, which takes the host as long as a small cluster does.  A sum of the forward stays there, though its view is
    of the backward: by then what it reads may have been written to."""
    for node in graph.find_nodes(op="call_function", target=aten.sum.dim_IntList):
        if len(node.args) < 3 or not node.args[2] or len(node.users) != 1:
            continue
        source, dims, _ = node.args
        (view,) = node.users
        shape = source.meta["val"].shape
        if not shape:  # though it can be summed along -1
            continue
        summed = {dim % len(shape) for dim in dims or ()} or set(range(len(shape)))
        left = [n for i, n in enumerate(shape) if i not in summed]
        if view.target is aten.view.default and all(type(n) is int for n in (*left, *view.args[1])) and left == list(view.args[1]):
            node.args = (source, dims)
            node.meta = {**node.meta, "val": view.meta["val"]}
            view.replace_all_uses_with(node)
            graph.erase_node(view)
