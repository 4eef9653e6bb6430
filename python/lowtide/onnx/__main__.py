"""Plan an ONNX model: what order, in-place results, recomputation and offsets are worth, and the files that runtimes take.

    python -m lowtide.onnx model.onnx --dim batch=1
    python -m lowtide.onnx model.onnx --dim batch=1 --budget 12MiB -o planned.onnx --arena arena.json

Without a budget the plan is the one with the smallest peak that computes nothing twice.  A budget limits the whole peak, weights
included; "act:60%" is a share of what is neither weights nor inputs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lowtide

from ..frontend.errors import BudgetError, size_text
from ..frontend.roofline import DEVICES
from .arena import ALIGNMENT
from .compat import UnsupportedOnnxError
from .dims import parse
from .in_place import RUNTIMES
from .model import Model, load
from .table import compare


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lowtide.onnx", description=__doc__.partition("\n\n")[0] if __doc__ else None,
                                     epilog="Times are a roofline estimate for the device, not a measurement.")
    parser.add_argument("model", metavar="MODEL", help="an .onnx file")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N",
                        help="an open dimension: its name, VALUE.AXIS, or a value with a whole shape (x=1x3x224x224)")
    parser.add_argument("--runtime", choices=RUNTIMES, default="generic", help="whose kernels may run in place (default: generic)")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="whose times to estimate (default: cpu)")
    parser.add_argument("--free-inputs", action="store_true", help="reuse the memory of inputs that have been read")
    parser.add_argument("--budget", metavar="BYTES", help="plan for this budget, as of lowtide plan: 12MiB, 60%%, act:60%%")
    parser.add_argument("--order", choices=("free", "given"), help="with --budget: of the planned nodes (default: free)")
    parser.add_argument("--techniques", metavar="NAMES", help="with --budget (default: recompute,in_place)")
    parser.add_argument("--time", type=float, metavar="SECONDS", help="for all searches together (default: 5; none with --work)")
    parser.add_argument("--work", type=int, metavar="N", help="limit each search by counted work: the same result on every machine")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--alignment", type=int, default=ALIGNMENT, metavar="N", help=f"of offsets (default: {ALIGNMENT})")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    for option, what in (("-o", "the model in the planned order"), ("--graph", "the graph, for the command lowtide"),
                         ("--plan", "the plan, for the command lowtide"), ("--arena", "the offsets of all values, as JSON"),
                         ("--tflite-micro", "the offsets as tflite-micro's OfflineMemoryAllocation"),
                         ("--executorch", "the offsets as ExecuTorch's AllocationDetails, as JSON")):
        names = ("-o", "--output") if option == "-o" else (option,)
        parser.add_argument(*names, metavar="FILE", help=f"write {what}")
    parser.add_argument("--tensors", metavar="FILE", help="with --tflite-micro: the names of the model's tensors in its order, one a line")
    options = parser.parse_args(arguments)
    if options.tensors and not options.tflite_micro:
        parser.error("--tensors needs --tflite-micro")
    for option in ("order", "techniques"):
        if getattr(options, option) and not options.budget:
            parser.error(f"--{option} needs --budget: without one, the table shows them all")
    if options.time is None and options.work is None:
        options.time = 5.0
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns 0, 1 where no plan keeps the budget, or 2 after saying on standard error what is wrong."""
    options = _parse(arguments)
    try:
        model = load(options.model, parse(options.dim), runtime=options.runtime, device=options.device, free_inputs=options.free_inputs)
        plan = _with_budget(model, options) if options.budget else _table(model, options)
        _write(model, plan, options)
    except BudgetError as error:
        print(f"lowtide.onnx: {error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError, OSError, UnsupportedOnnxError) as error:
        print(f"lowtide.onnx: {error}", file=sys.stderr)
        return 2
    return 0


def _table(model: Model, options: argparse.Namespace) -> lowtide.Plan:
    table = compare(model, time=options.time, work=options.work, seed=options.seed, alignment=options.alignment)
    print(table.to_json() if options.json else table)
    return table.best


def _with_budget(model: Model, options: argparse.Namespace) -> lowtide.Plan:
    outcome = model.plan(options.budget, order=options.order or "free", time=options.time, work=options.work, seed=options.seed,
                         techniques=options.techniques or "recompute,in_place")
    assert outcome.plan is not None
    print(json.dumps(_figures(model, outcome), indent=1) if options.json else _words(model, outcome))
    return outcome.plan


def _figures(model: Model, outcome: lowtide.Outcome) -> dict[str, Any]:
    """An outcome in the words of `lowtide plan --json`, with the weights."""
    return {"model": model.graph.name, "status": outcome.status, "budget": outcome.budget, "peak": outcome.peak,
            "own_peak": model.graph.own_peak, "weights": model.weights, "floor": outcome.floor, "duration": outcome.duration,
            "bound": outcome.bound, "overhead": outcome.overhead}


def _words(model: Model, outcome: lowtide.Outcome) -> str:
    peak, overhead = outcome.peak or 0, outcome.overhead or 0.0
    return (f"{model.graph.name}: peak {size_text(peak)} ({size_text(peak - model.weights)} without weights), unplanned "
            f"{size_text(model.graph.own_peak)}, {100 * overhead:.2f} % more time, {outcome.status}")


def _write(model: Model, plan: lowtide.Plan, options: argparse.Namespace) -> None:
    if options.graph:
        model.graph.save(options.graph)
    if options.plan:
        plan.save(options.plan, model.graph)
    if options.output:
        model.save(options.output, plan)
    if not (options.arena or options.tflite_micro or options.executorch):
        return
    arena = model.place(plan, alignment=options.alignment, work=options.work)
    if options.arena:
        arena.save(options.arena)
    if options.tflite_micro:
        names = Path(options.tensors).read_text(encoding="utf-8").splitlines() if options.tensors else None
        Path(options.tflite_micro).write_bytes(arena.to_tflite_micro(names))
    if options.executorch:
        Path(options.executorch).write_text(arena.to_executorch() + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
