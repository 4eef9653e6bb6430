"""Symbols for sizes and numbers that tracing leaves open."""

from .versions import needed

with needed("symbols of sizes"):
    from torch._dynamo.source import ConstantSource
    from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod
    from torch.utils._sympy.printers import PythonPrinter

__all__ = ["ConstantSource", "FloorDiv", "Mod", "PythonMod", "PythonPrinter"]
