"""The table and the picture of what run.py measured."""
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.append(str(Path(__file__).resolve().parents[1]))
from table import Table

# Bytes: held (inputs, parameters, buffers), and what is above those. Operations, bound, time: overheads in per cent.
COLUMNS = ["model", "method", "setting", "beside", "held", "budget", "reserve", "peak", "predicted", "operations",
           "bound", "time", "ms", "equal", "differs", "off", "wrong", "status", "failure"]
EXPLAINED = """\
Peaks are bytes above inputs, parameters and buffers, gradients included, as PyTorch's memory events add up (on a GPU:
as `max_memory_allocated` says). Overhead is over the step without a plan: in operations of matrix products,
convolutions and attention, counted while they run, and in time, the median over rounds in which all rows took turns.
Lowtide's budget is inputs, parameters and the peak of the row, its planning time a second; *given* keeps the order of
the operations and counts operations, *free* may change it, *timed* is *free* with measured times for costs, as it
comes. Where a step is measured above the peak all the same, `reserve` sets
that much aside and it is planned again (three times at most; *over*: what is still above). A peak above that without
a plan needs none, and shows the plan for that one.

*equal*: loss, gradients, buffers and the generator's state are `torch.equal` to those without a plan; if not, how far
the gradients are off (norm of the difference over norm). What decomposes dropout draws other numbers, which is no
fault; *wrong* are gradients that differ from those of the same method at ratio 1, where nothing runs again, for the
same loss: dropout was drawn afresh.

`activation_memory_budget` is PyTorch's own partitioner behind the backend `{upstream}`. Without Inductor its
decomposed kernels run one by one, as everything in this table does: compare its peaks and operations rather than its
time."""
COLOURS = {"no plan": "#7a8793", "checkpoint": "#2e8b57", "activation_memory_budget": "#c2571a", "given": "#8fb4dd",
           "free": "#1f5fa8", "timed": "#6a3d9a"}


def kilobytes(text):
    return f"{int(text) / 1000:,.0f}"


def peaks_of(rows):
    """peak -> the first peer with it, for one model; more than without a plan needs none, and is left out."""
    peers = [row for row in rows if row["method"] != "lowtide"]
    peaks = {}
    for row in peers:
        if int(row["peak"]) <= int(peers[0]["peak"]):
            peaks.setdefault(row["peak"], _name(row))
    return peaks


def beside_of(row, peaks):
    """Beside which peer Lowtide's rows at this row's peak stand."""
    return peaks.get(row["peak"], "no plan")


def _name(row):
    return f"{row['method']} {row['setting']}".strip()


def _label(row):
    return _name(row).replace("activation_memory_budget", "budget")


def _equal(row):
    if row["equal"] == "yes":
        return "yes"
    if row["wrong"] and float(row["wrong"]) > 1e-4:
        return f"no, wrong by {100 * float(row['wrong']):.0f} %"
    return f"no ({row['off']})" if row["off"] else f"no ({row['differs']})"


def _overheads(row):
    """(operations, time) of one of Lowtide's rows, as cells."""
    if row is None:
        return "", ""
    if row["status"] == "no plan":
        return "no plan", ""
    over = int(row["peak"]) - int(row["budget"]) if row["beside"] != "smallest" else 0
    excess = f", {over / 1000:,.0f} over" if over > 0 else ""
    return f"{float(row['operations']):.1f}{excess}", f"{float(row['time']):.0f}"


def table(rows, title):
    """Of one model: a line a peer, with Lowtide at the same peak beside it."""
    names = ["given", "free", "timed"]
    made = Table(title, [("", 0), ("peak, kB", 0), ("operations, %", 0), ("time, %", 0), ("equal", 0),
                         *((f"{name}: {what}", 0) for name in names for what in ("operations", "time")), ("equal", 0)])
    ours = {(row["setting"], row["beside"]): row for row in rows if row["method"] == "lowtide"}
    peaks = peaks_of(rows)
    for row in rows:
        if row["method"] == "lowtide":
            continue
        own = [ours.get((name, beside_of(row, peaks))) for name in names]
        cells = [cell for one in own for cell in _overheads(one)]
        ran = [one for one in own if one and one["equal"]]
        equal = "" if not ran else next((_equal(one) for one in ran if one["equal"] != "yes"), "yes")
        made.add(_label(row), kilobytes(row["peak"]), f"{float(row['operations']):.1f}", f"{float(row['time']):.0f}",
                 _equal(row), *cells, equal)
    least = ours.get(("free", "smallest"))
    if least and least["peak"]:
        made.add("Lowtide's smallest", kilobytes(least["peak"]), "", "", "", "", "", *_overheads(least), "", "",
                 _equal(least))
    return made


def losses(rows):
    """Where a row of ours takes more than a peer with its peak, for one model: (kind, by how much, words).

    Kinds: operations, time (beyond 3 points), bytes, no plan, not equal.
    """
    found = []
    peaks = peaks_of(rows)
    for peer in rows:
        ours = [row for row in rows if row["method"] == "lowtide" and row["beside"] == beside_of(peer, peaks)]
        for row in ours if peer["method"] != "lowtide" else []:
            where = f"{row['setting']} at the peak of {_label(peer)}"
            if row["status"] == "no plan":
                found.append(("no plan", 0, where))
                continue
            for kind, least in (("operations", 0.05), ("time", 3.0)):
                mine, theirs = float(row[kind]), float(peer[kind])
                if mine > theirs + least and (kind, row["setting"]) != ("operations", "timed"):  # it minds its time
                    found.append((kind, mine - theirs, f"{where}, {mine:+.1f} % against {theirs:+.1f} %"))
            over = int(row["peak"]) - int(row["budget"])
            if over > 0:
                found.append(("bytes", over, f"{where}, {100 * over / int(row['budget']):.1f} % over"))
            if row["equal"] != "yes":
                found.append(("not equal", 0, f"{where}, {row['differs']}"))
    return found


def _loss_lines(rows):
    """losses(rows), a line a kind: how many rows, and the worst."""
    found = losses(rows)
    kinds = dict.fromkeys(kind for kind, _, _ in found)
    for kind in kinds:
        own = [(excess, words) for other, excess, words in found if other == kind]
        worst = max(own, key=lambda one: one[0])[1]
        yield f"- {rows[0]['model']}: {kind}, {len(own)} row{'s' * (len(own) > 1)}; worst: {worst}"


def _panel(axes, rows, title, what):
    series = {}
    for row in rows:
        if row["peak"] and row[what]:
            name = row["setting"] if row["method"] == "lowtide" else row["method"]
            series.setdefault(name, []).append((int(row["peak"]) / 1e6, float(row[what])))
    for name, points in series.items():
        ours = name in ("given", "free", "timed")
        if name == "timed" and what == "operations":
            continue  # it does not mind them
        points = sorted(points)
        style = "o-" if ours else {"no plan": "X", "checkpoint": "s"}.get(name, "^")
        axes.plot(*zip(*points), style, color=COLOURS[name], markersize=4 if ours else 6, linewidth=1,
                  label=f"Lowtide, {name}" if ours else name)
    axes.set_title(title, fontsize=8)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.tick_params(labelsize=7)
    axes.set_xlim(left=0)


def picture(rows, path, titles):
    """Peak against overhead, for each model in operations and below that in time; three models a row."""
    wide = min(3, len(titles))
    tall = -(-len(titles) // wide)
    figure, grid = plt.subplots(2 * tall, wide, figsize=(3.4 * wide, 4.6 * tall + 0.4), layout="constrained",
                                squeeze=False, sharex=False)
    labels = {}
    for i, (name, title) in enumerate(titles.items()):
        own = [row for row in rows if row["model"] == name]
        for k, what in enumerate(("operations", "time")):
            axes = grid[2 * (i // wide) + k, i % wide]
            _panel(axes, own, title.replace(": ", "\n") if k == 0 else "", what)
            if i % wide == 0:
                axes.set_ylabel(f"more {what}, per cent", fontsize=8)
            for handle, label in zip(*axes.get_legend_handles_labels()):
                labels.setdefault(label, handle)
    for i in range(len(titles), wide * tall):
        grid[2 * (i // wide), i % wide].axis("off")
        grid[2 * (i // wide) + 1, i % wide].axis("off")
    figure.supxlabel("peak above inputs and parameters, MB", fontsize=8)
    figure.legend(labels.values(), labels.keys(), loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(rows, out, titles, how, date, upstream):
    """OUT.md and OUT.png. how: the command and the machine."""
    lines = [f"# Training within a budget, {date}", "", f"`{how}. All figures: `{out.name}.csv`.", "",
             EXPLAINED.replace("{upstream}", upstream), "", f"![Peak against overhead]({out.name}.png)", ""]
    models = {name: [row for row in rows if row["model"] == name] for name in titles}
    lines += [table(own, titles[name]).markdown() for name, own in models.items()]
    lost = [line for own in models.values() for line in _loss_lines(own)]
    lines += ["## Where Lowtide loses", "", *(lost or ["Nowhere."])]
    out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    picture(rows, out.with_suffix(".png"), titles)
