"""What searches have found, for other processes that plan the same: these ask the same questions, and search nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answers:
    """found: entries as the cache keeps them, or the exception that a search has ended with (BudgetError, search.NotInParts), each
    by the hash of the question's graph with its limits and options, as text.

    Entries can be pickled, since they go from process to process.
    """

    found: dict[str, Any] = field(default_factory=dict)

    def entry(self, key: str) -> Any:
        """The entry of a question; None if nobody has asked it.  Raises the exception that its search has ended with."""
        entry = self.found.get(key)
        if isinstance(entry, Exception):
            raise entry
        return entry
