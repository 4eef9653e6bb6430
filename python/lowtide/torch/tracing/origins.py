"""The origin of an op in the model: the path of its module, and its line of source.

Capture writes both on the graph's nodes while the step is traced (mark_modules, at_line); the tracer copies
them from a forward node to the backward nodes that differentiate it.  Under torch.compile Dynamo has left
its own words on the nodes.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn
from torch.fx.traceback import annotate

from ...frontend.errors import CaptureError

MODULE = "lowtide_origin"  # keys in a node's meta["custom"]
_LINE = "lowtide_line"
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_RANKS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "ranks", "")  # which puts collectives into modules
_ROOT = re.compile(r"^[LG]\['(\w+)'\]\.?")  # the variable that Dynamo found the outermost module in
_LABELS = "lowtide_labels"
_OF_MODULE = re.compile(r"_(?:modules|parameters|buffers)\['([^']*)'\]")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def mark_modules(model: nn.Module) -> None:
    """Have hooks write the path of the module that runs on the nodes that are traced meanwhile."""
    for path, part in model.named_modules():
        _mark(part, path)


def _mark(module: nn.Module, path: str) -> None:
    open_marks: list[Any] = []

    def enter(*_: Any) -> None:
        open_marks.append(annotate({MODULE: path}))
        open_marks[-1].__enter__()

    def leave(*_: Any) -> None:
        open_marks.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(enter, prepend=True)
    module.register_forward_hook(leave, always_call=True)  # or a failure's mark would reach the next capture


def at_line(outermost: CodeType) -> contextlib.AbstractContextManager[None]:
    """Nodes traced within get the line of the innermost caller that is not PyTorch's, nor of outermost's file.

    Callers beyond `outermost` do not count.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame and frame.f_code is not outermost:
        file = frame.f_code.co_filename
        if _is_users(file) and file != outermost.co_filename:
            return annotate({_LINE: _words(file, frame.f_lineno)})
        frame = frame.f_back
    return contextlib.nullcontext()


def module_path(node: torch.fx.Node) -> str | None:
    """The path of the module whose forward made the node, "" for the model itself, None if nobody knows."""
    path = node.meta.get("custom", {}).get(MODULE)
    if path is not None:
        return path
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return None
    path = _ROOT.sub(lambda m: "" if m[1] == "self" else f"{m[1]}.", list(stack.values())[-1][0])
    return path.replace("_modules['", "").replace("']", "").rstrip(".")


def source_line(node: torch.fx.Node) -> str | None:
    """As "file.py:123", the user's line that made the node, or None if nobody knows."""
    line = node.meta.get("custom", {}).get(_LINE)
    if line is None:
        frames = _FRAME.findall(node.meta.get("stack_trace") or "")
        line = next((_words(file, number) for file, number in reversed(frames) if _is_users(file)), None)
    return line


def unexpected(error: Exception, node: torch.fx.Node | None) -> CaptureError:
    """The error message for an unexpected exception; names the node."""
    line = source_line(node) if node else None
    where = f"{node.name}: {node.target}" + (f" ({line})" if line else "") if node else "the step"
    return CaptureError(f"{where} has no plan because of a fault of Lowtide's own, worth a report: "
                        f"{type(error).__name__}: {error}")


def label_of(descriptor: Any) -> str:
    """An input's name for people: the path of a parameter or buffer, or which argument it is."""
    if descriptor is None:
        return ""
    if hasattr(descriptor, "target"):
        return descriptor.target.removeprefix("model.")
    return f"input{descriptor.idx}" if hasattr(descriptor, "idx") else type(descriptor).__name__


def labels_of(gm: torch.fx.GraphModule) -> dict[int, str]:
    """Names of the inputs of a graph that Dynamo hands over, by their places: paths in the outermost module of what is found
    there, and of the others what Dynamo calls them.  Dynamo forgets where inputs come from when it has handed the graph over, so
    what is found the first time stays noted on it."""
    if _LABELS in gm.meta:
        return gm.meta[_LABELS]
    found = gm.meta[_LABELS] = {}
    for i, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        source = getattr(getattr(node.meta.get("grapharg"), "source", None), "name", "")
        path = _OF_MODULE.findall(source) if isinstance(source, str) else []
        found[i] = ".".join(path) or node.name.removeprefix("l_").strip("_")
    return found


def _is_users(file: str) -> bool:
    return not file.startswith((_TORCH, _RANKS, "<"))  # "<...>" is generated code


def _words(file: str, line: Any) -> str:
    return f"{os.path.basename(file)}:{line}"
