"""The error of models that cannot be planned."""

from __future__ import annotations

import lowtide


class ModelError(lowtide.Error):
    """A model that cannot be read, planned or written: what is wrong, where, and what would be right.  One line."""

    def __init__(self, message: str) -> None:
        # names of a file may hold anything
        super().__init__("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message))
