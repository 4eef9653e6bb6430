"""Lowtide for ONNX models: peaks, planned orders, and offsets for one arena.

    model = lowtide.onnx.load("model.onnx", dims={"batch": 1})
    outcome = model.plan()
    model.save("planned.onnx", outcome)
    model.place(outcome).save("arena.json")

Needs the package onnx alone.  `python -m lowtide.onnx MODEL` prints a table.
"""

from .compat import UnsupportedOnnxError, check_version

check_version()

from ..frontend.errors import BudgetError
from .arena import Arena, Place
from .errors import ModelError
from .model import Model, load
from .table import Table, compare

__all__ = ["Arena", "BudgetError", "Model", "ModelError", "Place", "Table", "UnsupportedOnnxError", "compare", "load"]
