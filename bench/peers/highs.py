"""A mixed-integer program in columns and rows, solved by HiGHS through its C interface.

The library is the one that LOWTIDE_HIGHS names, as `tools/engines` sets it.
"""
import ctypes
import math
import os

INFINITE = math.inf
OPTIMAL, INFEASIBLE = 7, 8  # of HiGHS's model status


def library():
    """HiGHS, or None where it is not installed."""
    path = os.environ.get("LOWTIDE_HIGHS")
    if not path or not os.path.exists(path):
        return None
    highs = ctypes.CDLL(path)
    highs.Highs_create.restype = ctypes.c_void_p
    return highs


class Program:
    """Least sum of cost times column, every row within its limits."""

    def __init__(self):
        self.cost, self.low, self.high, self.integer = [], [], [], []
        self.row_low, self.row_high, self.starts, self.columns, self.values = [], [], [], [], []

    def column(self, low, high, cost=0, integer=False):
        self.cost.append(cost)
        self.low.append(low)
        self.high.append(high)
        self.integer.append(int(integer))
        return len(self.cost) - 1

    def row(self, low, terms, high):
        """`terms`: (coefficient, column); those of one column add up."""
        sums = {}
        for coefficient, column in terms:
            sums[column] = sums.get(column, 0) + coefficient
        self.row_low.append(low)
        self.row_high.append(high)
        self.starts.append(len(self.columns))
        self.columns += sums.keys()
        self.values += sums.values()

    def solve(self, highs, seconds, gap=0.0):
        """(status, objective's bound, values or None). `gap`: by how much a proven optimum may be too large."""
        doubles, ints = ctypes.c_double * 1, ctypes.c_int * 1
        def real(values):
            return (ctypes.c_double * len(values))(*values)
        def whole(values):
            return (ctypes.c_int * len(values))(*values)
        model = ctypes.c_void_p(highs.Highs_create())
        try:
            highs.Highs_setBoolOptionValue(model, b"output_flag", 0)
            highs.Highs_setIntOptionValue(model, b"threads", 1)
            for name, value in ((b"time_limit", seconds), (b"mip_rel_gap", 0), (b"mip_abs_gap", gap)):
                highs.Highs_setDoubleOptionValue(model, name, ctypes.c_double(value))
            row_wise, minimize = 2, 1
            if highs.Highs_passMip(model, len(self.cost), len(self.row_low), len(self.values), row_wise, minimize,
                                   ctypes.c_double(0), real(self.cost), real(self.low), real(self.high),
                                   real(self.row_low), real(self.row_high), whole(self.starts), whole(self.columns),
                                   real(self.values), whole(self.integer)) < 0:
                raise ValueError("HiGHS refuses the program")
            highs.Highs_run(model)
            status = highs.Highs_getModelStatus(model)
            bound, feasible = doubles(), ints()
            highs.Highs_getDoubleInfoValue(model, b"mip_dual_bound", bound)
            highs.Highs_getIntInfoValue(model, b"primal_solution_status", feasible)
            if feasible[0] != 2:
                return status, bound[0], None
            values, rows = real(self.cost), real(self.row_low)
            highs.Highs_getSolution(model, values, real(self.cost), rows, real(self.row_low))
            return status, bound[0], list(values)
        finally:
            highs.Highs_destroy(model)
