"""What PyTorch's caching allocator reserves for plans as they come, and with their allocations laid out in one block.

    python bench/layouts.py GRAPH... [--budgets none,70,50,35] [--time S] [--seed N] [-o FILE]

plans each graph within shares of its baseline peak and replays six steps under the allocator's model (lowtide.replay_allocations).
Figures are reserved / allocated bytes, the allocated ones of the plan as it comes. Needs the package (make wheel).
"""
import argparse
import time
from pathlib import Path

from lowtide.frontend.planning import layout, taken
from table import Table

import lowtide

COLUMNS = ["graph", "budget", "default", "expandable", "prime", "exact", "missed", "plugs", "none", "seconds"]


def row(graph, plan):
    plain = lowtide.footprint(graph, plan)
    barrier = next((op.index for op in graph.ops if op.kind == "barrier"), None)

    def ratio(reserved):
        return f"{reserved / plain.allocated:.3f}"

    yield ratio(plain.reserved)
    yield ratio(lowtide.footprint(graph, plan, allocator="expandable_segments:True").reserved)
    yield ratio(taken.taken(graph, plan, "", "prime", barrier).reserved)
    began = time.perf_counter()
    found = layout.arrangement(graph, plan, barrier)
    seconds = time.perf_counter() - began
    if found is None:
        yield from ("", "", "", "", f"{seconds:.1f}")
        return
    yield ratio(lowtide.replay_allocations(taken.arranged_events(graph, plan, barrier, found))["peaks"]["reserved"])
    count = max(1, len(found.offsets))
    yield f"{found.missed} of {count}"
    yield f"{sum(map(len, found.plugs)) / count:.1f}"
    yield f"{100 * sum(not plugs for plugs in found.plugs) // max(1, len(found.plugs))} %"
    yield f"{seconds:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+", type=Path)
    parser.add_argument("--budgets", default="none,70,50,35", help="shares of the baseline peak, in per cent")
    parser.add_argument("--time", type=float, default=2, help="seconds of planning")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="write the table here, as Markdown")
    given = parser.parse_args()
    table = Table("Reserved over allocated bytes", [(name, 0) for name in COLUMNS])
    for path in given.graphs:
        graph = lowtide.Graph.load(path)
        for budget in given.budgets.split(","):
            plan = lowtide.own_plan(graph) if budget == "none" else \
                lowtide.plan(graph, f"{budget}%", time=given.time, seed=given.seed, threads=1).plan
            if plan is None:
                continue
            table.add(path.name.partition(".")[0], "no plan" if budget == "none" else f"{budget} %", *row(graph, plan))
            print(*table.rows[-1], flush=True)
    table.notes.append("*missed*: allocations above 1 MiB that land elsewhere than planned. *plugs*: of an allocation. *none*: points of a step "
                       "at which nothing has to be held. *seconds*: to arrange the plan.")
    if given.output:
        given.output.write_text(table.markdown())


if __name__ == "__main__":
    main()
