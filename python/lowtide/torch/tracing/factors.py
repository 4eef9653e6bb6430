"""Sums with a factor are traced as the one operator that eager execution calls.

Of `x.add_(y, alpha=0.1)`, `x.addcmul_(y, z, value=0.1)`, `x.addcdiv_(y, z, value=0.1)`, `torch.addcdiv` and
`torch._foreach_lerp_` Dynamo makes products and sums of its own, which round otherwise, so that a factor that is a tensor
breaks no graph.  Here a factor that is a number stays a number of the operator, where Lowtide is what compiles: nothing
changes for other backends.  Of a factor that is a tensor a report says that bits may differ (against_eager.py).
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from ..compat.variables import VARIABLES as variables
from ..compat.variables import TorchInGraphFunctionVariable, as_eager_calls, foreach_lerp
from .log_calls import is_ours

_METHODS = {"add_": "alpha", "addcmul_": "value", "addcdiv_": "value"}
_FUNCTIONS = {torch.addcdiv: (3, "value"), foreach_lerp: (2, "weight")}  # the factor's place and name


_NOTES = "_lowtide_factors"


def tensor_factors(tx: Any) -> tuple[str, ...]:
    """The operators in the graph that is traced whose factor is a tensor."""
    return tuple(dict.fromkeys(getattr(tx.output, _NOTES, ())))


def _keeps(tx: Any, name: str, factor: Any) -> bool:
    """Is that the factor of a sum which is to stay one operator?"""
    if factor is None or not is_ours(tx):
        return False
    if _is_number(factor):
        return True
    setattr(tx.output, _NOTES, [*getattr(tx.output, _NOTES, ()), name])
    return False


def _is_number(value: Any) -> bool:
    value = value.realize()
    return isinstance(value, variables.SymNodeVariable) or value.is_python_constant()


def _install() -> None:
    call_method, call_function = variables.TensorVariable.call_method, TorchInGraphFunctionVariable.call_function

    def method(self: Any, tx: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        keeps = name in _METHODS and _keeps(tx, name, kwargs.get(_METHODS[name]))
        with as_eager_calls() if keeps else contextlib.nullcontext():
            return call_method(self, tx, name, args, kwargs)

    def function(self: Any, tx: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        keeps = False
        if self.value in _FUNCTIONS:
            place, name = _FUNCTIONS[self.value]
            keeps = _keeps(tx, self.value.__name__, args[place] if len(args) > place else kwargs.get(name))
        with as_eager_calls(self.value) if keeps else contextlib.nullcontext():
            return call_function(self, tx, args, kwargs)

    variables.TensorVariable.call_method = method
    TorchInGraphFunctionVariable.call_function = function


if variables is not None:
    _install()
