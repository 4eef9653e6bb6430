"""Lowtide in PyTorch: training under a budget in bytes, with the same numbers coming out.

    model = torch.compile(model, backend="lowtide", options={"budget": "8GiB"})

or, with inputs to plan for before the first step,

    model = lowtide.torch.optimize(model, (x, y), budget="8GiB")

`explain` shows what each budget would cost, `capture` writes a training step's graph without running it,
`measure_peak` says what a step took, `measure_device` what a device can do, `accumulate` holds back updates that a plan
makes in the backward.
"""

from .compat import warn_of_another_version

warn_of_another_version()

from .capture import capture
from .entry import backend, optimize
from .errors import BudgetError, CaptureError, LowtideWarning, OverBudgetWarning
from .own_errors import UpdateError, WrittenError
from .explain import Explanation, explain
from .meter import measure_peak
from .planning.report import Report, reports
from .rates import measure_device
from .updating.accumulating import accumulate
from .whole_step import Step, step

__all__ = ["BudgetError", "CaptureError", "Explanation", "LowtideWarning", "OverBudgetWarning", "Report", "UpdateError", "WrittenError",
           "Step", "accumulate", "backend", "capture", "explain", "measure_device", "measure_peak", "optimize", "reports",
           "step"]
