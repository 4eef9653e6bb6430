"""Capture one training step of a PyTorch model as a Lowtide graph, without running it.

    python -m lowtide.torch resnet50 --batch 128 --device a100 -o resnet50.graph.json.gz
    python -m lowtide.torch my/models.py:small_net -o small.graph.json

MODEL is the name of a built-in example, or a function: `package.module:function` or
`path/to/file.py:function`.  The function returns (module, inputs, loss function); the loss function is
called as loss(module, *inputs) and returns the loss, or a tuple that begins with it; with None in its
place the module's own result is the loss.  With --batch the function is called with the batch size.  It
runs while new tensors are fake: a model of any size takes no memory.

With --mesh the graph is that of one rank of several (docs/how-to/plan-for-a-cluster.md), and with --budget a
table of meshes and batch sizes is printed: which fit, and at which cost.

The graph holds the forward, a barrier, and the backward.  Bytes are those of storages; times are ns
from a roofline model of the named GPU (roofline.py), never measured; what kernels take beyond the results
that they show is not known and counts 0.  What becomes of views and updates in place is said in lowering.py, what of
dropout, batch norm and random draws in lowerings.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lowtide

from ..frontend.errors import CaptureError
from ..frontend.roofline import DEVICES
from .api import example_models
from .api.capture import capture
from .api.mesh_table import mesh_table
from .tracing.fake_step import DTYPES, Built


def _find(model: str, what: str = "function") -> Any:
    """`package.module:name` or `path/to/file.py:name` -> the function or value of that name."""
    place, _, function = model.rpartition(":")
    if not place or not function:
        raise CaptureError(f"{model!r} is neither a built-in example nor MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        if place.endswith(".py"):
            if not Path(place).is_file():
                raise CaptureError(f"there is no file {place}")
            sys.path.insert(0, str(Path(place).resolve().parent))
            spec = importlib.util.spec_from_file_location("captured_model", place)
            assert spec and spec.loader
            module = sys.modules["captured_model"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            module = importlib.import_module(place)
    except CaptureError:
        raise
    except Exception as error:  # a user's file may raise anything
        raise CaptureError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, function, None)
    if found is None or what == "function" and not callable(found):
        raise CaptureError(f"{place} has no {what} {function}")
    return found


def _builder(options: argparse.Namespace, batch: int | None) -> tuple[Callable[[], Built], str]:
    """The builder of the model on the command line, and a name for its graph."""
    example = example_models.EXAMPLES.get(options.model)
    if example:
        batch = batch or example.batch
        return partial(example.build, batch), f"{example.title} training, batch {batch} x {example.item}"
    function = _find(options.model)
    given = () if batch is None else (batch,)
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        wanted = "does not take a batch size" if given else "needs a batch size: give --batch"
        raise CaptureError(f"{options.model} {wanted} ({error})") from error
    return partial(function, *given), f"{options.model} training" + (f", batch {given[0]}" if given else "")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lowtide.torch",
        description="Capture one training step of a PyTorch model as a graph, without running it.",
        epilog="Times are a roofline estimate for the device, not a measurement.")
    parser.add_argument("model", metavar="MODEL",
                        help=f"{', '.join(example_models.EXAMPLES)}, or MODULE:FUNCTION or FILE.py:FUNCTION that "
                             "returns (module, inputs, loss function)")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="where to write; compressed if it ends in .gz; with --budget a folder for graphs and results")
    parser.add_argument("--batch", type=_numbers, metavar="N",
                        help="batch size (the examples have a default); of a table a list: 1,2,4")
    parser.add_argument("--device", choices=DEVICES, default="a100", help="whose times to estimate (default: a100)")
    parser.add_argument("--dtype", choices=DTYPES, default="f32",
                        help="f32: as built; bf16: all of it; amp: autocast to bf16 (default: f32)")
    parser.add_argument("--optimizer", metavar="NAME",
                        help="count its state as resident bytes: sgd, adamw, ... (default: none)")
    parser.add_argument("--update", metavar="NAME",
                        help="make this optimizer's step a part of the graph: each parameter is updated as soon as its "
                             "gradient is there (default: none)")
    parser.add_argument("--state-home", choices=("device", "host"), default="device",
                        help="where the state of --update is between steps (default: device)")
    parser.add_argument("--fused", action="store_true", help="with clusters of ops that Inductor makes kernels of as ops")
    parser.add_argument("--in-parts", action="store_true",
                        help="with --fused: random numbers are drawn by ops of their own, so that plans may split what reads them")
    parser.add_argument("--mesh", type=_meshes, metavar="DPxTP",
                        help="the step of one of data-parallel times tensor-parallel ranks; of a table a list: 64x1,8x8")
    parser.add_argument("--shard", metavar="NAME",
                        help="what a rank holds: fsdp (the default), ddp, or FILE.py:NAME or MODULE:NAME of a lowtide.torch.Shard")
    parser.add_argument("--budget", metavar="B", help="plan every mesh and batch for this budget (80GiB), and print a table")
    parser.add_argument("--time", type=float, metavar="S", help="seconds for one plan of the table (default: 10)")
    parser.add_argument("--work", type=int, metavar="N", help="limit on counted work of one plan, instead of --time")
    parser.add_argument("--name", help="the graph's name, for people")
    options = parser.parse_args(arguments)
    if options.budget is None and options.output is None:
        parser.error("the following arguments are required: -o/--output, or --budget for a table")
    if options.budget is None and (len(options.batch or ()) > 1 or len(options.mesh or ()) > 1):
        parser.error("several batch sizes and meshes make a table: give --budget")
    if options.budget is not None and options.mesh is None:
        parser.error("a table is of meshes: give --mesh (1x1 for one device)")
    return options


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return numbers


def _meshes(text: str) -> list[tuple[int, int]]:
    meshes = []
    for part in text.split(","):
        dp, _, tp = part.partition("x")
        if not (dp.isdecimal() and tp.isdecimal() and int(dp) and int(tp)):
            raise argparse.ArgumentTypeError(f"{part!r} is not DPxTP, as 8x4 is")
        meshes.append((int(dp), int(tp)))
    return meshes


def _shard(options: argparse.Namespace) -> Any:
    if options.shard in (None, "fsdp", "ddp"):
        return options.shard
    return _find(options.shard, "value")


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns 0, or 2 after saying on standard error what is wrong."""
    options = _parse(arguments)
    try:
        shard = _shard(options)

        def captured(mesh: tuple[int, int] | None, batch: int | None) -> lowtide.Graph:
            build, title = _builder(options, batch)
            words = "" if mesh is None else f", a rank of {mesh[0]}x{mesh[1]}"
            name = options.name or (f"{title}, {DTYPES[options.dtype]}{', fused' if options.fused else ''}, "
                                    f"{DEVICES[options.device].title}{words}")
            return capture(build, name=name, costs=options.device, dtype=options.dtype, optimizer=options.optimizer,
                           update=options.update, state_home=options.state_home, fused=options.fused, in_parts=options.in_parts,
                           mesh=mesh, shard=shard)

        if options.budget is not None:
            limits = {key: getattr(options, key) for key in ("time", "work") if getattr(options, key) is not None}
            cases = [(mesh, batch) for mesh in options.mesh for batch in options.batch or [None]]
            print(mesh_table(captured, cases, options.budget, limits, options.output))
            return 0
        graph = captured(options.mesh[0] if options.mesh else None, options.batch[0] if options.batch else None)
        graph.save(options.output)
    except (CaptureError, ValueError, OSError, lowtide.Error) as error:
        print(f"lowtide.torch: {error}", file=sys.stderr)
        return 2
    size = Path(options.output).stat().st_size
    print(f"{options.output}: {graph.num_ops} ops, {graph.num_tensors} tensors, {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
