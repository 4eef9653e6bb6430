"""The package onnx: imported here first, so that a missing or old one is told in one sentence."""

from __future__ import annotations

import sys

_OLDEST = (1, 19)


class UnsupportedOnnxError(ImportError):
    """The package onnx is missing or too old; the text says what to install."""


def check_version() -> None:
    """Raises UnsupportedOnnxError unless a supported version of onnx can be imported; the command says the same and ends."""
    try:
        _check()
    except UnsupportedOnnxError as error:
        if sys.argv[:1] != ["-m"]:  # Python's own, until it has found the module of `python -m`
            raise
        print(f"lowtide.onnx: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _check() -> None:
    oldest = ".".join(map(str, _OLDEST))
    remedy = f"pip install 'onnx>={oldest}' (or lowtide[onnx])"
    try:
        import onnx
    except ImportError as error:
        raise UnsupportedOnnxError(f"lowtide.onnx needs the package onnx, which cannot be imported ({error}): {remedy}") from error
    found = str(getattr(onnx, "__version__", "0"))
    if tuple(int(part) for part in found.split(".")[:2] if part.isdigit()) < _OLDEST:
        raise UnsupportedOnnxError(f"lowtide.onnx needs onnx {oldest} or later, not {found}: {remedy}")
