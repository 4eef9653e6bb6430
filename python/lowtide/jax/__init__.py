"""JAX: training steps planned within a memory budget.

    step = lowtide.jax.optimize(train_step, params, state, batch, budget="60%", donate_argnums=(0, 1))
    params, state, loss = step(params, state, batch)

* tracing: a step -> flat equations.  program: these -> a graph with prices.  emission: a plan -> a function, ops run one by
  one, XLA's executable and its memory.  api: the functions that users call.
* compat.py: what is private in JAX, or differs between its versions.
"""

from ..frontend.errors import BudgetError, CaptureError
from ..frontend.planning.explanation import Explanation
from ..frontend.planning.report import reports
from .api.capture import capture, explain
from .api.entry import OptimizedStep, optimize
from .api.report import StepReport

__all__ = ["BudgetError", "CaptureError", "Explanation", "OptimizedStep", "StepReport", "capture", "explain", "optimize", "reports"]
