"""Types and shapes of all values of a model, and the constants among them.

One pass in the order of the nodes.  A node whose inputs are constants is constant too; if it is small it is computed, by onnx's
reference evaluator, since shapes of later values depend on it.  `Shape` of a value of known shape is constant.  onnx infers one node
at a time, from the shapes and the small constants before it, so models of any size work.  What is declared in the model
(value_info) counts where that says nothing.  control_flow.py has the nodes with sub-graphs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from . import microsoft
from .errors import ModelError
from .number_types import check_type
from .read import label, subgraphs
from .values import SMALL, Value, larger, merged, of_tensor, of_type, with_dims

RANDOM = frozenset({"Bernoulli", "BiasDropout", "BitmaskBiasDropout", "BitmaskDropout", "Multinomial", "RandomNormal",
                    "RandomNormalLike", "RandomUniform", "RandomUniformLike"})
_GROWS = frozenset({"ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})  # by their data
_TINY = 64  # elements read by a node that is computed without a look at how much it makes
_MISFIT = onnx.shape_inference.InferenceError


class Scope:
    """The values of a graph, by name.  outer: those of the graphs around it.  dims: extents that the user has set."""

    def __init__(self, model: Any, graph: Any, dims: Mapping[str, int], outer: Scope | None = None) -> None:
        self.model, self.graph, self.dims, self.outer = model, graph, dims, outer
        self.versions = {entry.domain: int(entry.version) for entry in model.opset_import}
        self.values: dict[str, Value] = {}
        self.inner: dict[int, list[Scope]] = {}  # place of a node -> its sub-graphs
        self.trips: dict[int, int] = {}  # place of a node -> how often its body runs
        self._declared = {value.name: value.type for value in (*graph.value_info, *graph.output)}

    def has(self, name: str) -> bool:
        """Is there a value of that name, here or around it?"""
        return name in self.values or (self.outer is not None and self.outer.has(name))

    def value(self, name: str) -> Value:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return microsoft.UNKNOWN

    def infer(self, inputs: Iterable[tuple[str, Value]], control_flow: Callable[[Scope, int, Any], list[Value]]) -> None:
        """Fill `values`.  inputs: of the graph.  control_flow: the results of a node with sub-graphs."""
        self.values.update(inputs)
        for name, value in self.values.items():
            check_type(value.dtype, f"'{name}'")
        self.values.update((tensor.name, of_tensor(tensor)) for tensor in self.graph.initializer)
        for sparse in self.graph.sparse_initializer:
            self.values[sparse.values.name] = Value(sparse.values.data_type, tuple(sparse.dims), constant=True)
        for place, node in enumerate(self.graph.node):
            try:
                made = control_flow(self, place, node) if any(True for _ in subgraphs(node)) else self._results(node)
            except ModelError:
                raise
            except Exception as error:  # onnx's own, of several types
                fits = "does not fit the shapes of what it reads" if isinstance(error, _MISFIT) else "cannot be read by onnx"
                raise ModelError(f"{label(node, place)} {fits}: {' '.join(str(error).split())[:300]}") from error
            for name, value in zip(node.output, made):
                if name:
                    self.values[name] = self._settled(name, value)

    def _settled(self, name: str, value: Value) -> Value:
        if not value.known and name in self._declared:
            value = merged(value, of_type(self._declared[name], name, self.dims))
        return with_dims(value, name, self.dims)

    # ---- one node

    def _results(self, node: Any) -> list[Value]:
        unknown = [microsoft.UNKNOWN] * len(node.output)
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            return [_constant(node)]
        given = [self.value(name) for name in node.input]
        if node.op_type in ("Shape", "Size") and given and given[0].known:
            return [_shape(node, given[0])]
        read = [value for name, value in zip(node.input, given) if name]
        constant = _is_pure(node) and all(value.constant for value in read)
        seen = constant and all(value.data is not None for value in read)
        tiny = seen and node.op_type not in _GROWS and sum(value.elements for value in read) <= _TINY
        computed = self._computed(node, given) if tiny else None
        if computed is not None:
            return computed
        made = self._inferred(node, given) or unknown
        if not constant:
            return made
        if seen and not tiny and all(value.known and value.elements <= SMALL for value in made):
            computed = self._computed(node, given)
            if computed is not None:
                return computed
        return [Value(value.dtype, value.shape, constant=True) for value in made]

    def _inferred(self, node: Any, given: list[Value]) -> list[Value] | None:
        if any(value.dtype == TensorProto.UNDEFINED for name, value in zip(node.input, given) if name):
            return None  # what makes it is named later
        version = self.versions.get(node.domain) or self.versions.get("ai.onnx" if node.domain == "" else node.domain)
        known = version is not None and onnx.defs.has(node.op_type, max_inclusive_version=version, domain=node.domain)
        if version is None or not known:  # ONNX Runtime has some of its own among those of onnx
            own = node.domain in ("", "com.microsoft")
            return microsoft.results(node, given, self.versions.get("", onnx.defs.onnx_opset_version()), self._inferred) if own else None
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        types = {name: value.type_proto() for name, value in zip(node.input, given) if name}
        data = {name: value.data for name, value in zip(node.input, given) if name and value.data is not None}
        imports = [helper.make_opsetid(domain, v) for domain, v in self.versions.items()]
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports,
                                                        ir_version=self.model.ir_version)
        made = [_found(found, name) for name in node.output]
        if all(value.known for name, value in zip(node.output, made) if name):
            return made
        return [merged(a, b) for a, b in zip(made, self._of_body(node, types, data))]

    def _of_body(self, node: Any, types: dict[str, Any], data: dict[str, Any]) -> list[Value]:
        """By the function that defines an operator, which inference of one node does not look into."""
        inputs = [helper.make_value_info(name, proto) for name, proto in types.items() if name not in data]
        constants = []
        for name, tensor in data.items():
            copy = TensorProto()
            copy.CopyFrom(tensor)
            copy.name = name
            constants.append(copy)
        graph = helper.make_graph([node], "one", inputs, [], constants)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        found = {value.name: value.type for value in inferred.graph.value_info}
        return [_found(found, name) for name in node.output]

    def _computed(self, node: Any, given: list[Value]) -> list[Value] | None:
        """The results of a small node, None where the reference evaluator does not know it."""
        feeds = {name: numpy_helper.to_array(value.data) for name, value in zip(node.input, given) if name}
        inputs = [helper.make_value_info(name, self.value(name).type_proto()) for name in feeds]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "folded", inputs, outputs)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                arrays = dict(zip((o.name for o in outputs), ReferenceEvaluator(model).run(None, feeds)))
            return [of_tensor(numpy_helper.from_array(np.asarray(arrays[name]))) if name else microsoft.UNKNOWN
                    for name in node.output]
        except Exception:  # whatever it may lack, the numbers are then not known
            return None


def either(a: list[Value], b: list[Value]) -> list[Value]:
    """The results of a node that makes those of one of two branches."""
    return [larger(x, y) for x, y in zip(a, b)]


def _found(found: Mapping[str, Any], name: str) -> Value:
    return of_type(found[name], name, {}) if name and name in found else microsoft.UNKNOWN


def _is_pure(node: Any) -> bool:
    return node.op_type not in RANDOM and node.domain in ("", "ai.onnx", "ai.onnx.ml")


def _shape(node: Any, value: Value) -> Value:
    if node.op_type == "Size":
        return of_tensor(helper.make_tensor("size", TensorProto.INT64, [], [math.prod(value.extents)]))
    bounds = {a.name: a.i for a in node.attribute}
    extents = value.extents[bounds.get("start", 0):bounds.get("end", len(value.extents))]
    return of_tensor(helper.make_tensor("shape", TensorProto.INT64, [len(extents)], extents))


def _constant(node: Any) -> Value:
    """The value of a node `Constant`."""
    for a in node.attribute:
        if a.name == "value":
            return of_tensor(a.t)
        if a.name == "sparse_value":
            return Value(a.sparse_tensor.values.data_type, tuple(a.sparse_tensor.dims), constant=True)
        if a.name in ("value_float", "value_floats"):
            return of_tensor(numpy_helper.from_array(np.asarray(a.f if a.name == "value_float" else list(a.floats), np.float32)))
        if a.name in ("value_int", "value_ints"):
            return of_tensor(numpy_helper.from_array(np.asarray(a.i if a.name == "value_int" else list(a.ints), np.int64)))
        if a.name in ("value_string", "value_strings"):
            return Value(TensorProto.STRING, (len(a.strings),) if a.name == "value_strings" else (), constant=True)
    raise ModelError(f"the node that makes '{node.output[0]}' is a Constant without a value: the file is damaged")
