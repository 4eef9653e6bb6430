"""Clusters that write a result over an input that dies, as Inductor compiles them when it is told so.

Whether Inductor's code does it cannot be known before it is compiled.  So a twin of the cluster is compiled and run beside the
cluster on made-up numbers: it is used only if the result lies where the input did, and all results have the same bits.

Few clusters of a step need to write in place.  So the step is planned first as if all could, and twins are compiled of those alone
that have to, for this plan to keep its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

import lowtide

from ...frontend import progress
from ...frontend.planning.copies import COMPUTES, Step
from ..compat.inductor import all_at_once
from ..compat.tensors import is_dense
from ..device.identity import untraced
from ..pricing.costs import materialise
from .cluster import Boxed, Cluster, Sizes, Twin, cluster_of_node, sizes_of_node

Code = tuple[Boxed, Callable[[Sizes], bool]]  # and is it right at these sizes?

_LEAST = 16 << 10  # bytes of a result that is worth it


@contextmanager
def assumed(calls: Iterable[fx.Node]) -> Iterator[bool]:
    """Within the block the clusters of these calls whose twins were not looked for are taken to write over the largest input that they
    could.  Are there any?"""
    entered = [(cluster, sizes, pairs[0]) for cluster, sizes in _unknown(calls) for pairs in [_candidates(cluster, sizes)] if pairs]
    try:
        for cluster, sizes, pair in entered:
            cluster.enter_twin(sizes, Twin(cluster.run, *pair), is_known=False)
        yield bool(entered)
    finally:
        for cluster, sizes, _ in entered:
            cluster.enter_twin(sizes, None, is_known=False)


def needed(steps: Sequence[Step], graph: lowtide.Graph, memory: Sequence[int], budget: int) -> set[int]:
    """The ops of a plan that have to write over an input: with the result beside that input the plan would exceed the budget.  memory:
    live bytes at each step."""
    return {step[1] for step, held in zip(steps, memory, strict=True)
            if step[0] in COMPUTES and held + sum(graph.tensor(t).bytes for t in step[2:]) > budget and step[2:]}


def probe(calls: Iterable[fx.Node]) -> list[bool]:
    """Compile twins of the clusters of these calls whose twins were not looked for; which of them have got one?"""
    new = _unknown(calls)
    found: dict[tuple[Cluster, Sizes], Twin] = {}
    open_ = [(cluster, sizes, _candidates(cluster, sizes)) for cluster, sizes in new]
    while open_ := [(cluster, sizes, pairs) for cluster, sizes, pairs in open_ if pairs]:
        progress.stage("compiling kernels that write in place", 0, len(open_))
        codes = _compiled([(cluster, sizes, pairs[0][0]) for cluster, sizes, pairs in open_])
        for i, ((cluster, sizes, pairs), code) in enumerate(zip(open_, codes, strict=True)):
            pair = pairs.pop(0)
            twin = None if code is None else _twin(cluster, sizes, *pair, code)
            if twin:
                found[cluster, sizes] = twin
                pairs.clear()
            progress.stage("compiling kernels that write in place", i + 1, len(open_))
    for cluster, sizes in new:  # after all, so that those of an interrupted search are looked for again
        cluster.enter_twin(sizes, None)
    for (cluster, sizes), twin in found.items():
        cluster.enter_twin(sizes, twin)
    return [cluster.twin(sizes) is not None for cluster, sizes in new]


def _compiled(twins: Sequence[tuple[Cluster, Sizes, int]]) -> list[Code | None]:
    """What Inductor makes of clusters, each of which may write over an input; None where it fails."""
    try:
        with all_at_once():
            return [_code(*twin) for twin in twins]
    except Exception:  # one of the compilers that ran beside one another has failed: each by itself
        return [_code(*twin) for twin in twins]


def _code(cluster: Cluster, sizes: Sizes, given: int) -> Code | None:
    try:
        return cluster.by_inductor(given, sizes)
    except Exception:  # any of its parts may refuse
        return None


def _unknown(calls: Iterable[fx.Node]) -> list[tuple[Cluster, Sizes]]:
    distinct = dict.fromkeys((cluster_of_node(node), sizes_of_node(node)) for node in calls)
    return [(cluster, sizes) for cluster, sizes in distinct
            if cluster.is_compiled and cluster.repeats and not cluster.kind and not cluster.is_probed(sizes)]


def _candidates(cluster: Cluster, sizes: Sizes) -> list[tuple[int, int]]:
    """Inputs, each with a result that could lie there, the largest first: at most two."""
    found: dict[int, int] = {}
    inputs, results = cluster.lies(sizes)
    for i, given in enumerate(inputs):
        for j, result in enumerate(results):
            if i not in found and j not in found.values() and _lie_alike(given, result):
                found[i] = j
    return sorted(found.items(), key=lambda pair: -inputs[pair[0]].untyped_storage().nbytes())[:2]


def _lie_alike(given: torch.Tensor, result: torch.Tensor) -> bool:
    size = given.numel() * given.element_size()
    return ((given.shape, given.stride(), given.dtype, given.device) == (result.shape, result.stride(), result.dtype, result.device)
            and given.storage_offset() == 0 and given.untyped_storage().nbytes() == size >= _LEAST and is_dense(given)
            and result.untyped_storage().nbytes() == size)


def _twin(cluster: Cluster, sizes: Sizes, given: int, result: int, code: Code) -> Twin | None:
    """The twin with this code; None if it does not write the result over the input, or makes other bits."""
    inputs, _ = cluster.lies(sizes)
    device = inputs[given].device
    run, holds = code
    try:
        with untraced(device):
            numbers: list[Any] = materialise(inputs, device)
            for t in numbers:
                if t.dtype.is_floating_point and t.numel() and not t.is_cuda and is_dense(t):
                    t.uniform_(0.25, 0.75)
            expected = cluster.run([*sizes, *(t.clone() for t in numbers)])
            place = numbers[given].data_ptr()
            made = run([*sizes, *numbers])
            same = all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))
            alone = [t.data_ptr() == place for t in made] == [j == result for j in range(len(made))]
    except Exception:  # then there is none
        return None
    return Twin(run, given, result, holds) if same and alone else None
