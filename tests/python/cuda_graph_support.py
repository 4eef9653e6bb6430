"""A CUDA graph without a GPU: it records what runs, and runs it again in the same memory.

As on a GPU nothing is computed while it records, and the host cannot read.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

aten = torch.ops.aten


class _Recorder(TorchDispatchMode):
    """Notes calls; makes what they return, and writes nothing."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (aten._local_scalar_dense.default, aten.is_nonzero.default, aten.nonzero.default):
            raise RuntimeError("operation not permitted when stream is capturing")
        state = torch.get_rng_state()
        copies, mine = {}, (args, kwargs)
        if func._schema.is_mutable:  # it writes to copies
            mine = tree_map_only(torch.Tensor, lambda t: copies.setdefault(id(t), (t.clone(), t))[0], mine)
        made = func(*mine[0], **mine[1])
        torch.set_rng_state(state)
        original = {id(copy): t for copy, t in copies.values()}
        made = tree_map_only(torch.Tensor, lambda t: original.get(id(t), t), made)
        new = new_among(made, (args, kwargs))
        if new or copies:
            self.calls.append((func, args, kwargs, new))  # whose memory stays, as a pool's does
        for t in new:
            if t.dtype.is_floating_point and t.numel():
                t.fill_(float("nan"))  # nothing is computed yet
        return made


def new_among(made, given):
    """The tensors among results that lie in none of the arguments' storages."""
    known = {t.untyped_storage()._cdata for t in tree_leaves(given) if isinstance(t, torch.Tensor)}
    return [t for t in tree_leaves(made) if isinstance(t, torch.Tensor) and t.untyped_storage()._cdata not in known]


class StandIn:
    """CudaGraph on a CPU."""

    made: list = []

    def __init__(self, device, before=None, generators=()):
        self.before, self.generators, self.replays = before, list(generators), 0
        StandIn.made.append(self)

    def record(self, run):
        recorder = _Recorder()
        with recorder:
            results = run()
        self.calls = recorder.calls
        return results

    def replay(self):
        self.replays += 1
        for func, args, kwargs, places in self.calls:
            for place, value in zip(places, new_among(func(*args, **kwargs), (args, kwargs)), strict=True):
                place.copy_(value)
