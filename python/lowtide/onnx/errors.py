"""The error of models that cannot be planned."""

from __future__ import annotations

import lowtide


class ModelError(lowtide.Error):
    """A model that cannot be read, planned or written: what is wrong, where, and what would be right."""
