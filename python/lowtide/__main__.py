"""`python -m lowtide` runs the command that this package was installed with."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, files


def command() -> str | None:
    """Its path, or None."""
    try:
        installed = [str(file.locate()) for file in files("lowtide") or () if file.name == "lowtide"]
    except PackageNotFoundError:
        installed = []
    for path in [*installed, os.path.join(sysconfig.get_path("scripts"), "lowtide")]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def main() -> None:
    path = command()
    if path is None:
        sys.exit("lowtide: the command was not installed with this package")
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
