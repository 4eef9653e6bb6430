"""Finds the engines that pip has installed, without importing them."""

import glob
import importlib.util
import os
import sysconfig


def _inside(package: str, pattern: str) -> str:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    for folder in (spec and spec.submodule_search_locations) or ():
        found = sorted(glob.glob(os.path.join(folder, pattern)))
        if found:
            return found[0]
    return ""


def paths() -> tuple[str, str, str]:
    """Paths of CP-SAT's library, of HiGHS's library, and of the worker program; "" for a missing one."""
    worker = os.path.join(sysconfig.get_path("scripts"), "lowtide-worker")
    return (
        _inside("ortools", ".libs/libortools.so*"),
        _inside("highsbox", "highs_dist/lib/libhighs.so"),
        worker if os.access(worker, os.X_OK) else "",
    )
