"""Where copying to the host pays: overheads at the same bytes, with and without a device's link.

    python3 bench/offload_by_device.py [GRAPH ...] [--devices l4,rtx4090,a100,h100] [--budgets 80,60,50,40] [--work N] [--seeds N]
                                       [-o FILE]

prices each graph (those of `examples/` unless told) for each device (`lowtide convert`), plans it within shares of its
baseline peak, once with recomputation and steps in place alone and once with copies over the device's link as well, from the
same seeds with the same counted work and one thread, and writes the medians as a table.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Table
from techniques import COMMAND, ROOT, median, plan, text


def priced(graph, device, folder):
    path = Path(folder) / f"{device}-{graph.name}"
    done = subprocess.run([COMMAND, "convert", graph, path, "--device", device], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", type=Path)
    parser.add_argument("--devices", default="l4,rtx4090,a100,h100", help="of 'lowtide devices', with a link to the host")
    parser.add_argument("--budgets", default="80,60,50,40", help="shares of the baseline peak, in per cent")
    parser.add_argument("--work", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="write the table here, as Markdown")
    given = parser.parse_args()
    devices = given.devices.split(",")
    table = Table("Overhead in per cent at the same bytes: recomputation alone, and with copies over the device's link",
                  [("graph", 0), ("budget", 0), *((column, 0) for device in devices
                                                  for column in (f"{device}, without", "with its link"))], fixed=2)
    with tempfile.TemporaryDirectory() as folder:
        for graph in given.graphs or sorted(ROOT.glob("examples/*.graph.json.gz")):
            graphs = {device: priced(graph, device, folder) for device in devices}
            for budget in given.budgets.split(","):
                cells = []
                for device, path in graphs.items():
                    for more in ([], ["--device", device]):
                        cells.append(text(median([plan(path, budget, "default", given.work, seed, *more)
                                                  for seed in range(given.seeds)])))
                table.add(graph.name.removesuffix(".graph.json.gz"), f"{budget} %", *cells)
                print(*table.rows[-1], sep="  ", flush=True)
    table.notes.append(f"Medians of {given.seeds} seeds, {given.work:,} units of counted work, one thread; a tenth of "
                       "each link left to others.")
    if given.output:
        given.output.write_text(table.markdown())


if __name__ == "__main__":
    main()
