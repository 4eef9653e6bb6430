"""What lowtide_bench wrote, with medians over seeds, and what was published."""
import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import median

KEY = ("set", "graph", "budget", "order", "solver", "variant")
WORST = {"overhead_0.1s", "overhead_1s", "overhead_10s", "overhead", "within", "gap", "first_plan_s"}


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def number(text):
    return float(text) if text else None


def middle(rows, column):
    """The median over seeds; a run that found no plan counts as worse than any. None if it is that."""
    values = [number(row[column]) for row in rows]
    if column in WORST:
        values = [math.inf if value is None else value for value in values]
    values = [value for value in values if value is not None]
    if not values:
        return None
    value = median(values)
    # Within an infinite share of a bound of 0 is a figure; an overhead without a plan is none.
    return None if math.isinf(value) and (column != "within" or middle(rows, "overhead") is None) else value


class Row:
    """One question, asked with one or several seeds."""

    def __init__(self, runs):
        self.runs = runs
        self.statuses = {run["status"] for run in runs}

    def __getitem__(self, column):
        return self.runs[0][column]

    def middle(self, column):
        return middle(self.runs, column)

    def spread(self):
        """Of the final overhead over the seeds, in points."""
        found = [number(run["overhead"]) for run in self.runs]
        return None if None in found else max(found) - min(found)


def read_rows(path):
    grouped = defaultdict(list)
    for run in read_csv(path):
        grouped[tuple(run[column] for column in KEY)].append(run)
    return [Row(runs) for runs in grouped.values()]


def read_published(folder):
    """{(graph, budget, order): [row, ...]}, in the order of the files' names."""
    found = defaultdict(list)
    for path in sorted(Path(folder).glob("*.csv")):
        for row in read_csv(path):
            found[row["graph"], row["budget"], row["order"]].append(row)
    return found
