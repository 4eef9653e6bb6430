"""Options for all calls of this process that do not give them: by `replace`, else by the environment.

They are for code whose calls cannot be changed: a training framework that names a backend and passes no options.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# The options that a variable can give, LOWTIDE_BUDGET for one, and how its text is read.
FROM_ENVIRONMENT: Mapping[str, Callable[[str], Any]] = {
    "budget": str, "reserve": str, "techniques": str, "order": str, "solver": str, "time": float, "work": int, "seed": int,
    "threads": int, "link": str, "host_budget": str, "costs": str, "footprint": str, "allocator": str, "inner": str,
    "fallback": str,
}  # fmt: skip
_replaced: dict[str, Any] = {}


def replace(options: Mapping[str, Any]) -> None:
    """Make these the defaults, in the place of those of an earlier call."""
    global _replaced
    _replaced = dict(options)


def replaced() -> dict[str, Any]:
    """The defaults of `replace`: one object until the next call."""
    return _replaced


def complete(options: Mapping[str, Any]) -> dict[str, Any]:
    """These options, and the defaults of all others.

    Raises ValueError that names a variable whose text is no number, if its option is a number.
    """
    found: dict[str, Any] = {}
    for name, text in _texts(options).items():
        try:
            found[name] = FROM_ENVIRONMENT[name](text)
        except ValueError:
            raise ValueError(f"{_variable(name)} is a number, not {text!r}") from None
    return {**found, **_replaced, **options}


@contextlib.contextmanager
def naming_variables(options: Mapping[str, Any]) -> Iterator[None]:
    """Adds variables to a ValueError or TypeError that names their options, where `complete(options)` has read these."""
    try:
        yield
    except (TypeError, ValueError) as error:
        named = [f"{_variable(name)}={text}" for name, text in _texts(options).items() if re.search(rf"\b{name}\b", str(error))]
        if named:
            error.args = (f"{error} (from the environment: {', '.join(named)})",)
        raise


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the variables that `complete(options)` reads, by option."""
    texts = {name: os.environ.get(_variable(name), "") for name in FROM_ENVIRONMENT if name not in options and name not in _replaced}
    return {name: text for name, text in texts.items() if text}


def _variable(option: str) -> str:
    return f"LOWTIDE_{option.upper()}"
