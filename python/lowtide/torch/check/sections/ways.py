"""Other entry points and settings: every technique, torch.compile, another stream, another shape."""

from __future__ import annotations

import torch

from ..bits import compare, step_from
from ..language import gpt
from ..measure import clean
from ..plans import check_plan, eager
from ..section import Context


def parts(context: Context) -> None:
    """The loss, or the step, in parts: what adds up over parts may differ, as the report says."""
    module, inputs = gpt(context, torch.bfloat16)
    beside = eager(context, "every technique", module, inputs)
    for share in ("50%", "30%"):
        if context.has_time(12, f"every technique {share}"):
            check_plan(context, f"every technique {share}", module, inputs, share, beside, techniques="all")


def backend(context: Context) -> None:
    """torch.compile with the backend's name; an evaluation; half of the batch."""
    module, inputs = gpt(context, torch.bfloat16, layers=3)
    with context.guarded("torch.compile"):
        expected = step_from(module, module, inputs, [])
        clean()
        run = torch.compile(module, backend="lowtide", options={"budget": "70%", "fallback": "error"})

        def say(what: str, equal: bool) -> None:
            context.say(what, [] if equal else ["bits"], equal=equal)

        say("torch.compile", compare(step_from(run, module, inputs, []), expected)["equal"])
        if context.on_gpu:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                equal = all([compare(step_from(run, module, inputs, []), expected)["equal"] for _ in range(5)])
            torch.cuda.current_stream().wait_stream(stream)
            say("on another stream", equal)
        with torch.no_grad():
            say("evaluation", torch.equal(run(*inputs), module(*inputs)))
        half = tuple(t[: max(1, t.shape[0] // 2)] for t in inputs)
        say("half of the batch", compare(step_from(run, module, half, []), step_from(module, module, half, []))["equal"])
