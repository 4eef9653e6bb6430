"""Forward, backward and updates as the program of one call.

Between forward and backward nobody takes control, so the backward is hoisted: the gradient of the loss is 1, updates run
as soon as their gradients are there, and what is handed out is the loss.  No gradient is.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import CaptureError
from ..program import Program
from .hoist import Guess
from .made import made_program


def in_one_call(program: Program) -> Program:
    """The program of a training step with its barrier behind everything.

    Raises CaptureError if something else than one loss can be differentiated, or no parameter is updated.
    """
    barrier = program.graph["ops"][program.barrier]
    if len(barrier["outputs"]) != 1 or program.updates is None:
        raise CaptureError("step needs one result that can be differentiated, the loss, and parameters that it trains; "
                           f"here are {len(barrier['outputs'])} such results: return the others detached")
    tensors = program.graph["tensors"]
    made = {t for op in program.graph["ops"] for t in op["outputs"]}
    kept = [t for t in program.graph["outputs"] if tensors[t].get("role") != "gradient" or t not in made]
    program = replace(program, graph=program.graph | {"outputs": kept},
                      backward_outputs=[None] * len(program.backward_outputs))
    hoist = {"kind": "hoist", "tangent": barrier["outputs"][0], "joins": []}
    return made_program(program, [hoist], Guess(1.0))
