"""Clusters that write a result over an input that dies, as Inductor compiles them when it is told so.

Whether Inductor's code does it cannot be known before it is compiled.  So a twin of the cluster is compiled and run beside the
cluster on made-up numbers: it is used only if the result lies where the input did, and all results have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ...frontend import progress
from ..compat.inductor import compile_kernels
from ..compat.tensors import is_dense
from ..device.identity import untraced
from ..pricing.costs import materialise
from .cluster import Cluster, Twin, copy_of, mode_of

_LEAST = 16 << 10  # bytes of a result that is worth it


def probe(clusters: Iterable[Cluster]) -> bool:
    """Compile twins of those that have none yet; has any got one?"""
    found = False
    new = [cluster for cluster in dict.fromkeys(clusters) if not cluster.is_probed and cluster.is_compiled and cluster.repeats
           and not cluster.kind]
    for i, cluster in enumerate(new):
        progress.stage("compiling kernels that write in place", i, len(new))
        cluster.is_probed = True
        for pair in _candidates(cluster):
            cluster.twin = _twin(cluster, *pair)
            if cluster.twin is not None:
                found = True
                break
    return found


def _candidates(cluster: Cluster) -> list[tuple[int, int]]:
    """Inputs, each with a result that could lie there, the largest first: at most two."""
    found: dict[int, int] = {}
    for i, given in enumerate(cluster.inputs):
        for j, result in enumerate(cluster.results):
            if i not in found and j not in found.values() and _lie_alike(given, result):
                found[i] = j
    return sorted(found.items(), key=lambda pair: -cluster.inputs[pair[0]].untyped_storage().nbytes())[:2]


def _lie_alike(given: torch.Tensor, result: torch.Tensor) -> bool:
    size = given.numel() * given.element_size()
    return ((given.shape, given.stride(), given.dtype, given.device) == (result.shape, result.stride(), result.dtype, result.device)
            and given.storage_offset() == 0 and given.untyped_storage().nbytes() == size >= _LEAST and is_dense(given)
            and result.untyped_storage().nbytes() == size)


def _twin(cluster: Cluster, given: int, result: int) -> Twin | None:
    device = cluster.inputs[given].device
    try:
        run = compile_kernels(copy_of(cluster.module), cluster.inputs, mode_of(cluster), given)
        with untraced(device):
            numbers: list[Any] = materialise(cluster.inputs, device)
            for t in numbers:
                if t.dtype.is_floating_point and t.numel() and not t.is_cuda and is_dense(t):
                    t.uniform_(0.25, 0.75)
            expected = cluster.run([t.clone() for t in numbers])
            place = numbers[given].data_ptr()
            made = run(list(numbers))
            same = all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))
            alone = [t.data_ptr() == place for t in made] == [j == result for j in range(len(made))]
    except Exception:  # then there is none
        return None
    return Twin(run, given, result) if same and alone else None
