"""The table of the PyTorch versions that were tried: python tools/torch_versions.py note FOLDER | write FOLDER...

`note` (run by the Python that ran the suites, as tools/test_torch and tools/test do) puts what they found into
FOLDER/version.json, read from its JUnit files.  `write` takes such files of full runs into bench/results/torch-versions.csv, a row for each version of
PyTorch, Python and build, and makes the table in docs/reference/torch-versions.md of that file's rows.
"""
import csv
import json
import platform
import re
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from suites import label
from test_summary import outcome_of

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "bench/results/torch-versions.csv"
PAGE = ROOT / "docs/reference/torch-versions.md"
COLUMNS = ["torch", "python", "run", "suites", "passed", "failed", "skipped", "number_types", "lacks", "date"]
TYPES = {"f64": "float64", "double": "float64", "float64": "float64", "f32": "float32", "float": "float32", "float32": "float32",
         "bf16": "bfloat16", "bfloat16": "bfloat16", "f16": "float16", "half": "float16", "float16": "float16",
         "complex64": "complex64", "complex128": "complex128"}
# How a test is skipped that needs what a version does not have: its reason names it.
LACKS = re.compile(r"torch \S+ lacks (.+)")


def number_types(name: str) -> set[str]:
    """Those that the parameters of a test name: test_equal[buffers-f32] was run in float32."""
    parameters = re.search(r"\[(.*)\]", name)
    words = re.split(r"[-_. ]", parameters[1]) if parameters else []
    return {TYPES[word] for word in words if word in TYPES}


def found(paths) -> dict:
    """What became of the cases in JUnit files."""
    count, types, lacks = dict.fromkeys(("passed", "failed", "skipped"), 0), set(), set()
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            word = outcome_of(case)
            count[word] += 1
            if word == "passed":
                types |= number_types(case.get("name"))
            if word == "skipped":
                lacks |= set(LACKS.findall(case.find("skipped").get("message", "")))
    return count | {"number_types": " ".join(sorted(types)), "lacks": "; ".join(sorted(lacks))}


def ran_on() -> str:
    """What the suites ran on; a build for a GPU runs on a processor too."""
    import torch

    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {built} build"


def of_torch(folder: Path) -> list[Path]:
    """The results of suites that import torch, without those of the benchmarks."""
    names = {label(suite) for suite in ROOT.glob("tests/**/test_*.py") if not suite.name.startswith("test_bench_") and
             re.search(r'importorskip\("torch"\)|^import torch$', suite.read_text(), re.MULTILINE)}
    return sorted(path for path in folder.glob("*.xml") if path.stem.partition(".")[2] in names)


def note(folder: Path) -> None:
    paths = of_torch(folder)
    row = {"torch": version("torch").split("+")[0], "python": platform.python_version(), "run": ran_on(),
           "suites": len(paths), **found(paths), "date": date.today().isoformat()}
    (folder / "version.json").write_text(json.dumps(row, indent=1) + "\n")


def rows() -> list[dict]:
    with ROWS.open() as file:
        return list(csv.DictReader(file))


def by_version(row: dict):
    return [[int(part) for part in re.findall(r"\d+", row[column])] for column in ("torch", "python")], row["run"]


def table(rows: list[dict]) -> str:
    """Markdown of the rows, the newest version first."""
    lines = ["| PyTorch | Python | ran on | suites | passed | skipped | failed | number types | tests of what it lacks |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |"]
    for row in sorted(rows, key=by_version, reverse=True):
        types = ", ".join(row["number_types"].split())
        lines.append(f"| {row['torch']} | {row['python']} | {row['run']} | {row['suites']} | {row['passed']} | {row['skipped']} "
                     f"| {row['failed']} | {types} | {row['lacks'] or '-'} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, made: str) -> str:
    return re.sub(r"(?<=<!-- tools/torch_versions.py makes this table -->\n).*?(?=<!-- end -->)", lambda _: made, page, flags=re.DOTALL)


def write(folders) -> None:
    known = {repr(by_version(row)): row for row in (rows() if ROWS.exists() else [])}
    for folder in folders:
        row = json.loads((folder / "version.json").read_text())
        known[repr(by_version(row))] = {column: str(row[column]) for column in COLUMNS}
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(known.values(), key=by_version))
    PAGE.write_text(with_table(PAGE.read_text(), table(rows())))


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    if command == "note":
        note(Path(folders[0]))
    elif command == "write":
        write([Path(folder) for folder in folders])
    else:
        sys.exit(__doc__)
