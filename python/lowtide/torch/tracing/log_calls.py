"""Calls that log break no graph: `print`, `warnings.warn` and the methods of a `logging.Logger` run after the graph.

torch.compile parts a graph at each such call.  A model in several graphs has less to plan, and its loss cannot run in
parts.  Dynamo can put calls of functions behind a graph (`debug_locals` of a frame), if their arguments are constants,
formatted strings or tensors, and does so for functions that are named in its configuration.  Here the same is done
with methods, keyword arguments and everything else that can be made again behind the graph, but only where Lowtide is
what compiles: nothing changes for other backends, and no configuration is touched.

Every step logs, as in eager execution, in the same order.  Two things differ: the calls come at the end of the graph
in which they stand, and an object that is changed after the call is shown as it is then.  A tensor is detached.  What
cannot be made again (an object that the graph itself made) still breaks the graph.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable
from typing import Any

from ..compat.dynamo import backends_within, frame_traced
from ..compat.variables import VARIABLES as variables
from ..compat.variables import DebuggingVariable, LoggingLoggerVariable, dict_variable, getattr_and_trace

_FUNCTIONS = {print, warnings.warn, logging.debug, logging.info, logging.warning, logging.error, logging.critical,
              logging.exception, logging.log}
_ASKS = {"isEnabledFor", "getEffectiveLevel", "hasHandlers"}  # what a logger tells: taken as it is while tracing
_OTHER = {"addHandler", "removeHandler", "addFilter", "removeFilter", "setLevel", "getChild", "getChildren", "handle",
          "makeRecord", "findCaller", "callHandlers", "filter"}
_MARK = "_lowtide_logs_behind"


def logs_behind(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a backend of ours: what is traced for it logs behind its graphs."""
    setattr(compiler, _MARK, True)
    return compiler


def is_ours(tx: Any) -> bool:
    """Is it for a backend of ours that this frame is traced?"""
    return any(getattr(backend, _MARK, False) for backend in backends_within(tx.output.compiler_fn))


def bound(function: Callable[..., Any], named: dict[str, Any]) -> Callable[..., Any]:
    """The callable that compiled code runs after a graph, without a frame of ours around the function."""
    return functools.partial(function, **named)


def _install() -> None:
    class Bound(variables.VariableTracker):
        """A function to be called behind the graph, with its keyword arguments."""

        def __init__(self, load: Callable[[Any], None], named: dict[str, Any]) -> None:
            super().__init__()
            self._load, self._named = load, named

        def reconstruct(self, codegen: Any) -> None:
            def call() -> None:
                codegen.load_import_from(__name__, "bound")

            codegen.add_push_null(call)
            self._load(codegen)
            names = {variables.ConstantVariable.create(name): value for name, value in self._named.items()}
            codegen(dict_variable(names))
            codegen.call_function(2, False)

    def put_behind(tx: Any, load: Callable[[Any], None], args: Any, named: dict[str, Any]) -> Any:
        """Have the call run behind the graph; None where an argument cannot be made again there."""
        around = _cached(tx)
        if around is not None:
            if getattr(around, _MARK, False):
                return variables.ConstantVariable.create(None)
            wrapper, _, *args = around.symbolic_locals["args"].items
            named = {key.vt.as_python_constant(): v for key, v in around.symbolic_locals["kwargs"].items.items()}
            if wrapper.source is None:
                return None
            load = functools.partial(_load, wrapper.source)
        given, named = [_shown(tx, value) for value in args], {name: _shown(tx, value) for name, value in named.items()}
        if None in given or None in named.values():
            return None
        tx.output.root_tx.debug_locals.append((Bound(load, named), given))
        if around is not None:
            setattr(around, _MARK, True)
        return variables.ConstantVariable.create(None)

    call_method, call_function = LoggingLoggerVariable.call_method, DebuggingVariable.call_function
    is_reorderable = DebuggingVariable.is_reorderable_logging_function

    def logger_method(self: Any, tx: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        method = getattr(self.value, name, None)
        if is_ours(tx) and self.source and callable(method):
            if name in _ASKS and all(value.is_python_constant() for value in args) and not kwargs:
                answer = method(*(value.as_python_constant() for value in args))
                return variables.ConstantVariable.create(answer)
            if name not in _ASKS | _OTHER and not name.startswith(("_", "get", "is", "has")):
                def load(codegen: Any) -> None:
                    codegen(self.source)
                    codegen.extend_output(codegen.create_load_attrs(name))

                done = put_behind(tx, load, args, kwargs)
                if done is not None:
                    return done
        return call_method(self, tx, name, args, kwargs)

    def function(self: Any, tx: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if is_ours(tx) and self.source and self.value in _FUNCTIONS:
            done = put_behind(tx, functools.partial(_load, self.source), args, kwargs)
            if done is not None:
                return done
        return call_function(self, tx, args, kwargs)

    def reorderable(value: Any) -> bool:
        if is_reorderable(value):
            return True
        try:
            return value in _FUNCTIONS and is_ours(frame_traced())
        except (AttributeError, TypeError):  # nothing is traced; what has no hash is none of these
            return False

    # around their own
    LoggingLoggerVariable.call_method = logger_method
    DebuggingVariable.call_function = function
    DebuggingVariable.is_reorderable_logging_function = staticmethod(reorderable)


def _load(source: Any, codegen: Any) -> None:
    codegen(source)


def _cached(tx: Any) -> Any:
    """The frame by which Dynamo calls a function that keeps its results (functools.lru_cache), if this is within one.

    Such a function says something once for the same arguments.  So it is called as a whole behind the graph.
    """
    found = None
    while tx is not None:
        if tx.f_code is getattr_and_trace.__code__:
            wrapper = tx.symbolic_locals["args"].items[0].realize()
            if isinstance(getattr(wrapper, "wrapper_obj", None), functools._lru_cache_wrapper):
                found = tx
        tx = tx.parent
    return found


def _shown(tx: Any, value: Any) -> Any:
    """The argument as it can be made again behind the graph, or None."""
    value = value.realize()
    if isinstance(value, variables.TensorVariable):
        if tx.output.current_tracer.parent is not None:  # in the body of an operator that takes a graph
            return None
        return value.call_method(tx, "detach", [], {})
    if isinstance(value, (variables.ConstantVariable, variables.SymNodeVariable)):
        return value
    if isinstance(value, variables.StringFormatVariable):
        parts = [_shown(tx, part) for part in value.sym_args]
        named = {name: _shown(tx, part) for name, part in value.sym_kwargs.items()}
        if None in parts or None in named.values():
            return None
        return variables.StringFormatVariable(value.format_string, parts, named)
    if isinstance(value, variables.BaseListVariable):
        parts = [_shown(tx, part) for part in value.items]
        return None if None in parts else value.clone(items=parts)
    return value if value.is_python_constant() or value.source is not None else None


if variables is not None:
    _install()
