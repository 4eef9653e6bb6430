"""Lowtide in PyTorch: training under a memory budget, with bit-identical results.

    model = torch.compile(model, backend="lowtide", options={"budget": "8GiB"})

or, with inputs to plan for before the first step,

    model = lowtide.torch.optimize(model, (x, y), budget="8GiB")

`explain` shows the overhead of each budget, `capture` returns a training step's graph without running it, `measure_peak`
measures a step's peak, `measure_device` a device's rates, `accumulate` postpones updates in the backward, and `set_default`
gives options to frameworks that pass none.
"""

from .compat.versions import UnsupportedTorchError, check_version

check_version()

from ..frontend.errors import BudgetError, CaptureError, LowtideWarning, OverBudgetWarning
from ..frontend.planning.report import Report, reports
from .api.capture import capture
from .api.entry import backend, optimize
from .api.explain import Explanation, explain
from .api.process import set_default
from .api.whole_step import Step, step
from .device.meter import measure_peak
from .device.rates import measure_device
from .optimizer.accumulating import accumulate
from .ranks.failure import RankError
from .ranks.mesh import Shard
from .step_errors import UpdateError, WrittenError

__all__ = ["BudgetError", "CaptureError", "Explanation", "LowtideWarning", "OverBudgetWarning", "RankError", "Report", "Shard", "Step",
           "UnsupportedTorchError",
           "UpdateError", "WrittenError", "accumulate", "backend", "capture", "explain", "measure_device", "measure_peak", "optimize", "reports",
           "set_default", "step"]
