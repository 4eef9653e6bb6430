"""A program and transforms -> the program of the transformed graph.

Ops that no transform changes run as before.  parts.py emits the parts of split ops, and ops that a substitution made or
whose operands it changed; joins.py emits joins, hoist.py the tangent of a hoisted backward.  The work of an op before the
parts is the op itself, if it makes all of its results then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Generic

import torch
from torch import fx

import lowtide

from ...frontend.errors import CaptureError
from ...frontend.price import Price
from ..clusters.cluster import CLUSTER, compile_clusters, known_cluster, say_not_compiled
from ..compat import pytree
from ..compat.tensors import is_dense
from ..pricing.trial import Trial
from ..program.emitter import Emitter, Run
from ..program.lowerings.random_draws import DrawEmitter
from ..program.program import AnyProgram, owned
from ..runtime.assumed_tangent import AssumedTangent
from ..tensors.operators import DTYPES, Kernel, arguments_of, leaves
from ..tracing.origins import unexpected
from .hoist import TangentEmitter
from .joins import AddEmitter, JoinEmitter, copied_bytes, lies_as
from .losses import RowsEmitter, SumEmitter, keeps_rows, kept_bytes, picking_bytes, summing_bytes
from .parts import ClusterPartEmitter, Key, PartCall, PartEmitter, Slice, apart, check, fake_like
from .rows import keeps_rows_bits, lies_otherwise, needs_trial

aten = torch.ops.aten
_TYPES = {name: dtype for dtype, name in DTYPES.items()}
_JOINS = ("lowtide.join", "lowtide.add")
# The ops that substitution rules make.
_SUBSTITUTES = {"aten.cat": aten.cat.default, "aten.mm": aten.mm.default, "aten.addmm": aten.addmm.default}
_BEFORE = -1  # the part number of work before the parts


def transformed_program(program: AnyProgram, transforms: list[dict[str, Any]], assumed_tangent: AssumedTangent | None = None,
                        price: Price | None = None) -> AnyProgram:
    """The program after these transforms.  assumed_tangent: for a hoisted backward.  price: prices the parts; None: the
    prices in the transforms.

    Raises CaptureError, which names the node, if no code can be generated.
    """
    transformed = _TransformedProgram(program, transforms, assumed_tangent, price is not None and price.real)
    try:
        runs = transformed.runs()
        if price is not None:
            transformed.price(price)
        return transformed.program(runs)
    except CaptureError:
        raise
    except Exception as error:  # an unforeseen error only means that the region is not split
        raise unexpected(error, transformed.at) from error


def splittable(program: AnyProgram) -> AnyProgram:
    """The program, with a graph that describes only ops for which code can be generated in parts."""
    left_out = {}
    for op, run in zip(program.graph.ops, program.runs, strict=True):
        runs = run.node is None or isinstance(run.emitter, DrawEmitter) and not op.operands \
            or run.emitter.part_of(run.node) or run.emitter.before_parts(run.node)
        if op.kind == "lowtide.update" or not runs:
            left_out[op.index] = {"described": False}
    return replace(program, graph=program.graph.edited(ops=left_out))


class _TransformedProgram(Generic[AnyProgram]):
    def __init__(self, program: AnyProgram, transforms: list[dict[str, Any]], assumed_tangent: AssumedTangent | None, real: bool) -> None:
        self._program, self._assumed_tangent, self._real = program, assumed_tangent, real  # real: can kernels run here?
        self._made = lowtide.transform(program.graph, transforms)
        self._graph: lowtide.Graph = self._made["graph"]
        self._ops = list(map(_entry, self._graph.ops))
        self._tensors = [{"bytes": t.bytes, "shape": t.shape, "dtype": t.dtype} for t in self._graph.tensors]
        self._wholes = program.graph.ops
        self._op_at = {op: i for i, op in enumerate(self._made["ops"])}
        self._keys: dict[int, tuple[Key, fx.Node]] = {}  # by the made graph's tensors
        self._fakes: dict[Key, torch.Tensor] = {}
        self._kernels: dict[int, Kernel] = {}  # of parts, by their ops
        self._called: dict[Any, Kernel] = {}  # the first of each kind
        self._trials: dict[Any, Trial] = {}  # by kernel and node
        self._moves: dict[Any, Kernel] = {}  # of joins, by what they are like
        self._alike: dict[Any, torch.Tensor] = {}  # what joins make, the first that is like it
        self._rows: dict[int, int] = {}  # of a loss, by the tensors that keep them
        self._copied: dict[int, int] = {}  # bytes beside them, by their ops
        self._joins: dict[int, Kernel] = {}  # what joins take is what these do
        self._last: dict[int, int] = {}  # what is put together so far -> all of it
        self._read: set[int] = set()  # by others than what puts parts together, or as a summand of what is read so
        for op in reversed(self._graph.order):
            entry = self._ops[op]
            if entry["kind"] in _JOINS and len(entry["inputs"]) > 1:
                (result,) = entry["outputs"]
                self._last[entry["inputs"][0]] = self._last.get(result, result)
            if entry["kind"] not in _JOINS or self._is_in_part(*entry["outputs"]) and entry["outputs"][0] in self._read:
                self._read.update(entry["inputs"])
        rules = [t for t in transforms if t["kind"] == "substitute"]
        self._has_rules = bool(rules)
        self._by_rules = {op for t in rules for op, *_ in t["prices"]}  # as the plan calls them
        self._has_rough_rules = any(not t.get("exact") for t in rules)
        self._hoisted = any(t["kind"] == "hoist" for t in transforms)
        self.at: fx.Node | None = None  # whose code is made

    def runs(self) -> list[Run]:
        """The computation of each op of the transformed graph."""
        self._know_originals()
        runs: dict[int, Run] = {}
        for op in self._graph.order:
            runs[op] = replace(self._run_of(op), part=self._part_of(op))
        return [runs[op] for op in range(len(runs))]

    def program(self, runs: list[Run]) -> AnyProgram:
        """The program of that graph, with what was noted of its ops and tensors meanwhile."""
        ops = {op.index: {key: self._ops[op.index][key] for key in ("time", "workspace", "in_place")} for op in self._graph.ops}
        tensors = {t.index: {key: self._tensors[t.index][key] for key in ("bytes", "shape")} for t in self._graph.tensors}
        graph = self._graph.edited(ops=ops, tensors=tensors)
        barrier = self._op_at[self._program.barrier]
        return replace(self._program, graph=graph, runs=runs, barrier=barrier, owners=dict(self._keys),
                       assumed_tangent=self._assumed_tangent if self._hoisted else self._program.assumed_tangent)

    def price(self, price: Price) -> None:
        """Note what parts take, in the graph; of what puts them together the time."""
        kernels = list({id(k): k for k in (*self._kernels.values(), *self._joins.values())}.values())
        if price.real:  # which runs them
            clusters = [known_cluster(kernel.args[0]) for kernel in kernels if kernel.target is CLUSTER]
            compile_clusters(clusters)
            say_not_compiled(clusters)
        price.prepare(kernels)
        prices = {id(kernel): price(kernel) for kernel in kernels}
        for op, kernel in self._kernels.items():
            entry = self._ops[op]
            entry["time"], workspace, held = prices[id(kernel)]
            entry["workspace"] = workspace + self._copied[op]
            made = dict(zip(map(id, leaves(kernel.results)), held, strict=False))
            for result, t in zip((r for r in entry["results"] if r["tensor"] in entry["outputs"]), kernel.written,
                                 strict=True):
                tensor = self._tensors[result["tensor"]]
                tensor["bytes"] = max(tensor["bytes"], made.get(id(t), 0))
        for op, kernel in self._joins.items():
            self._ops[op]["time"], _, _ = prices[id(kernel)]

    def _know_originals(self) -> None:
        """What sides call the tensors of the original graph, and what they are like."""
        owners = self._program.owners
        for tensor, index in enumerate(self._made["tensors"]):
            if index in owners:
                key, node = owners[index]
                if isinstance(key, tuple) and key[0] == "state":
                    key = "state", self._op_at[key[1]]
                self._know(tensor, key, node)

    def _know(self, tensor: int, key: Key, node: fx.Node, fake: torch.Tensor | None = None) -> None:
        self._keys[tensor] = key, node
        fake = owned(key, node) if fake is None else fake
        if fake is not None:
            self._fakes[key] = fake

    def _is_in_part(self, tensor: int) -> bool:
        """Is it none of the original graph's?"""
        return self._made["tensors"][tensor] >= self._program.graph.num_tensors

    # ---- ops

    def _part_of(self, op: int) -> tuple[tuple[int, int], ...] | None:
        """The parts of parts in which it runs, the outermost first; what is done before a region's belongs to none of
        its."""
        return tuple((split, part) for split, part in self._made["parts"][op] if part != _BEFORE) or None

    def _run_of(self, op: int) -> Run:
        source, parts = self._made["sources"][op], self._made["parts"][op]
        entry = self._ops[op]
        if source is None:
            assert self._assumed_tangent is not None, "a backward that is hoisted reads one"
            return Run(TangentEmitter(self._assumed_tangent), next(iter(self._nodes_of(entry["outputs"]))))
        run = self._program.runs[source]
        self.at = run.node
        if entry["kind"] in _JOINS:
            self._joins[op] = self._like_join(entry, run.node)
            return self._joined(entry, run.node)
        whole = _entry(self._wholes[source])
        if self._made["ops"][op] in self._by_rules or entry["kind"] in _SUBSTITUTES and entry["kind"] != whole["kind"]:
            made = self._substitute(op, entry, run.own_node)
            made.emitter.keeps_bits = not self._has_rough_rules  # of which this may be a part
            return made
        if parts and parts[-1][1] != _BEFORE or self._has_rules and not parts and self._reads_otherwise(entry, whole):
            return self._part(op, entry, whole, run)
        if parts and [self._made["tensors"][t] for t in entry["outputs"]] != whole["outputs"]:
            return self._before(entry, run)
        if parts and len(entry["operands"]) < len(whole.get("operands", ())):
            emitter = run.emitter.before_parts(run.own_node)
            if emitter is None:
                raise CaptureError(f"{run.own_node.name}: {run.own_node.target} cannot run before the parts that make its "
                                   "operands")
            run = replace(run, emitter=emitter)
        run = replace(run, state=None if run.state is None else self._op_at[run.state])
        if run.over:  # by the made graph's tensors
            places = {index: tensor for tensor, index in enumerate(self._made["tensors"])}
            run = replace(run, over={places[index]: name for index, name in run.over.items() if index in places})
        return run

    def _nodes_of(self, tensors: list[int]) -> Iterator[fx.Node]:
        return (self._keys[tensor][1] for tensor in tensors)

    def _part(self, op: int, entry: dict[str, Any], whole: dict[str, Any], run: Run) -> Run:
        node = run.own_node
        # What the parts themselves go on to compute with is a number.
        if keeps_rows(node) and entry.get("arguments", {}).get("reduction") != 0 and self._read.isdisjoint(entry["outputs"]):
            return self._rows_of(entry, node)
        form = run.emitter.part_of(node)
        if form is None:
            raise CaptureError(f"{node.name}: {node.target} cannot be run in parts")
        target, of_whole = form
        share, total = self._weight(entry)
        arguments = run.emitter.arguments_of_part(node, self._arguments(node, target, of_whole, entry, whole), entry)
        made = self._call(op, entry, node, target, arguments, share, total)
        made.emitter.keeps_bits = keeps_rows_bits(self._kernels[op], entry, whole) \
            and not (self._has_rough_rules and lies_otherwise(entry, whole))  # as a rule has it read
        kernel = self._kernels[op]
        # Where only parts have an operand (a mask that was drawn), or are divided by what was counted, there is nothing to try.
        is_same_call = total is None and all(isinstance(of_whole[o["argument"]], (fx.Node, list, tuple)) for o in entry["operands"])
        if self._real and made.emitter.keeps_bits and is_same_call and needs_trial(kernel, entry, whole):
            made.emitter.trial = self._trials.setdefault((id(kernel), node), Trial(kernel, run.emitter.whole_of(node, of_whole), share))
        return made

    def _reads_otherwise(self, entry: dict[str, Any], whole: dict[str, Any]) -> bool:
        """Does a rule have it read other tensors than its node does, or other places of them?"""
        keys = ("argument", "index", "shape", "strides", "offset")

        def read(operands: Any, name: Any) -> list[Any]:
            return [(name(o["tensor"]), *(o.get(key) for key in keys)) for o in operands]

        return read(entry["operands"], lambda t: self._made["tensors"][t]) != read(whole.get("operands", ()), lambda t: t)

    def _substitute(self, op: int, entry: dict[str, Any], node: fx.Node) -> Run:
        """An op that a rule has made, in the place of the node's."""
        target = _SUBSTITUTES[entry["kind"]]
        arguments = {a.name: a.default_value for a in target._schema.arguments}
        arguments |= {name: value for name, value in entry.get("arguments", {}).items() if name in arguments}
        for operand in entry["operands"]:
            if "index" in operand:
                arguments[operand["argument"]] = [*(arguments[operand["argument"]] or []), self._slice(operand)]
            else:
                arguments[operand["argument"]] = self._slice(operand)
        return self._call(op, entry, node, target, arguments, None, None)

    def _call(self, op: int, entry: dict[str, Any], node: fx.Node, target: Any, arguments: dict[str, Any],
              share: float | None, total: Slice | None) -> Run:
        names = [r.name or "" for r in target._schema.returns]
        several = len(names) > 1 or isinstance(target._schema.returns[0].type, torch.ListType)
        listed = [r for r in entry["results"] if r["tensor"] in entry["outputs"]]
        results = []
        for result in listed:
            tensor = result["tensor"]
            if tensor not in self._keys:
                self._keys[tensor] = ("tensor", tensor), node
            index = result.get("index", names.index(result["argument"]) if several and result["argument"] in names else 0)
            results.append((self._keys[tensor][0], index if several else None))
        if len({r["tensor"] for r in listed}) != len(entry["outputs"]):
            raise CaptureError(f"{node.name}: a part of {node.target} makes more than one view of a tensor")
        # What a rule makes in the place of another op's result is seen as that op made it.
        shapes = {key: tuple(self._fakes[key].shape) for (key, _), r in zip(results, listed, strict=True)
                  if key in self._fakes and list(self._fakes[key].shape) != r["shape"]}
        call = PartCall(target, arguments, results, share, total, shapes)
        kind = call.kind(self._fakes)
        kernel = self._called.get(kind)
        if kernel is None:
            with self._named(node), _mode_of(node):
                kernel = self._called[kind] = call.kernel(self._fakes)
        made = kernel.results
        written = call.written(made)
        check(node, listed, written)
        for (key, _), fake in zip(results, written, strict=True):
            self._fakes[key] = fake.view(shapes[key]) if key in shapes else fake
        self._kernels[op], self._copied[op] = kernel, call.copied_bytes(self._fakes)
        entry["workspace"] += self._copied[op]
        emitter = ClusterPartEmitter(call, made) if target is CLUSTER else PartEmitter(call, made)
        over = {}
        for given, _ in entry.get("in_place", ()):
            name = next((o["argument"] for o in entry["operands"] if o["tensor"] == given and "index" not in o), None)
            if name and emitter.may_overwrite(name, self._fakes):
                over[given] = name
        entry["in_place"] = [pair for pair in entry.get("in_place", ()) if pair[0] in over]
        return Run(emitter, node, over=over)

    def _rows_of(self, entry: dict[str, Any], node: fx.Node) -> Run:
        """The rows of a part of a loss, in the place of their sum."""
        (result,) = entry["outputs"]
        scores, targets = (self._slice(o) for name in ("self", "target") for o in entry["operands"] if o["argument"] == name)
        rows = targets.shape[0]
        entry["workspace"] = picking_bytes(rows)
        self._keep_rows(result, node, rows, scores.dtype)
        key = self._keys[result][0]
        return Run(RowsEmitter(scores, targets, arguments_of(node)["ignore_index"], key, self._fakes[key]), node)

    def _keep_rows(self, tensor: int, node: fx.Node, rows: int, dtype: torch.dtype) -> None:
        with _mode_of(node):
            fake = torch.empty((2, rows), dtype=dtype, device=leaves(node.meta["val"])[0].device)
        self._know(tensor, ("tensor", tensor), node, fake)
        self._rows[tensor] = rows
        self._tensors[tensor] |= {"bytes": kept_bytes(rows, dtype), "shape": [2, rows]}

    def _summed(self, entry: dict[str, Any], node: fx.Node) -> Run:
        before, part = entry["inputs"]
        (result,) = entry["outputs"]
        rows = self._rows[before] + self._rows[part]
        held, piece = self._whole(before), self._whole(part)
        last = result in self._keys
        entry["in_place"], entry["workspace"] = [], summing_bytes(rows, piece.dtype) if last else 0
        if not last:
            self._keep_rows(result, node, rows, piece.dtype)
        whole = self._whole(result)
        return Run(SumEmitter(held, piece, whole, self._fakes[whole.key],
                              arguments_of(node)["reduction"] if last else None), node)

    def _weight(self, entry: dict[str, Any]) -> tuple[float | None, Slice | None]:
        weight = entry.get("arguments", {}).get("lowtide.weight")
        if weight == "total":
            total = entry["inputs"][0]  # before what the op reads
            key, node = self._keys[total]
            fake = self._fakes[key]
            return None, Slice(key, node, tuple(fake.shape), tuple(fake.stride()), int(fake.storage_offset()), fake.dtype)
        return (weight[0] / weight[1], None) if weight else (None, None)

    def _arguments(self, node: fx.Node, target: Any, arguments: dict[str, Any], entry: dict[str, Any],
                   whole: dict[str, Any]) -> dict[str, Any]:
        """The node's arguments with slices for its tensors, and with those literals that are others for the part."""
        found = dict(arguments)
        for operand in entry["operands"]:
            name = operand["argument"]
            if "index" in operand:
                found[name] = list(found[name])
                at = operand["index"]
                found[name][at] = self._slice(operand).seen_as(found[name][at])
            else:
                part = self._slice(operand).seen_as(found[name])
                with _mode_of(node):
                    found[name] = part.for_call(self._fakes[part.key], target, name)
        for name, value in entry.get("arguments", {}).items():
            if name in found and value != whole.get("arguments", {}).get(name):
                found[name] = value
        left = [v for v in pytree.tree_leaves(list(found.values())) if isinstance(v, fx.Node) and leaves(v.meta.get("val"))]
        if left:
            raise CaptureError(f"{node.name}: {left[0]} is an argument that the graph does not describe")
        return found

    def _slice(self, operand: dict[str, Any]) -> Slice:
        key, node = self._keys[operand["tensor"]]
        return Slice(key, node, tuple(operand["shape"]), tuple(operand["strides"]), operand["offset"],
                     _TYPES[operand["dtype"]])

    def _whole(self, tensor: int) -> Slice:
        """All of a tensor's storage, as it is held."""
        key, node = self._keys[tensor]
        fake = self._fakes[key]
        return Slice(key, node, tuple(fake.shape), tuple(fake.stride()), int(fake.storage_offset()), fake.dtype)

    def _like_join(self, entry: dict[str, Any], node: fx.Node) -> Kernel:
        """A kernel that moves as much: a copy of the part, or a sum."""
        given = apart([self._fakes[self._keys[t][0]] for t in entry["inputs"]])
        adds = entry["kind"] == "lowtide.add" and given[0].shape == given[-1].shape
        target, args = (aten.add.Tensor, given) if adds else (aten.clone.default, given[-1:])
        kind = target, *((t.shape, t.stride(), t.dtype, t.device) for t in args)
        if kind not in self._moves:
            with _mode_of(node):
                made = target(*args)
            self._moves[kind] = Kernel(target, tuple(args), {}, args, [made], made)
        return self._moves[kind]

    def _joined(self, entry: dict[str, Any], node: fx.Node) -> Run:
        (result,) = entry["outputs"]
        *before, part = entry["inputs"]
        if part in self._rows:
            return self._summed(entry, node)
        held = self._whole(before[0]) if before else None
        piece = self._whole(part)
        described = self._tensors[result]
        dtype = _TYPES[described["dtype"]]
        shape: tuple[int, ...]
        strides: tuple[int, ...]
        if result not in self._keys:
            like, last = self._fakes[piece.key], self._last.get(result, result)
            if held is not None and list(like.shape) != described["shape"]:
                like = self._fakes[held.key]
            if entry["kind"] == "lowtide.join" and last in self._keys:
                like = self._fakes[self._keys[last][0]]
            if entry["kind"] == "lowtide.join" and last not in self._keys:  # of parts of parts
                shape, strides = (described["bytes"] // dtype.itemsize,), (1,)
            else:
                shape, strides = tuple(like.shape), like.stride()
            kind = shape, strides, dtype, like.device
            if kind not in self._alike:
                self._alike[kind] = fake_like(like, shape, strides, dtype)
            self._know(result, ("tensor", result), node, self._alike[kind])
        whole = self._whole(result)
        fake = self._fakes[whole.key]
        over = {pair[0]: "" for pair in entry.get("in_place", ())}
        if held is not None and entry["kind"] == "lowtide.add":
            if not all(lies_as(self._fakes[s.key], fake) for s in (held, piece)):
                raise CaptureError(f"{node.name}: parts of its sum do not lie as the whole does")
            entry["workspace"] = copied_bytes(held.dtype, piece.dtype, dtype, fake)
            return Run(AddEmitter(held, piece, whole, fake, [before[0], part]), node, over=over)
        size = fake.numel() * fake.element_size()
        if size != fake.untyped_storage().nbytes() or fake.storage_offset() \
                or not is_dense(fake):
            raise CaptureError(f"{node.name}: its result lies in a larger storage, and is not put together from parts")
        place = entry["arguments"]
        if place["stride"] % dtype.itemsize:
            raise CaptureError(f"{node.name}: a slice of its result is no whole number of elements")
        numbers = (place["extent"], place["stride"] // dtype.itemsize, place["first"], place["count"])
        return Run(JoinEmitter(held, piece, whole, fake, numbers), node, over=over)

    def _before(self, entry: dict[str, Any], run: Run) -> Run:
        """The op's result for the whole axis that is needed before the parts: a loss's count of targets."""
        node = run.own_node
        if node.target not in _COUNTS:
            raise CaptureError(f"{node.name}: {node.target} cannot be run in parts")
        arguments = arguments_of(node)
        slices = {o["argument"]: self._slice(o) for o in entry["operands"]}
        (result,) = entry["outputs"]
        key, _ = self._keys[result]
        call = _Count(slices["target"], slices.get("weight"), arguments["ignore_index"], key, self._fakes[key])
        return Run(call, node)

    @contextlib.contextmanager
    def _named(self, node: fx.Node) -> Iterator[None]:
        try:
            yield
        except CaptureError:
            raise
        except Exception as error:
            raise CaptureError(f"{node.name}: a part of {node.target} does not run: {error}") from error


_COUNTS = (aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)


def count_targets(target: torch.Tensor, weight: torch.Tensor | None, ignored: int, dtype: torch.dtype) -> torch.Tensor:
    """The total weight of nll_loss."""
    kept = target != ignored
    if weight is None:
        return kept.sum().to(dtype)
    return torch.where(kept, weight[torch.where(kept, target, 0)], 0).sum()


class _Count(Emitter):
    def __init__(self, target: Slice, weight: Slice | None, ignored: int, result: Key, fake: torch.Tensor) -> None:
        self._target, self._weight, self._ignored, self._result, self._fake = target, weight, ignored, result, fake
        self.keeps_bits = weight is None  # whose kernel adds weights up in an order of its own

    def emit(self, code: Any, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        args = (self._target.on(code), self._weight and self._weight.on(code), self._ignored, self._fake.dtype)
        code.values[self._result] = code.call(count_targets, args, node, self._fake)
        return False


def _entry(op: lowtide.Op) -> dict[str, Any]:
    """An op as a graph file has it, as far as it is looked at here, to be changed."""
    return {"kind": op.kind, "inputs": op.inputs, "outputs": op.outputs, "operands": op.operands, "results": op.results,
            "arguments": op.arguments, "in_place": op.in_place, "time": op.time, "workspace": op.workspace}


def _mode_of(node: fx.Node) -> Any:
    fake = next(iter(leaves(node.meta["val"])), None)
    mode = getattr(fake, "fake_mode", None)
    return mode if mode is not None else contextlib.nullcontext()
