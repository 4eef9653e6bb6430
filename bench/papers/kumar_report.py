"""Tables and figures of what kumar.py measured, beside what Kumar et al. published."""
import csv
import math
import os
import platform
from dataclasses import dataclass

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "lowtide"  # the same figure, the same file
import matplotlib.pyplot as plt

GIB = 2**30
# (nodes, edges, width) of Table 1; (memory in GiB, relative length) of Table 2.
TABLE_1 = {"ResNet-200": (17705, 27312, 11), "FFN of 100 layers": (3217, 4447, 6), "Transformer base": (15842, 21771, 18)}
TABLE_2 = {"Transformer base": {"NoRemat": (3.97, 1.21), "GreedyRemat": (2.92, 1.21), "TWRemat": (1.14, 10.61)},
           "Transformer big": {"NoRemat": (13.25, 1.27), "GreedyRemat": (10.12, 1.27), "TWRemat": (2.89, 10.64)}}
REDUCTION = {"Transformer base": 3.48, "Transformer big": 4.59}  # as the text has them
BY_DEPTH = {"NoRemat": "#7a8793", "GreedyRemat": "#c2571a", "TWRemat": "#1f5fa8", "twremat, same memory": "#2a9d5c"}
PAPERS = list(BY_DEPTH)[:3]


@dataclass
class Results:
    first: dict  # name: nodes, edges, width
    second: dict  # name: method: Measured, as in the next
    families: dict  # name: depth: method: Measured
    tenths: dict  # name: Measured, of the deepest
    trade_off: dict  # k: TWRemat(k), ours in its memory
    trade_off_of: str


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def static(measured):
    """GiB, and in brackets by how much the least allocation may be smaller."""
    if not measured:
        return "-"
    text = f"{measured.static / GIB:.2f}"
    most = 100 * (1 - measured.live / measured.static)
    return text if most == 0 else f"{text} ({'<0.01' if most < 0.01 else f'{most:.2f}'} %)"


def length(measured):
    return f"{measured.length:.2f}" if measured else "-"


def less(found, measured):
    return f"{found['NoRemat'].static / measured.static:.2f}" if measured else "-"


def table_1(first):
    rows = []
    for name, ours in first.items():
        paper = TABLE_1.get(name)
        beside = [f"{one:,} ({100 * (here / one - 1):+.0f} %)" for here, one in zip(ours, paper)] if paper else [""] * 3
        rows.append([name, *(f"{one:,}" for one in ours), *beside])
    return table(["", "n", "m", "width", "n, paper", "m, paper", "width, paper"], rows)


def table_2(second):
    rows = []
    for name, found in second.items():
        for method, measured in found.items():
            paper, whole = TABLE_2[name].get(method), TABLE_2[name]["NoRemat"]
            beside = [""] * 3
            if paper:
                beside = [paper[0], f"{paper[1]} ({paper[1] / whole[1]:.2f})", f"{whole[0] / paper[0]:.2f}"]
            rows.append([f"{name}: {method}", f"{measured.live / GIB:.2f}" if measured else "-", static(measured),
                         length(measured), less(found, measured), *beside])
    return table(["", "live, GiB", "static, GiB", "length", "less by", "GiB, paper", "length, paper", "less by, paper"],
                 rows)


def table_by_depth(families):
    rows = [[f"{name} {depth}", *(cell for method in BY_DEPTH for cell in (static(found[method]), length(found[method])))]
            for name, results in families.items() for depth, found in results.items()]
    return table(["", *(f"{method}: {what}" for method in BY_DEPTH for what in ("GiB", "length"))], rows)


def table_trade_off(trade_off):
    return table(["k", "TWRemat(k): GiB", "length", "`twremat` within it: GiB", "length"],
                 [[f"{k:,}", static(raw), length(raw), static(ours), length(ours)] for k, (raw, ours) in trade_off.items()])


def on_table_2(second):
    """Whether the paper's reduction came out, at a shorter length than the paper's."""
    lines = []
    for name, found in second.items():
        wanted, whole, there = REDUCTION[name], TABLE_2[name]["NoRemat"][1], TABLE_2[name]["TWRemat"][1]
        ours = [(f"`{solver}`", found[f"{solver}, the paper's reduction"]) for solver in ("twremat", "auto")]
        for method, measured in (("TWRemat as run here", found["TWRemat"]), *ours):
            if not measured:
                lines.append(f"- {name}, {method}: no plan with {wanted} times less.")
                continue
            by = found["NoRemat"].static / measured.static
            lines.append(f"- {name}, {method}: {by:.2f} times less at a length of {measured.length:.2f}; the paper {wanted} "
                         f"at {there} ({there / whole:.2f}): {'reached' if by >= wanted else 'not reached'}, "
                         f"{'shorter' if measured.length < there / whole else 'not shorter'}.")
    return "\n".join(lines)


def on_depth(families, tenths, seconds):
    """How memory grows with depth, and what the deepest come down to."""
    lines = []
    for name, results in families.items():
        (shallow, first), *_, (deep, last) = results.items()
        grows = ", ".join(f"{method}'s {last[method].static / first[method].static:.1f} times" for method in PAPERS
                          if last[method])
        power = math.log(last["TWRemat"].static / first["TWRemat"].static) / math.log(deep / shallow)
        lines.append(f"- {name}, {shallow} to {deep} layers, {deep / shallow:.1f} times as many: memory grows, {grows}; "
                     f"TWRemat's with the power {power:.2f} of the layers, {'sublinear' if power < 1 else 'not sublinear'}.")
        raw, ours, tenth = last["TWRemat"], last["twremat, same memory"], tenths[name]
        lines.append(f"- {name}, {deep} layers: GreedyRemat {less(last, last['GreedyRemat'])} times less at a length of "
                     f"{length(last['GreedyRemat'])}, TWRemat {less(last, raw)} at {length(raw)}, `twremat` "
                     f"{less(last, ours)} at {length(ours)}. A tenth: "
                     + (f"`auto` has {less(last, tenth)} times less, {last['NoRemat'].live / tenth.live:.2f} by live bytes, "
                        f"at {length(tenth)}." if tenth else
                        f"no plan in {seconds['auto']} s."))
    return "\n".join(lines)


def on_trade_off(trade_off):
    pairs = [(raw, ours) for raw, ours in trade_off.values() if ours]
    shorter = sum(ours.length < raw.length for raw, ours in pairs)
    longest = max((ours.length for _, ours in pairs), default=math.nan)
    return (f"In the memory of TWRemat(k), `twremat` has a plan for {len(pairs)} of {len(trade_off)} values of k, shorter "
            f"for {shorter}, none longer than {longest:.2f}.")


def draw_by_depth(path, families, methods, value, label):
    figure, axes = plt.subplots(1, len(families), figsize=(4.4 * len(families), 3.5))
    for axis, (name, results) in zip(axes, families.items()):
        for method in methods:
            points = [(depth, value(found[method])) for depth, found in results.items() if found[method]]
            style = {"linestyle": "--", "marker": "s"} if method.startswith("twremat") else {"marker": "o"}
            axis.plot(*zip(*points), color=BY_DEPTH[method], markersize=3, linewidth=1.2, label=method, **style)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("layers", fontsize=8)
        axis.set_ylabel(label, fontsize=8)
        axis.tick_params(labelsize=8)
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25, linewidth=0.5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncol=len(BY_DEPTH), frameon=False, fontsize=8)
    save(figure, path, bottom=0.08)


def draw_trade_off(path, name, trade_off):
    figure, axis = plt.subplots(figsize=(5.2, 3.8))
    axis.plot([raw.static / GIB for raw, _ in trade_off.values()], [raw.length for raw, _ in trade_off.values()], "o-",
              color=BY_DEPTH["TWRemat"], markersize=3, linewidth=1.2, label="TWRemat(k)")
    places = {}
    for k, (raw, _) in trade_off.items():  # one label where several are the same
        places.setdefault((f"{raw.static / GIB:.2f}", f"{raw.length:.1f}"), []).append((k, raw))
    for same in places.values():
        axis.annotate("k = " + ", ".join(f"{k:,}" for k, _ in same), (same[0][1].static / GIB, same[0][1].length),
                      fontsize=6, xytext=(5, 2), textcoords="offset points")
    ours = sorted((ours for _, ours in trade_off.values() if ours), key=lambda each: each.static)
    axis.plot([each.static / GIB for each in ours], [each.length for each in ours], "s--",
              color=BY_DEPTH["twremat, same memory"], markersize=3, linewidth=1.2, label="twremat within that memory")
    axis.set_xlabel("memory, GiB of a static allocation", fontsize=8)
    axis.set_ylabel("relative length", fontsize=8)
    axis.set_xlim(0, 1.2 * max(raw.static for raw, _ in trade_off.values()) / GIB)
    axis.set_ylim(0, 1.1 * max(raw.length for raw, _ in trade_off.values()))
    axis.set_title(name, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.legend(fontsize=8, frameon=False)
    save(figure, path)


def save(figure, path, bottom=0.0):
    figure.tight_layout(rect=(0, bottom, 1, 1))
    figure.savefig(f"{path}.png", dpi=130)
    figure.savefig(f"{path}.svg", metadata={"Date": None})
    plt.close(figure)


def write(stem, rows, command, seconds, limits, results):
    """STEM.md, STEM.csv and STEM-figure*."""
    draw_by_depth(f"{stem}-figure2", results.families, PAPERS, lambda m: m.static / GIB,
                  "memory, GiB of a static allocation")
    draw_by_depth(f"{stem}-figure3", results.families, list(BY_DEPTH), lambda m: m.length, "relative length")
    draw_trade_off(f"{stem}-figure4", results.trade_off_of, results.trade_off)
    with open(f"{stem}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    proven = sum(row["static_above"] == 0 for row in rows)
    load = os.getloadavg()[2]  # of a quarter of an hour
    text = f"""# Kumar et al. (NeurIPS 2019), {stem.name.removesuffix('-kumar')}

`{command}` on one of {os.cpu_count()} cores, {platform.machine()}, in {seconds / 60:.0f} minutes; the load was {load:.1f} on average.

Graphs are TensorFlow 1's, node for node (`bench/papers/tf1`); every node takes one tick, and the order is free. *Static*
is the end of an arena that holds every tensor from when it is made until it is freed (`static_allocation.py`), the
paper's measure. No arena is smaller than the peak of live bytes: of {len(rows)} plans {proven} have one that ends there, which is
optimal; of the others brackets say how much smaller the least may be. Lengths are relative to computing every node
once; the paper's are 1.21 and 1.27 for NoRemat already, so over NoRemat in brackets. *NoRemat* is `given`; *GreedyRemat*
`greedy` with `choice=bytes repeats=1 block=1`, order given, at the lowest limit found that it keeps; *TWRemat* the plain
schedule of Algorithm 1 (`twremat` with `filter=off limit=1 separators=unit decomposition=min_fill`). *twremat, same
memory* is what `twremat` makes of TWRemat's memory in {limits['twremat']} s; *the paper's reduction* what it, and `auto` in {limits['auto']} s, make
of the memory that this leaves of NoRemat's, or of TWRemat's where that is less.

## Table 1: graphs

{table_1(results.first)}

## Table 2: Transformer

{table_2(results.second)}

{on_table_2(results.second)}

## Figures 2 and 3: by depth

The paper's figures have no numbers. Its text says that NoRemat and GreedyRemat grow linearly, GreedyRemat at about half
of NoRemat's memory on ResNets and little below it on FFNs; that TWRemat's growth is distinctly sublinear, with up to
ten times less, at 3 to 4 times the length.

{on_depth(results.families, results.tenths, limits)}

![Memory against depth]({stem.name}-figure2.png)
![Length against depth]({stem.name}-figure3.png)

{table_by_depth(results.families)}

## Figure 4: {results.trade_off_of}, memory against length

k is the limit of the recursion. {on_trade_off(results.trade_off)}

![Memory against length]({stem.name}-figure4.png)

{table_trade_off(results.trade_off)}
"""
    with open(f"{stem}.md", "w") as file:
        file.write(text)
