"""The tables and figures of what kumar.py measured."""
import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "lowtide"  # the same picture, the same file
import matplotlib.pyplot as plt  # noqa: E402

BENCH = Path(__file__).resolve().parents[1]
sys.path.append(str(BENCH))
from table import Table  # noqa: E402

COLOURS = {"NoRemat": "#7a8793", "GreedyRemat": "#2e8b57", "TWRemat": "#c2571a", "Lowtide twremat": "#8fb4dd",
           "Lowtide auto": "#1f5fa8"}
GIB = 2**30
EXPLAINED = """\
The graphs are made at TensorFlow's grain (`bench/papers/tensorflow_grain.py`), every node takes unit time, and the
order is free, as in the paper. Peak: the most bytes live at once, variables and the optimizer's slots included;
*static*: one arena packed by best fit for the same plan (an upper limit of the paper's optimal allocation, of which
the peak is the lower). Length: computations over nodes. NoRemat, GreedyRemat and TWRemat are the paper's, run here:
`given`, `greedy` at the smallest limit that it keeps, and `twremat` without what is ours (filter, weighted
separators). *Lowtide* rows stand at the peak of TWRemat(1) or, for figure 4, of TWRemat(k).

The widths of the paper are by minimum fill, ours by minimum degree. Its lengths of NoRemat above 1 are not explained
there. Its figures have no numbers in the text: it speaks of a reduction of about 2 for GreedyRemat on ResNet, up to
10 for TWRemat, and lengths of 3 to 4."""


def published():
    with (BENCH / "published/kumar.csv").open() as file:
        return {(row["network"], row["fact"], row["method"]): row["value"] for row in csv.DictReader(file)}


def gib(text):
    return f"{int(text) / GIB:.2f}" if text != "" else ""


def size_table(rows):
    theirs = published()
    table = Table("Table 1: the graphs", [(name, 0) for name in (
        "network", "nodes", "published", "edges", "published", "width", "published")])
    for row in _first(rows):
        cells = []
        for fact in ("ops", "links", "width"):
            cells += [f"{row[fact]:,}", theirs.get((row["network"], fact, ""), "")]
        table.add(row["network"], *cells)
    return table


def peak_table(rows):
    theirs = published()
    table = Table("Table 2 and figures 2, 3: memory and length", [(name, 0) for name in (
        "network", "method", "peak, GiB", "static, GiB", "reduction", "length", "published: GiB", "reduction", "length",
        "seconds")])
    for network in dict.fromkeys(row["network"] for row in rows):
        mine = [row for row in rows if row["network"] == network and row["beside"] in ("", "TWRemat 1")
                and (row["method"] != "TWRemat" or row["setting"] == "1")]
        base = mine[0]["peak"]
        for row in mine:
            paper = theirs.get((network, "GiB", row["method"]), "")
            whole = theirs.get((network, "GiB", "NoRemat"), "")
            table.add(network if row is mine[0] else "", _name(row), gib(row["peak"]), gib(row["static"]),
                      f"{base / row['peak']:.2f}" if row["peak"] != "" else row["status"], _length(row), paper,
                      f"{float(whole) / float(paper):.2f}" if paper else "",
                      theirs.get((network, "relative", row["method"]), ""), row["seconds"])
    return table


def trade_table(rows):
    table = Table("Figure 4: memory and length of TWRemat(k), and Lowtide at the same memory", [(name, 0) for name in (
        "network", "k", "peak, GiB", "length", "Lowtide twremat: length", "Lowtide auto: length", "no plan is shorter than")])
    for row in rows:
        if row["method"] != "TWRemat" or not any(r["setting"] not in ("1", row["setting"]) for r in _tw(rows, row)):
            continue
        beside = {r["method"]: r for r in rows if r["network"] == row["network"]
                  and r["beside"] == f"TWRemat {row['setting']}"}
        ours = [beside.get(f"Lowtide {solver}", {}) for solver in ("twremat", "auto")]
        table.add(row["network"], row["setting"], gib(row["peak"]), _length(row), *(_length(r) for r in ours),
                  ours[1].get("bound", ""))
    return table


def _tw(rows, row):
    return [r for r in rows if r["network"] == row["network"] and r["method"] == "TWRemat"]


def _first(rows):
    return list({row["network"]: row for row in reversed(rows)}.values())[::-1]


def _name(row):
    return f"{row['method']}({row['setting']})" if row["method"] == "TWRemat" else row["method"]


def _length(row):
    return f"{float(row['relative']):.3f}" if row.get("relative") else row.get("status", "")


def draw(rows, out):
    families = [family for family in ("ResNet", "FFN") if sum(r["family"] == family for r in rows)]
    trade = [row for row in rows if row["method"] == "TWRemat" and row["setting"] != "1"]
    panels = [(family, what) for what in ("peak", "relative") for family in families]
    figure, axes = plt.subplots(1, len(panels) + bool(trade), figsize=(4.2 * (len(panels) + bool(trade)), 3.6),
                                squeeze=False)
    for axis, (family, what) in zip(axes[0], panels, strict=False):
        for method, colour in COLOURS.items():
            points = sorted((r["depth"], float(r[what])) for r in rows if r["family"] == family
                            and r["method"] == method and r[what] != "" and r["beside"] in ("", "TWRemat 1")
                            and (method != "TWRemat" or r["setting"] == "1"))
            if points and (what == "relative" or not method.startswith("Lowtide")):
                scale = GIB if what == "peak" else 1
                axis.plot([d for d, _ in points], [v / scale for _, v in points], "o-", color=colour, label=method,
                          markersize=3)
        axis.set(title=f"{family}: {'peak, GiB' if what == 'peak' else 'length'}", xlabel="layers")
        axis.set_ylim(bottom=0)
    if trade:
        axis = axes[0][-1]
        network = trade[0]["network"]
        for method in ("TWRemat", "Lowtide twremat", "Lowtide auto"):
            points = sorted((int(r["peak"]) / GIB, float(r["relative"])) for r in rows
                            if r["network"] == network and r["method"] == method and r["peak"] != "")
            axis.plot([p for p, _ in points], [v for _, v in points], "o-", color=COLOURS[method], label=method,
                      markersize=3)
        axis.set(title=f"{network}: length at a peak", xlabel="GiB")
        axis.set_ylim(bottom=0)
    handles = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncol=5, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    for ending in (".png", ".svg"):
        figure.savefig(out.with_suffix(ending), dpi=110, metadata={"Date": None} if ending == ".svg" else None)
    plt.close(figure)


def write(rows, out, command):
    """OUT.md, OUT.png and OUT.svg, and the tables on the terminal."""
    tables = [size_table(rows), peak_table(rows), trade_table(rows)]
    tables = [table for table in tables if table.rows]
    draw(rows, out)
    text = "\n".join(table.markdown() for table in tables)
    out.with_suffix(".md").write_text(f"# Kumar et al., NeurIPS 2019\n\n{command} All rows: `{out.name}.csv`.\n\n"
                                      f"{EXPLAINED}\n\n![Figures 2, 3 and 4]({out.name}.png)\n\n{text}")
    print()
    for table in tables:
        print(table.text(120))
    print(f"{out}.md, .csv, .png, .svg")
