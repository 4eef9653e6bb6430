"""Packages that only a part of Lowtide needs, and what is said where one is missing."""

import importlib.metadata
import importlib.util
import re
import sys


def wanted(package):
    """The package with the versions that Lowtide's extras name, as pip takes them: "torch<2.15,>=2.11"."""
    try:
        named = importlib.metadata.requires("lowtide") or []
    except importlib.metadata.PackageNotFoundError:
        named = []
    for requirement in named:
        found = re.match(r"([\w.-]+)\s*([^;\s]*)", requirement)
        if found and found[1] == package:
            return package + found[2]
    return package


def _is_installed(package):
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # somebody has put it into sys.modules
        return True


def require(package, part):
    """ModuleNotFoundError in one sentence where the package is not installed; it is not imported."""
    if not _is_installed(package):
        what, python = wanted(package), "{}.{}".format(*sys.version_info)
        raise ModuleNotFoundError(
            f"{part} needs {what}, which this Python {python} does not have: pip install '{what}'", name=package)
