"""Hooks that let checkpoints differentiate break no graph under Lowtide.

A reentrant checkpoint computes gradients only if one of its inputs requires them, and the output of a frozen embedding requires none.
So Transformers and PEFT hook the embedding when gradient checkpointing is turned on: `output.requires_grad_(True)`.  Dynamo breaks the
graph there, since the tensor becomes a leaf whose gradient some code might read.  The hook itself reads none, and a traced checkpoint
needs none.  A hook with no other statement is passed over if Lowtide is the compiler.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..compat.variables import VARIABLES as variables
from ..compat.variables import breaks_at_required_gradients
from .log_calls import is_ours

_METHOD = "requires_grad_"
_HOOK_ARGUMENTS = 3  # the module, its arguments, its output


def _does_nothing_else(code: CodeType) -> bool:
    """Is that the code of a forward hook that calls this method, and uses no other name?"""
    return code.co_names == (_METHOD,) and code.co_argcount == _HOOK_ARGUMENTS and not code.co_freevars


def pass_over_hooks() -> None:
    """From now on Dynamo passes over such hooks for a backend of ours."""
    if variables is None:
        return
    call_method = variables.TensorVariable.call_method

    def method(self: Any, tx: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if name == _METHOD and self.source is None and _does_nothing_else(tx.f_code) and breaks_at_required_gradients(tx) and is_ours(tx):
            return self
        return call_method(self, tx, name, args, kwargs)

    variables.TensorVariable.call_method = method
