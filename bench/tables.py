"""Tables of what lowtide_bench measured, beside what was published.

    python3 bench/tables.py [FOLDER] [--published FOLDER]

reads FOLDER/rows.csv (build/bench), prints the tables and writes FOLDER/tables.md.
"""
import argparse
import math
import shutil
import textwrap
from pathlib import Path

from read import read_published, read_rows
from table import Table

SETS = {
    "moccasin": "The papers' graphs",
    "captured": "Captured networks",
    "examples": "Captured networks of `examples/`",
    "hiremate": "HiRemate's graphs",
    "training": "Generated training graphs",
    "layered": "Generated random layered graphs",
    "held": "Generated graphs on which nothing was tuned",
    "named": "Graphs named on the command line",
}


def percent(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def seconds(value):
    if value is None:
        return "-"
    return f"{1000 * value:.0f} ms" if value < 0.9995 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def budget(text):
    return f"{int(text) / 2**30:.2f} GiB" if text.isdigit() and len(text) > 7 else text


def verdict(row):
    """How near to the bound, as the last column says it."""
    for status in ("failed", "unsupported", "infeasible"):
        if status in row.statuses:
            return status
    if row.statuses == {"optimal"}:
        return "optimal"
    within = row.middle("within")
    return "-" if within is None else "above 0" if math.isinf(within) else f"{within:.{1 if within < 100 else 0}f} %"


def published_cell(rows, method):
    for row in rows:
        if row["method"] != method:
            continue
        facts = [f"{float(row['seconds']):.4g} s"] if row["seconds"] else []
        facts += [f"bound {row['bound']}"] if row["bound"] else []
        facts += ["over budget"] if row["note"] == "over budget" else []
        return row["overhead"] + (f" ({', '.join(facts)})" if facts else "")
    return ""


def reached(rows):
    """One line: how many rows come how near to their bound."""
    planned = [row for row in rows if row.middle("overhead") is not None]
    near = ", ".join(str(sum(row.middle("within") <= share for row in planned)) for share in (1, 3, 5))
    proven = sum(row.statuses == {"infeasible"} for row in rows)
    return (f"{len(rows)} rows: a plan for {len(planned)}, within 1, 3, 5 % of the bound's overhead {near}; "
            f"{proven} proven infeasible.")


def result_table(title, rows, published):
    beside = {(row["graph"], row["budget"], row["order"]) for row in rows}
    beside = [entry for key in published if key in beside for entry in published[key]]
    methods = list(dict.fromkeys(entry["method"] for entry in beside))
    limit = float(rows[0]["limit_s"])
    several = len({(row["solver"], row["variant"]) for row in rows}) > 1
    table = Table(title, [
        ("graph", 0), ("ops", 4), ("budget", 0), ("order", 0), ("solver", 0), ("0.1 s", 0), ("1 s", 0),
        ("10 s", 0), (f"{limit:g} s", 0), ("spread", 2), ("bound", 0), ("within", 0), ("gap", 5), ("first", 6),
        ("end", 7), ("MiB", 8)] + [(method, 3 if method != "Moccasin" else 1) for method in methods])
    for row in rows:
        final = percent(row.middle("overhead"))
        marks = [percent(row.middle(f"overhead_{mark}s")) if mark <= limit else "" for mark in (0.1, 1, 10)]
        solver = row["solver"] + ("" if row["variant"] == "base" else " " + row["variant"])
        resident = row.middle("resident")
        known = published.get((row["graph"], row["budget"], row["order"]), [])
        table.add(
            row["graph"], row["ops"], budget(row["budget"]), row["order"], solver if several else "", *marks,
            final if limit not in (0.1, 1, 10) else "",
            percent(row.spread()) if len(row.runs) > 1 else "",
            "-" if verdict(row) == "infeasible" else percent(row.middle("bound")), verdict(row),
            percent(row.middle("gap")), seconds(row.middle("first_plan_s")), seconds(row.middle("time_s")),
            "" if resident is None else f"{resident / 2**20:.0f}",
            *(published_cell(known, method) for method in methods))
    table.notes.append(reached(rows))
    sources = {}
    for entry in beside:
        methods = sources.setdefault(entry["source"], [])
        if entry["method"] not in methods:
            methods.append(entry["method"])
    if sources:
        table.notes.append("; ".join(f"{', '.join(methods)}: {source}" for source, methods in sources.items()) + ".")
    return table


def ablation_tables(rows):
    """Rows: graphs; columns: with everything, then without one thing at a time."""
    for solver in dict.fromkeys(row["solver"] for row in rows):
        mine = [row for row in rows if row["solver"] == solver]
        column = "bound" if solver == "bounds" else "overhead"
        parts = {}
        for variant in dict.fromkeys(row["variant"] for row in mine):
            if variant != "base":
                part = "parts" if variant.startswith("without ") else variant.split(".")[0]
                parts.setdefault(part, []).append(variant)
        for part, variants in parts.items():
            yield ablation_table(solver, part, variants, mine, column)


def ablation_table(solver, part, variants, rows, column):
    what = "without one part" if part == "parts" else f"one switch of `{part}` off"
    table = Table(f"Ablation: {column} of `{solver}`, {what}",
                  [("graph", 0), ("budget", 0), ("order", 0), ("base", 0)] +
                  [(short(variant), 0) for variant in variants], fixed=4)
    asked = {}
    for row in rows:
        asked.setdefault((row["graph"], row["budget"], row["order"]), {})[row["variant"]] = row
    changes = {variant: [] for variant in variants}
    lost = dict.fromkeys(variants, 0)
    for (graph, amount, order), by_variant in asked.items():
        base = by_variant["base"].middle(column)
        cells = []
        for variant in variants:
            value = by_variant[variant].middle(column) if variant in by_variant else None
            cells.append(percent(value) if variant in by_variant else "")
            if value is not None and base is not None:
                changes[variant].append(value - base)
            elif variant in by_variant:
                lost[variant] += (value is None) - (base is None)
        table.add(graph, amount, order, percent(base), *cells)
    table.add("mean change", "", "", "", *(
        f"{sum(change) / len(change):+.3f}" if change else "" for change in changes.values()))
    if column == "overhead":
        table.add("plans lost", "", "", "", *lost.values())
    return table


def short(variant):
    """The column's head: the table's title says the rest."""
    if variant.startswith("without "):
        return variant.split(" ", 1)[1]
    return variant.split(".", 1)[1].replace("=off", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="build/bench", type=Path)
    parser.add_argument("--published", default=Path(__file__).parent / "published", type=Path)
    arguments = parser.parse_args()
    published = read_published(arguments.published)
    rows = read_rows(arguments.folder / "rows.csv")
    tables = []
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        varied = [row for row in mine if row["variant"] != "base"]
        if name == "ablation" or (name == "named" and varied):
            tables += ablation_tables(mine)
        else:
            tables.append(result_table(SETS.get(name, name), mine, published))
    first = rows[0] if rows else None
    head = "Nothing was measured.\n" if first is None else (
        f"Overhead in per cent after 0.1, 1 and 10 s of one run of {float(first['limit_s']):g} s, "
        f"{first['threads']} thread(s), median of {len(first.runs)} seed(s). Bound: proven, in per cent of "
        "overhead. Within: how much more the plan's overhead is than the bound's, in per cent of the bound's; gap: "
        "how much longer the plan is than the bound, in per cent. First: until the first plan. `-`: none.\n")
    width = shutil.get_terminal_size((100, 24)).columns
    print("\n" + textwrap.fill(head, width) + "\n")
    for table in tables:
        print(table.text(width))
    path = arguments.folder / "tables.md"
    path.write_text("# Benchmark\n\n" + head + "\n" + "\n".join(table.markdown() for table in tables))
    print(f"the same as Markdown: {path}")


if __name__ == "__main__":
    main()
