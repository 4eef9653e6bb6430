"""One op in a graph, split along an axis by the table of dimensions and run in parts: what the whole gives?"""

import pytest

torch = pytest.importorskip("torch")

from lowtide.frontend.draft import Op
from lowtide.torch.program.describe import describe, returned
from lowtide.torch.tensors.arguments import tensors_in
from lowtide.torch.tensors.operators import DTYPES

import lowtide

TYPES = {name: dtype for dtype, name in DTYPES.items()}


class NotTheSame(AssertionError):
    """Parts of an op do not give what the whole gives."""


class _Tensors:
    """Storages by number, as the builder of a program knows them."""

    def __init__(self):
        self.list = []

    def find(self, value):
        return next((i for i, t in enumerate(self.list) if t is value), None)

    def add(self, value):
        found = self.find(value)
        if found is None:
            self.list.append(value)
            found = len(self.list) - 1
        return found


class OneOp:
    """An op on real tensors, each in a storage of its own; kind: what the graph says that it is."""

    def __init__(self, target, arguments, kind=None):
        self.target, self.given = target, arguments
        self.names = [a.name for a in target._schema.arguments]
        made = target(**self._call(arguments))
        self.results = [t for t in tensors_in(made)]
        self.tensors = _Tensors()
        inputs = [self.tensors.add(t) for t in tensors_in(list(arguments.values()))]
        outputs = [self.tensors.add(t) for t in self.results]
        self.op = Op("op", kind or str(target.overloadpacket), list(dict.fromkeys(inputs)), outputs, 1)
        describe(self.tensors, self.op, self._with_defaults(), returned(target, made))

    def _with_defaults(self):
        full = {}
        for a in self.target._schema.arguments:
            if a.name in self.given or a.has_default_value():
                full[a.name] = self.given.get(a.name, a.default_value)
        return full

    def _call(self, arguments):
        return arguments

    def graph(self, shapes=None):
        """shapes: of tensors, where these are not those of the operands."""
        tensors = []
        for i, t in enumerate(self.tensors.list):
            whole = t if t._base is None else t._base
            shape = (shapes or {}).get(i, list(whole.shape))
            tensors.append({"name": f"t{i}", "bytes": t.untyped_storage().nbytes(), "shape": shape,
                            "dtype": DTYPES[t.dtype]})
        op = {key: getattr(self.op, key) for key in ("name", "kind", "inputs", "outputs", "time", "operands", "results",
                                                     "arguments")}
        return lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "tensors": tensors, "ops": [op],
                                        "outputs": self.op.outputs})

    def axes(self):
        """(tensor, shape, dimension) of every axis that could be asked for: each dimension of each operand and result,
        and of a dimension that can be taken as two of two indices or more, both."""
        found = []
        for entry in (*self.op.operands, *self.op.results):
            shape = entry["shape"]
            for d, n in enumerate(shape):
                if n > 1:
                    found.append((entry["tensor"], shape, d))
                if not self.tensors.list[entry["tensor"]].is_contiguous():
                    continue
                outer = next((k for k in range(2, n) if n % k == 0), None)
                if outer:
                    split = [*shape[:d], outer, n // outer, *shape[d + 1:]]
                    found += [(entry["tensor"], split, d), (entry["tensor"], split, d + 1)]
        return [axis for i, axis in enumerate(found) if axis not in found[:i]]

    def check(self):
        """Runs the op in parts along every axis that it carries; the set of (argument, dimension) that it does."""
        carried = set()
        for tensor, shape, dim in self.axes():
            graph = self.graph({tensor: shape})
            n = shape[dim]
            if not self._is_whole(tensor):
                continue
            entry = graph.dimensions([(tensor, dim)])["ops"][0]
            if entry is None:  # it reads nothing of that tensor
                continue
            if not entry["carries"]:
                assert entry["reason"] and entry["cause"] in ("mixes", "misplaced", "conflict", "unknown"), entry
                continue
            n = max(n, entry["longest"])
            sizes = [n // 2, n - n // 2] if n > 2 else [1, 1]
            self._compare(graph, (tensor, dim), sizes)
            for given, view in zip(self.op.operands, entry["operands"], strict=True):
                if view["state"] == "split":
                    carried.add((given["argument"], view["dim"]))
        return carried

    def check_crop(self, tensor, dim):
        """Runs the op in parts along an axis of a tensor of which it sees the first slices."""
        graph = self.graph()
        entry = graph.dimensions([(tensor, dim)])["ops"][0]
        n = entry["longest"]
        assert entry["carries"] and self.tensors.list[tensor]._base.shape[dim] == n > entry["extent"], entry
        self._compare(graph, (tensor, dim), [n // 2, n - n // 2])

    def _is_whole(self, tensor):
        """Does the tensor take all of its storage?"""
        t = self.tensors.list[tensor]
        return t.untyped_storage().nbytes() == t.numel() * t.itemsize

    def _compare(self, graph, axis, sizes):
        parts, first = [], 0
        for size in sizes:
            reach = graph.dimensions([axis], slices=size, first=first)
            parts.append((first, size, reach, self._run(reach, first, size)))
            first += size
        entry, states = parts[0][2]["ops"][0], parts[0][2]["tensors"]
        if entry.get("before"):
            assert all(view["state"] == "split" for view in entry["results"])
            return
        for i, view in enumerate(entry["results"]):
            number = self.op.results[i].get("index", i)
            whole = self.results[i] if len(self.results) == len(self.op.results) else self.results[number]
            found = []
            for start, size, _, results in parts:
                value = results[i]
                if entry["weight"] == "share" and view["state"] != "whole":
                    value = value * (min(size, entry["extent"] - start) / entry["extent"])
                if entry["weight"] == "total" and view["state"] == "partial":
                    value = value / self.results[1]
                found.append(value)
            if view["state"] == "split":
                assert states[self.op.results[i]["tensor"]]["state"] == "split"
                for (start, size, _, _), value in zip(parts, found, strict=True):
                    index = torch.arange(whole.shape[view["dim"]]) // view["inner"] % view["extent"]
                    keep = (index >= start) & (index < start + size)
                    self._same(value, whole[(slice(None),) * view["dim"] + (keep,)], axis, i)
            elif view["state"] == "partial":
                wide = torch.float64 if whole.dtype.is_floating_point else whole.dtype
                self._same(sum(v.to(wide) for v in found).to(whole.dtype), whole, axis, i)
            elif not view.get("before"):
                for value in found:
                    self._same(value, whole, axis, i)

    def _same(self, value, whole, axis, result):
        loose = {"rtol": 3e-2, "atol": 3e-2} if whole.dtype in (torch.bfloat16, torch.float16) else \
            {"rtol": 1e-4, "atol": 1e-4} if whole.dtype in (torch.float32, torch.complex64) else {}
        try:
            torch.testing.assert_close(value, whole, equal_nan=True, **loose)
        except AssertionError as error:
            raise NotTheSame(f"{self.op.kind} {self.op.arguments} along {axis}, result {result}: {error}") from None

    def _run(self, reach, first, size):
        """The results of a part, on storages that hold its slices alone."""
        entry = reach["ops"][0]
        part = entry["part"]
        if entry.get("before"):
            return None
        storages = {}
        for i, t in enumerate(self.tensors.list):
            state = reach["tensors"][i]
            flat = _flat(t)
            if state["state"] == "split":
                rounds = flat.view(torch.uint8).reshape(-1, state["extent"], state["stride"])
                flat = rounds[:, first:first + size].reshape(-1).clone().view(t.dtype)
            storages[i] = flat
        call = dict(self.given)
        for view, given in zip(entry["operands"], part["operands"], strict=True):
            flat = storages[given["tensor"]]
            if view["state"] == "whole" or view.get("from_whole"):
                flat = _flat(self.tensors.list[given["tensor"]])
            value = flat.as_strided(given["shape"], given["strides"], given["offset"])
            if "index" in given:
                call[given["argument"]] = list(call[given["argument"]])
                call[given["argument"]][given["index"]] = value
            else:
                call[given["argument"]] = value
        for name, value in part["arguments"].items():
            if not isinstance(value, dict) and not isinstance(self.given.get(name), (torch.dtype, torch.device)) \
                    and value != self.op.arguments.get(name):
                call[name] = value
        try:
            made = self.target(**self._call(call))
        except (RuntimeError, IndexError) as error:
            raise NotTheSame(f"{self.op.kind}: a part does not run: {error}") from None
        made = [t for t in tensors_in(made)]
        numbers = [r.get("index", i) for i, r in enumerate(self.op.results)]
        made = made if len(made) == len(self.op.results) else [made[n] for n in numbers]
        for value, said in zip(made, part["results"], strict=True):
            if list(value.shape) != said["shape"]:
                raise NotTheSame(f"{self.op.kind}: a part's result is {list(value.shape)}, not {said['shape']}")
            strides = [(a, b) for a, b, n in zip(value.stride(), said["strides"], value.shape, strict=True) if n > 1]
            if any(a != b for a, b in strides):
                raise NotTheSame(f"{self.op.kind}: a part's result has strides {value.stride()}, not {said['strides']}")
        return made


def _flat(t):
    return torch.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (t.untyped_storage().nbytes() // t.itemsize,))
