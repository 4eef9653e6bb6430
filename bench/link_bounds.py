"""What is proven of plans over a link to the host, and how far the plans found are above it.

    python3 bench/link_bounds.py [GRAPH ...] [--links 12,25,50] [--budgets 80,65,50,35,25] [--work N] [--plan-work N] [-o FILE]

asks `bounds` about each graph (those of `examples/` unless told), link (GB/s each way, 10 us) and budget (shares of what
is plannable) in the given order, and, with `--plan-work`, `auto` for a plan; writes the overheads as a table.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from table import Table

ROOT = Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))


def ask(solver, graph, budget, link, techniques, work):
    done = subprocess.run(
        [COMMAND, "plan", graph, "--budget", f"act:{budget}%", "--order", "given", "--solver", solver, "--link",
         f"{link}GB/s,10us", "--derate", "0%", "--techniques", techniques, "--work", str(work), "--threads", "1",
         "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def percent(overhead):
    return "" if overhead is None else f"{overhead:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", type=Path)
    parser.add_argument("--links", default="12,25,50", help="GB/s")
    parser.add_argument("--budgets", default="80,65,50,35,25", help="shares of what is plannable, in per cent")
    parser.add_argument("--techniques", default="default")
    parser.add_argument("--work", type=int, default=100_000, help="of bounds")
    parser.add_argument("--plan-work", type=int, default=0, help="of auto; 0: no plan is sought")
    parser.add_argument("-o", "--output", type=Path, help="write the table here, as Markdown")
    given = parser.parse_args()
    table = Table("Overhead in per cent that no plan can avoid, in the given order",
                  [("graph", 0), ("link", 0), ("budget", 0), ("bound", 0), ("link price", 1), ("seconds", 2), ("plan", 0)])
    for graph in given.graphs or sorted(ROOT.glob("examples/*.graph.json.gz")):
        for link in given.links.split(","):
            for budget in given.budgets.split(","):
                found = ask("bounds", graph, budget, link, given.techniques, given.work)
                proven = "no plan" if found["bound"] is None else percent(
                    100 * (found["bound"] / found["base_duration"] - 1))
                price = "" if found["link_price"] is None else f"{found['link_price']:.3f}"
                plan = ask("auto", graph, budget, link, given.techniques,
                           given.plan_work)["overhead_percent"] if given.plan_work else None
                table.add(graph.name.removesuffix(".graph.json.gz"), f"{link} GB/s", f"{budget} %", proven, price,
                          f"{found['time_s']:.2f}", percent(plan))
                print(*table.rows[-1], sep="  ", flush=True)
    table.notes.append(f"{given.work:,} units of counted work for each bound, one thread.")
    if given.output:
        given.output.write_text(table.markdown())


if __name__ == "__main__":
    main()
