#!/usr/bin/env python3
"""Capture one training step of a PyTorch model as a Lowtide graph, without running it.

    python capture.py resnet50 --batch 128 --device a100 -o resnet50.graph.json.gz
    python capture.py my/models.py:small_net -o small.graph.json

MODEL is the name of a built-in example, or a function: `package.module:function` or
`path/to/file.py:function`.  The function returns (module, inputs, loss function); the loss function is
called as loss(module, *inputs) and returns the loss, or a tuple that begins with it.  If the function
takes an argument, it is called with the batch size.  It runs while new tensors are fake: a model of any
size takes no memory.

The graph holds the forward, a barrier, and the backward.  Bytes are those of storages, as in-graph
integers; times are ns from a roofline model of the named GPU (roofline.py), never measured; workspaces
of kernels are not known and count 0.  What becomes of views, dropout, batch norm and updates in place:
lowering.py.  Needs torch 2.13.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fake_step import Built, CaptureError, trace_step
from graph_file import write_graph
from lowering import lower
from roofline import DEVICES

_DTYPES = {
    "f32": "f32",
    "bf16": "bf16",
    "amp": "bf16 autocast",
}


def capture(build: Callable[[], Built], *, name: str, device: str = "a100", dtype: str = "f32") -> dict[str, Any]:
    """The Lowtide graph (a dict as the file format has it) of one training step.

    build: returns (module, inputs, loss function); see trace_step.  Real tensors in it are replaced by
        fake ones in a copy; the module itself stays as it is.
    name: the graph's name, for people.  device: a key of DEVICES.
    dtype: "f32" (as the model was built), "bf16" (all of it in bf16) or "amp" (autocast to bf16).

    Raises CaptureError for a model that cannot be captured.
    """
    if device not in DEVICES:
        raise CaptureError(f"unknown device {device!r}; known are {', '.join(DEVICES)}")
    if dtype not in _DTYPES:
        raise CaptureError(f"unknown number type {dtype!r}; known are {', '.join(_DTYPES)}")
    return lower(trace_step(build, dtype), DEVICES[device], name)


def _find(model: str) -> Callable[..., Built]:
    """`package.module:function` or `file.py:function` -> the function."""
    place, colon, function = model.rpartition(":")
    if not colon or not place or not function:
        raise CaptureError(f"{model!r} is neither a built-in example nor MODULE:FUNCTION or FILE.py:FUNCTION")
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise CaptureError(f"there is no file {place}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(path.resolve().parent))
        run = lambda: spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = None
        run = lambda: importlib.import_module(place)
    try:
        module = run() or module
    except Exception as error:
        raise CaptureError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, function, None)
    if not callable(found):
        raise CaptureError(f"{place} has no function {function}")
    return found


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    from example_models import EXAMPLES

    parser = argparse.ArgumentParser(
        prog="capture.py", description="Capture one training step of a PyTorch model as a Lowtide graph, without running it.")
    parser.add_argument("model", metavar="MODEL",
                        help=f"{', '.join(EXAMPLES)}, or MODULE:FUNCTION or FILE.py:FUNCTION that returns "
                             "(module, inputs, loss function)")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write; compressed if it ends in .gz")
    parser.add_argument("--batch", type=int, metavar="N", help="batch size (examples have a default)")
    parser.add_argument("--device", choices=DEVICES, default="a100", help="whose times to estimate (default: a100)")
    parser.add_argument("--dtype", choices=_DTYPES, default="f32",
                        help="f32: as built; bf16: all of it; amp: autocast to bf16 (default: f32)")
    parser.add_argument("--name", help="the graph's name, for people")
    options = parser.parse_args(arguments)
    if options.batch is not None and options.batch < 1:
        parser.error("--batch must be at least 1")
    return options


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns 0, or 2 after saying on standard error what is wrong."""
    options = _parse(arguments)
    from example_models import EXAMPLES

    try:
        example = EXAMPLES.get(options.model)
        if example:
            batch = options.batch or example.batch
            build = lambda: example.build(batch)
            title = f"{example.title} training, {_DTYPES[options.dtype]}, batch {batch} x {example.item}"
        else:
            function = _find(options.model)
            takes = len(inspect.signature(function).parameters)
            if options.batch and not takes:
                raise CaptureError(f"{options.model} takes no argument, so --batch cannot reach it")
            build = (lambda: function(options.batch or 1)) if takes else function
            title = f"{options.model} training, {_DTYPES[options.dtype]}" + (f", batch {options.batch}" if options.batch else "")
        title += f", {DEVICES[options.device].title}"
        graph = capture(build, name=options.name or title, device=options.device, dtype=options.dtype)
        size = write_graph(graph, options.output)
    except (CaptureError, OSError) as error:
        print(f"capture.py: {error}", file=sys.stderr)
        return 2
    print(f"{options.output}: {len(graph['ops'])} ops, {len(graph['tensors'])} tensors, {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
