"""Small functions as graphs, and graphs run op by op on real tensors: both sides of a rule."""

import pytest

torch = pytest.importorskip("torch")

from lowtide.frontend.draft import Op
from lowtide.torch.program.describe import describe, returned
from lowtide.torch.tensors.arguments import tensors_in
from lowtide.torch.tensors.operators import DTYPES
from torch.utils._python_dispatch import TorchDispatchMode

import lowtide

TYPES = {name: dtype for dtype, name in DTYPES.items()}


class NotTheSame(AssertionError):
    """The two sides of a rule make other values."""


class Recorded(TorchDispatchMode):
    """The graph of what a function does to its tensors: views are folded into what they are views of."""

    def __init__(self, inputs):
        super().__init__()
        self.storages, self.ops, self.targets = {}, [], {}
        self.tensors = [self._add(t) for t in inputs]

    def find(self, value):
        return self.storages.get(value.untyped_storage()._cdata, (None,))[0]

    def _add(self, t):
        found = self.find(t)
        if found is None:
            found = len(self.storages)
            self.storages[t.untyped_storage()._cdata] = found, t
        return found

    def __torch_dispatch__(self, target, types, args=(), kwargs=None):
        made = target(*args, **(kwargs or {}))
        names = [a.name for a in target._schema.arguments]
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        fresh = [t for t in tensors_in(made) if self.find(t) is None]
        if not fresh:
            return made
        inputs = list(dict.fromkeys(self._add(t) for t in tensors_in(list(given.values()))))
        op = Op(f"{target.overloadpacket.__name__}{len(self.ops)}", str(target.overloadpacket), inputs,
                [self._add(t) for t in fresh], 100)
        full = {a.name: given.get(a.name, a.default_value) for a in target._schema.arguments
                if a.name in given or a.has_default_value()}
        describe(self, op, full, returned(target, made))
        self.ops.append(op)
        self.targets[str(target.overloadpacket)] = target
        return made

    def graph(self, kept):
        outputs = list(dict.fromkeys(self.find(t) for t in kept))
        tensors = [{"bytes": t.untyped_storage().nbytes(), "dtype": DTYPES[t.dtype],
                    "shape": [t.untyped_storage().nbytes() // t.element_size()]} for _, t in self.storages.values()]
        keys = ("name", "kind", "inputs", "outputs", "time", "operands", "results", "arguments")
        return lowtide.Graph.from_dict({
            "format": "lowtide-graph", "version": 1, "tick": "us", "tensors": tensors, "outputs": outputs,
            "ops": [{key: getattr(op, key) for key in keys} for op in self.ops]})


def recorded(function, inputs):
    """(graph, operators by kind) of a function that returns one tensor or several."""
    recorder = Recorded(inputs)
    with recorder:
        made = function(*inputs)
    return recorder.graph(made if isinstance(made, tuple) else (made,)), recorder.targets


def run(graph, targets, inputs):
    """The outputs of a graph, in the graph's own order; inputs: its first tensors."""
    graph = graph if isinstance(graph, dict) else graph.to_dict()
    storages = {i: _flat(t) for i, t in enumerate(inputs)}
    for place in graph.get("order") or range(len(graph["ops"])):
        op = graph["ops"][place]
        call = {name: _value(value) for name, value in op.get("arguments", {}).items() if not _is_type(value)}
        for entry in op["operands"]:
            flat = storages[entry["tensor"]]
            assert flat.dtype == TYPES[entry["dtype"]]
            view = flat.as_strided(entry["shape"], entry["strides"], entry.get("offset", 0))
            if "index" in entry:
                call.setdefault(entry["argument"], []).append(view)
            else:
                call[entry["argument"]] = view
        target = targets.get(op["kind"]) or getattr(torch.ops.aten, op["kind"].removeprefix("aten.")).default
        made = list(tensors_in(target(**{k: v for k, v in call.items() if v is not None})))
        for i, entry in enumerate(op["results"]):
            value = made[entry.get("index", i)]
            assert list(value.shape) == entry["shape"], (op, value.shape)
            strides = [(a, b) for a, b, n in zip(value.stride(), entry["strides"], value.shape, strict=True) if n > 1]
            if any(a != b for a, b in strides):
                raise NotTheSame(f"{op['kind']} makes strides {value.stride()}, not {entry['strides']}")
            storages[entry["tensor"]] = _flat(value)
    return [storages[i] for i in graph["outputs"]]


def _flat(t):
    return torch.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (t.untyped_storage().nbytes() // t.itemsize,))


def _is_type(value):
    return isinstance(value, dict) and "dtype" in value or value in ("strided", "cpu")


def _value(value):
    if isinstance(value, dict):
        return float(value["float"])
    return getattr(torch, value) if value in ("contiguous_format", "preserve_format") else value


def compare(found, expected, exact):
    for a, b in zip(found, expected, strict=True):
        if exact:
            same = torch.equal(a.view(torch.uint8), b.view(torch.uint8)) or (
                a.dtype.is_floating_point and torch.equal(a.isnan(), b.isnan())
                and torch.equal(a.nan_to_num(), b.nan_to_num()))
            if not same:
                raise NotTheSame("bits differ")
            continue
        loose = {"rtol": 3e-2, "atol": 3e-2} if a.dtype in (torch.bfloat16, torch.float16) else \
            {"rtol": 1e-4, "atol": 1e-4} if a.dtype in (torch.float32, torch.complex64) else {}
        try:
            torch.testing.assert_close(a, b, **loose)
        except AssertionError as error:
            raise NotTheSame(str(error)) from None
