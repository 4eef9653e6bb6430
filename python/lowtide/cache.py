"""Small files that outlive the process: measured times and plans.

They lie in $LOWTIDE_CACHE, or in `lowtide` under $XDG_CACHE_HOME or ~/.cache; LOWTIDE_CACHE=off keeps
nothing.  A file that cannot be read or written is as good as none: a cache never fails a run.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def folder() -> Path | None:
    """The folder of the cache; None if the cache is switched off."""
    asked = os.environ.get("LOWTIDE_CACHE", "")
    if asked.lower() in ("off", "0", "no"):
        return None
    if asked:
        return Path(asked)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lowtide"


def path_of(kind: str, *key: Any) -> Path | None:
    """The file for these parts of a key (anything with a stable repr)."""
    base = folder()
    if base is None:
        return None
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
    return base / kind / f"{digest}.json"


def read(path: Path | None) -> Any:
    """The value that `write` stored there, or None."""
    if path is None:
        return None
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def write(path: Path | None, value: Any) -> None:
    """Put `value` there, whole or not at all."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as part:
            json.dump(value, part)
        os.replace(part.name, path)
    except OSError:
        return
