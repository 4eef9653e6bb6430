"""Options for all calls of this process that do not give them: by `replace`, else by the environment.

They are for code whose calls cannot be changed: a training framework that names a backend and passes no options.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
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
    for name, read in FROM_ENVIRONMENT.items():
        text = os.environ.get(_variable(name), "")
        if not text or name in options or name in _replaced:
            continue
        try:
            found[name] = read(text)
        except ValueError:
            raise ValueError(f"{_variable(name)} is a number, not {text!r}") from None
    return {**found, **_replaced, **options}


def _variable(option: str) -> str:
    return f"LOWTIDE_{option.upper()}"
