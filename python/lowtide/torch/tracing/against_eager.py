"""Reasons why a traced step cannot be bit-identical with eager execution.

A plan changes no bit of the traced step.  Tracing keeps the kernels of eager execution, their operands and the order of
sums, with these exceptions:

* The model's code asks whether it is traced (`torch.compiler.is_compiling`) and takes another branch.  For example,
  libraries skip a mask without effect only if they may read its values, and attention with a mask has another kernel.
* PyTorch traces its recurrent layers cell by cell.
* PyTorch decomposes a sum whose factor is a tensor (`x.addcmul_(y, z, value=t)`) into products and sums.
* After a graph break, gradients of tensors that several graphs read are accumulated graph by graph, and autocast casts a
  parameter once for each graph.

This module detects these cases for the report.  Only a comparison shows whether a case changes a number.  Without any case
the traced step equals that of eager execution.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import fx

from ..compat.dynamo import frame_traced
from ..compat.variables import ASKS_OF_TRACING, VARIABLES, TorchInGraphFunctionVariable
from ..tensors.operators import is_backward
from .factors import tensor_factors

aten = torch.ops.aten
_NOTES = "_lowtide_asked"
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_TORCH = os.path.dirname(torch.__file__) + os.sep
_PARTED, _ASKED, _FACTORS = "lowtide_parted", "lowtide_asked", "lowtide_factors"
_SHOWN = 2  # places
_HALF = (torch.float16, torch.bfloat16)


def note_tracing(gm: fx.GraphModule) -> None:
    """Note on a graph, while Dynamo hands it over, who has asked, and whether it is one of several."""
    reason = getattr(gm, "compile_subgraph_reason", None)
    gm.meta[_PARTED] = bool(reason and reason.graph_break)
    tx = frame_traced()
    if tx is None:  # whoever calls has a graph of his own
        return
    gm.meta[_PARTED] |= tx.output.root_tx.f_code.co_name.startswith("torch_dynamo_resume_in_")
    gm.meta[_ASKED] = tuple(dict.fromkeys(getattr(tx.output, _NOTES, ())))
    gm.meta[_FACTORS] = tensor_factors(tx)


def differences(gm: fx.GraphModule, joint: fx.GraphModule) -> tuple[str, ...]:
    """Why this step may have other bits than in eager execution, in words; joint: as it was traced."""
    found = []
    asked = gm.meta.get(_ASKED, ())
    if asked:
        more = f" and {len(asked) - _SHOWN} more" if len(asked) > _SHOWN else ""
        found.append(f"its code asks whether it is traced ({', '.join(asked[:_SHOWN])}{more})")
    names = sorted({name for node in gm.graph.nodes if node.op == "call_function"
                    for name in [getattr(node.target, "__name__", "")] if name in _RECURRENT})
    if names:
        found.append(f"PyTorch traces {', '.join(names)} cell by cell")
    if gm.meta.get(_FACTORS):
        found.append(f"PyTorch traces {', '.join(gm.meta[_FACTORS])} with a tensor as factor as several operators")
    if gm.meta.get(_PARTED) and _shares_gradients(joint):
        found.append("the graph breaks, and gradients are added up graph by graph")
    return tuple(found)


def _shares_gradients(joint: fx.GraphModule) -> bool:
    """May it matter in which order graphs add up gradients: is one a sum already, or of a cast that all of them share?"""
    (output,) = joint.graph.find_nodes(op="output")
    descriptors = output.meta.get("desc", ())
    gradients = [node for node, desc in zip(output.args[0], descriptors, strict=False)
                 if isinstance(node, fx.Node) and hasattr(desc, "grad_of")]
    return any(node.target is aten.add.Tensor and is_backward(node) or _is_widened(node) for node in gradients)


def _is_widened(node: fx.Node) -> bool:
    source = node.all_input_nodes[0].meta.get("val") if node.target is aten._to_copy.default else None
    return isinstance(source, torch.Tensor) and source.dtype in _HALF


def _install() -> None:
    call = TorchInGraphFunctionVariable.call_function

    def call_function(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        if self.value in ASKS_OF_TRACING:
            place = _place(tx)
            if place:
                notes = getattr(tx.output, _NOTES, None)
                if notes is None:
                    notes = []
                    setattr(tx.output, _NOTES, notes)
                notes.append(place)
        return call(self, tx, args, kwargs)

    TorchInGraphFunctionVariable.call_function = call_function


def _place(tx: Any) -> str | None:
    """The function that asks, outside of what only passes the answer on; None for PyTorch's own."""
    while tx is not None and tx.f_code.co_name.startswith("is_"):
        tx = tx.parent
    if tx is None or tx.f_code.co_filename.startswith(_TORCH):
        return None
    return f"{tx.f_code.co_name} in {os.path.basename(tx.f_code.co_filename)}"


if VARIABLES is not None:
    _install()
