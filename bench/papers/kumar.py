"""Tables 1 and 2 and Figures 2 to 4 of Kumar et al., "Efficient Rematerialization for Deep Networks" (NeurIPS 2019),
with our runs beside the published values.

    python bench/papers/kumar.py [--out FOLDER] [--quick]

writes FOLDER/DATE-kumar.md, .csv and -figure*.png and .svg (bench/results; --quick: shallow networks, build/bench).
Needs build/release/lowtide, and matplotlib.
"""
import argparse
import bisect
import csv
import datetime
import json
import os
import platform
import re
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import tf_graphs  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LOWTIDE = ROOT / "build/release/lowtide"
GIB = 2**30
ALL = "1024TiB"
RAW = ["--option", "filter=off", "--option", "separators=unit", "--option", "decomposition=min_fill"]
GREEDY = ["--option", "choice=bytes", "--option", "repeats=1", "--option", "block=1"]
# (nodes, edges, width) of Table 1; (memory in GiB, relative length) of Table 2.
TABLE_1 = {"ResNet-200": (17705, 27312, 11), "FFN of 100 layers": (3217, 4447, 6), "Transformer base": (15842, 21771, 18)}
TABLE_2 = {"Transformer base": {"NoRemat": (3.97, 1.21), "GreedyRemat": (2.92, 1.21), "TWRemat": (1.14, 10.61)},
           "Transformer big": {"NoRemat": (13.25, 1.27), "GreedyRemat": (10.12, 1.27), "TWRemat": (2.89, 10.64)}}
REDUCTION = {"Transformer base": 3.48, "Transformer big": 4.59}
COLOURS = {"NoRemat": "#7a8793", "GreedyRemat": "#c2571a", "TWRemat": "#1f5fa8", "twremat, same memory": "#2a9d5c",
           "search, same memory": "#8a4fa8"}


class Measured:
    """A plan's memory by live bytes and by a static allocation, and its length over that of NoRemat."""

    def __init__(self, graph, plan, answer, note=""):
        self.live, self.length = answer["peak"], answer["duration"] / answer["base_duration"]
        self.seconds, self.note = answer["time_s"], note
        self.static = static_bytes(graph, plan) if plan else None


def static_bytes(graph, plan):
    """The end of the arena when buffers are placed in the order of time, each into the smallest gap that holds it.
    An upper limit of the optimal static allocation, whose lower limit is the peak of live bytes."""
    size = [tensor["bytes"] for tensor in graph["tensors"]]
    gaps, places, end = [], {}, 0  # gaps: (bytes, offset), the smallest first

    def release(offset, bytes_):
        nonlocal end
        # Joined with its neighbours.
        for i in range(len(gaps) - 1, -1, -1):
            other, at = gaps[i]
            if at + other == offset:
                offset, bytes_ = at, bytes_ + other
                del gaps[i]
            elif offset + bytes_ == at:
                bytes_ += other
                del gaps[i]
        if offset + bytes_ == end:
            end = offset
        else:
            bisect.insort(gaps, (bytes_, offset))

    highest = 0
    for step, index in plan["steps"]:
        if step == "free":
            release(*places.pop(index))
            continue
        for tensor in graph["ops"][index]["outputs"]:
            wanted = size[tensor]
            i = bisect.bisect_left(gaps, (wanted, -1))
            if i < len(gaps):
                found, offset = gaps.pop(i)
                if found > wanted:
                    bisect.insort(gaps, (found - wanted, offset + wanted))
            else:
                offset, end = end, end + wanted
            places[tensor] = (offset, wanted)
            highest = max(highest, end)
    return highest


class Bench:
    def __init__(self, folder):
        self.folder, self.graphs, self.rows = Path(folder), {}, []

    def graph(self, net):
        path = self.folder / (re.sub(r"\W+", "-", net.name) + ".graph.json")
        if net.name not in self.graphs:
            net.write(path)
            self.graphs[net.name] = json.loads(path.read_text())
        return path

    def plan(self, net, solver, budget=ALL, order="free", options=(), seconds=30):
        """What `lowtide plan` answers, and the plan; nothing if there is none."""
        file = self.folder / "plan.json"
        done = subprocess.run([LOWTIDE, "plan", self.graph(net), "--solver", solver, "--budget", str(budget),
                               "--order", order, "--time", str(seconds), "--threads", "1", "--json", "-o", file, *options],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr)
        answer = json.loads(done.stdout)
        return answer, json.loads(file.read_text()) if answer["status"] in ("optimal", "feasible") else None

    def measure(self, net, method, *args, **kwargs):
        answer, plan = self.plan(net, *args, **kwargs)
        if not plan:
            return None
        measured = Measured(self.graphs[net.name], plan, answer, answer.get("reason") or "")
        self.rows.append({"graph": net.name, "nodes": len(net.size), "edges": net.edges(), "method": method,
                          "live_bytes": measured.live, "static_bytes": measured.static,
                          "relative_length": round(measured.length, 4), "seconds": round(measured.seconds, 3)})
        print(f"{net.name:20} {method:24} {measured.live / GIB:8.3f} GiB  {measured.length:7.3f}  {measured.seconds:.2f} s",
              flush=True)
        return measured

    def greedy(self, net):
        """With the lowest limit that it keeps of some: it does not come as low when it is asked for nothing."""
        best, (answer, _) = None, self.plan(net, "greedy", 1, "given", GREEDY)
        low, high = 0, answer["smallest_peak"]
        for _ in range(8):
            answer, plan = self.plan(net, "greedy", high, "given", GREEDY)
            if plan:
                best, low_next = high, (low + high) // 2
                high = low_next
            else:
                low, high = high, (high + (best or 2 * high)) // 2
        return self.measure(net, "GreedyRemat", "greedy", best, "given", GREEDY) if best else None

    def methods(self, net, search=False):
        found = {"NoRemat": self.measure(net, "NoRemat", "given", order="given"), "GreedyRemat": self.greedy(net),
                 "TWRemat": self.measure(net, "TWRemat", "twremat", options=[*RAW, "--option", "limit=1"])}
        memory = found["TWRemat"].live
        if net.name in REDUCTION:
            memory = min(memory, int(found["NoRemat"].live / REDUCTION[net.name]))
        found["twremat, same memory"] = self.measure(net, "twremat, same memory", "twremat", memory)
        if search:
            found["search, same memory"] = self.measure(net, "search, same memory", "auto", memory)
        return found

    def width(self, net):
        done = subprocess.run([LOWTIDE, "plan", self.graph(net), "--solver", "twremat", "--budget", ALL, *RAW, "--option",
                               "limit=1000000"], capture_output=True, text=True, check=True)
        return int(re.search(r"width (\d+)", done.stdout)[1])


def draw_by_depth(path, families, value, label, log):
    figure, axes = plt.subplots(1, len(families), figsize=(4.6 * len(families), 3.4))
    for axis, (name, results) in zip(axes, families.items()):
        for method, colour in COLOURS.items():
            points = [(depth, value(found[method])) for depth, found in results.items() if found.get(method)]
            if points:
                axis.plot(*zip(*points), "o-", color=colour, markersize=3, linewidth=1.2, label=method)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("layers", fontsize=8)
        axis.set_ylabel(label, fontsize=8)
        axis.set_yscale("log" if log else "linear")
        axis.tick_params(labelsize=8)
        axis.set_ylim(bottom=None if log else 0)
        axis.legend(fontsize=7)
    save(figure, path)


def save(figure, path):
    figure.tight_layout()
    for kind in ("png", "svg"):
        figure.savefig(path.with_name(path.name + "." + kind), dpi=130)
    plt.close(figure)


def draw_trade_off(path, name, raw, ours):
    figure, axis = plt.subplots(figsize=(5, 3.6))
    axis.plot([m.live / GIB for _, m in raw], [m.length for _, m in raw], "o-", color=COLOURS["TWRemat"], markersize=3,
              label="TWRemat(k)")
    for k, measured in raw:
        axis.annotate(str(k), (measured.live / GIB, measured.length), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axis.plot([m.live / GIB for m in ours], [m.length for m in ours], "s-", color=COLOURS["twremat, same memory"],
              markersize=3, label="twremat within that memory")
    axis.set_xlabel("memory, GiB of live bytes", fontsize=8)
    axis.set_ylabel("relative length", fontsize=8)
    axis.set_yscale("log")
    axis.set_title(name, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.legend(fontsize=7)
    save(figure, path)


def cells(measured):
    if not measured:
        return "- | - | -"
    return f"{measured.live / GIB:.2f} | {measured.static / GIB:.2f} | {measured.length:.2f}"


def table_1(bench, nets):
    lines = ["|  | n | m | width | n, paper | m, paper | width, paper |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for net in nets:
        paper = TABLE_1.get(net.name, ("", "", ""))
        lines.append(f"| {net.name} | {len(net.size):,} | {net.edges():,} | {bench.width(net)} | "
                     + " | ".join(f"{value:,}" if value else "" for value in paper) + " |")
    return lines


def table_2(results):
    lines = ["|  | live, GiB | static, GiB | length | live, less by | GiB, paper | length, paper | less by, paper |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, found in results.items():
        whole = found["NoRemat"].live
        for method, measured in found.items():
            paper = TABLE_2.get(name, {}).get(method)
            by = f"{whole / measured.live:.2f}" if measured else "-"
            there = "|  |  " if not paper else (f"| {paper[0]} | {paper[1]} ({paper[1] / TABLE_2[name]['NoRemat'][1]:.2f}) "
                                                 f"| {TABLE_2[name]['NoRemat'][0] / paper[0]:.2f}")
            lines.append(f"| {name}: {method} | {cells(measured)} | {by} {there if paper else '|  |  | '} |")
    return lines


def by_depth(families):
    lines = ["|  | " + " | ".join(f"{m}: live, GiB | static, GiB | length" for m in COLOURS if m != "search, same memory") + " |",
             "| --- |" + " ---: | ---: | ---: |" * 4]
    for name, results in families.items():
        for depth, found in results.items():
            lines.append(f"| {name} {depth} | " + " | ".join(cells(found.get(m)) for m in COLOURS
                                                               if m != "search, same memory") + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    flags = parser.parse_args()
    out = flags.out or ROOT / ("build/bench" if flags.quick else "bench/results")
    out.mkdir(parents=True, exist_ok=True)
    date = datetime.date.today().isoformat()
    depths = {"ResNet": [18, 34, 50] if flags.quick else list(tf_graphs.RESNETS),
              "FFN": [5, 10, 20] if flags.quick else [10, 20, 40, 60, 80, 100, 150]}
    makers = {"ResNet": tf_graphs.resnet, "FFN": tf_graphs.ffn}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        families = {name: {depth: bench.methods(makers[name](depth)) for depth in depths[name]} for name in depths}
        deepest = tf_graphs.resnet(depths["ResNet"][-1])
        transformers = [tf_graphs.transformer(size) for size in ("base", "big")]
        second = {net.name: bench.methods(net, search=True) for net in transformers}
        raw, ours, k = [], [], 1
        while k < 2 * len(deepest.size):
            measured = bench.measure(deepest, f"TWRemat({k})", "twremat", options=[*RAW, "--option", f"limit={k}"])
            raw.append((k, measured))
            ours.append(bench.measure(deepest, f"twremat within TWRemat({k})'s memory", "twremat", measured.live))
            k *= 4
        first = table_1(bench, [deepest, tf_graphs.ffn(100), *transformers])
    stem = out / f"{date}-kumar"
    draw_by_depth(stem.with_name(stem.name + "-figure2"), families, lambda m: m.live / GIB, "peak, GiB of live bytes", False)
    draw_by_depth(stem.with_name(stem.name + "-figure3"), families, lambda m: m.length, "relative length", True)
    draw_trade_off(stem.with_name(stem.name + "-figure4"), deepest.name, raw, [m for m in ours if m])
    with stem.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, bench.rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(bench.rows)
    whole, least = (families["ResNet"][depths["ResNet"][-1]][m].live for m in ("NoRemat", "TWRemat"))
    text = f"""# Kumar et al. (NeurIPS 2019), {date}

`python bench/papers/kumar.py{" --quick" if flags.quick else ""}` on one of {os.cpu_count()} cores, {platform.machine()}, busy with other work: times are not to be compared.

Graphs are made at TensorFlow's grain (`bench/papers/tf_graphs.py`), all operations take one tick. *live* is the peak of
live bytes; *static* the end of the arena when buffers are placed one after the other, each into the smallest gap: the
paper's optimal static allocation lies between the two. Lengths are relative to computing every node once; the paper's
are 1.21 and 1.27 for NoRemat already, so over NoRemat in brackets. *NoRemat* is `given`; *GreedyRemat* `greedy` with
`choice=bytes repeats=1 block=1` at the lowest limit found that it keeps; *TWRemat* the plain schedule of Algorithm 1
(`twremat` with `filter=off limit=1 separators=unit decomposition=min_fill`); *same memory* what `twremat`, and `auto`
in 30 s, make of that memory (of the paper's reduction, where that is less).

## Table 1: graphs

{chr(10).join(first)}

## Table 2: Transformer

{chr(10).join(table_2(second))}

## Figures 2 and 3: by depth

The paper's figures have no numbers; its text says that NoRemat and GreedyRemat grow linearly, GreedyRemat at about half
of NoRemat's memory on ResNets and little below it on FFNs; that TWRemat's growth is distinctly sublinear, up to a tenth,
at 3 to 4 times the length. Here {deepest.name} goes down to 1/{whole / least:.1f}.

![Peak against depth]({stem.name}-figure2.png)
![Length against depth]({stem.name}-figure3.png)

{chr(10).join(by_depth(families))}

## Figure 4: {deepest.name}, memory against length

Numbers are k, the limit of the recursion.

![Memory against length]({stem.name}-figure4.png)
"""
    stem.with_suffix(".md").write_text(text)
    print(f"{stem}.md")


if __name__ == "__main__":
    main()
