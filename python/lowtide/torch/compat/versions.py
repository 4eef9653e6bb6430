"""The versions of PyTorch that Lowtide runs with, and the message for all others."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator

OLDEST, NEWEST = (2, 11), (2, 14)


class UnsupportedTorchError(ImportError):
    """No supported PyTorch is installed; the text says which version to install."""

    __module__ = "lowtide.torch"


def version_of(text: str) -> tuple[int, int]:
    """(2, 13) of "2.13.0+cu130", (2, 14) of "2.14.0a0+git1234"; (0, 0) of what begins with no two numbers."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


_TRIED = f"torch {_text(OLDEST)} to {_text(NEWEST)}"
INSTALL = f"pip install 'torch>={_text(OLDEST)},<{_text((NEWEST[0], NEWEST[1] + 1))}'"

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise UnsupportedTorchError(f"lowtide.torch needs PyTorch, and none is installed here; it runs with {_TRIED}: {INSTALL}",
                                name="torch") from None

VERSION = version_of(torch.__version__)


def before(major: int, minor: int) -> bool:
    """Is this PyTorch older than that?  One that says no version counts as the newest that was tried."""
    return (VERSION if VERSION != (0, 0) else NEWEST) < (major, minor)


def since(major: int, minor: int) -> bool:
    """Is this PyTorch that one, or newer?"""
    return not before(major, minor)


def check_version(version: str = torch.__version__, stacklevel: int = 3) -> None:
    """Raises UnsupportedTorchError where this PyTorch is older than all that Lowtide runs with.  Of one that nobody has tried
    it warns."""
    found = version_of(version)
    if (0, 0) < found < OLDEST:
        raise UnsupportedTorchError(f"lowtide.torch runs with {_TRIED}, and this is torch {version}: {INSTALL}")
    if not OLDEST <= found <= NEWEST:
        warnings.warn(f"lowtide.torch was tried with {_TRIED}, and this is torch {version}; if something fails: {INSTALL}",
                      stacklevel=stacklevel)


@contextlib.contextmanager
def needed(what: str) -> Iterator[None]:
    """Imports within this context are required.  If this PyTorch lacks one, the error is one sentence."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        if isinstance(error, UnsupportedTorchError):
            raise
        raise UnsupportedTorchError(f"lowtide.torch does not find the {what} of torch {torch.__version__} ({error}); it runs with "
                                    f"{_TRIED}: {INSTALL}") from None


@contextlib.contextmanager
def optional(what: str) -> Iterator[None]:
    """Imports within this context serve one feature.  If this PyTorch lacks one, a warning names the feature."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        warnings.warn(f"lowtide.torch goes without {what}, of which torch {torch.__version__} lacks a part ({error}); it runs with "
                      f"{_TRIED}: {INSTALL}", stacklevel=3)
