"""Dynamo's knowledge of the values in a traced frame.

Here it is told what to make of some calls.  Where a release of PyTorch has other names for this, VARIABLES is None: graphs
break at calls that log, and nobody notes who asks whether he is traced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .versions import before, optional

VARIABLES: Any = None
DebuggingVariable: Any = None
LoggingLoggerVariable: Any = None
TorchInGraphFunctionVariable: Any = None
getattr_and_trace: Any = None
with optional("calls that log behind a graph, and notes of code that asks whether it is traced"):
    from torch._dynamo import config, variables
    from torch._dynamo.polyfills import getattr_and_trace
    from torch._dynamo.variables.misc import DebuggingVariable, LoggingLoggerVariable
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    VARIABLES = variables

__all__ = ["ASKS_OF_TRACING", "VARIABLES", "DebuggingVariable", "LoggingLoggerVariable", "TorchInGraphFunctionVariable", "as_eager_calls",
           "breaks_at_required_gradients", "dict_variable", "foreach_lerp", "getattr_and_trace"]

foreach_lerp = torch._foreach_lerp_

ASKS_OF_TRACING = {torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, torch.compiler.is_exporting,
                   getattr(torch._utils, "is_compiling", None), getattr(torch._dynamo.external_utils, "is_compiling", None)} - {None}


def dict_variable(items: dict[Any, Any]) -> Any:
    """A dict of values that are traced."""
    return variables.ConstDictVariable(items, dict) if before(2, 14) else variables.ConstDictVariable(items)


def breaks_at_required_gradients(tx: Any) -> bool:
    """Would Dynamo break the graph where a tensor that the graph has made is to require gradients?  It first tries without a break,
    and traces again if a result depends on that tensor."""
    return bool(tx.one_graph or getattr(tx.speculation_log, "graph_break_on_requires_grad_", True))


@contextlib.contextmanager
def as_eager_calls(function: Callable[..., Any] | None = None) -> Iterator[None]:
    """Within, Dynamo makes no operators of its own of a method or function that eager execution calls as one."""
    handlers = TorchInGraphFunctionVariable._get_handlers()
    taken = handlers.pop(function, None)
    try:
        with config.patch(enable_dynamo_decompositions=False):
            yield
    finally:
        if taken is not None:
            handlers[function] = taken
