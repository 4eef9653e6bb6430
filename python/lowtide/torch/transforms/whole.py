"""Forward, backward and updates as the program of one call.

The user has no control between forward and backward, so the backward is hoisted with a gradient of the loss of 1.  Updates run as
soon as their gradients are computed.  The call returns the loss and no gradients.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...frontend.errors import CaptureError
from ..program.program import AnyProgram
from ..runtime.assumed_tangent import AssumedTangent
from .transformed import transformed_program


def in_one_call(program: AnyProgram) -> AnyProgram:
    """The program of a training step with its barrier behind everything.

    Raises CaptureError if something else than one loss can be differentiated, or no parameter is updated.
    """
    graph, barrier = program.graph, program.graph.op(program.barrier)
    shapes = [graph.tensor(t).shape for t in barrier.outputs]
    if len(shapes) != 1 or math.prod(shapes[0]) != 1:
        raise CaptureError("step needs one graph with one result that can be differentiated, a loss of one element; here "
                           f"are results of shapes {', '.join(map(str, shapes))}: return the others detached. Where the "
                           "tracer breaks the model into several graphs (TORCH_LOGS=graph_breaks shows where), use "
                           "optimize(..., update='backward')")
    if program.updates is None:
        raise CaptureError("step trains nothing here: no parameter that the loss depends on is one of the optimizer's")
    kept = [t for t in graph.outputs if graph.tensor(t).role != "gradient" or graph.tensor(t).producer is None]
    program = replace(program, graph=graph.edited(outputs=kept),
                      backward_outputs=[None] * len(program.backward_outputs))
    hoist = {"kind": "hoist", "tangent": barrier.outputs[0], "joins": []}
    return transformed_program(program, [hoist], AssumedTangent(1.0))
