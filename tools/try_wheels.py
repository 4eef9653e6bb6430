"""Installs the wheel of each Python into an empty environment, without a compiler, and uses it as people would.

    python tools/try_wheels.py DIST FOLDER PYTHON...

DIST has the wheels, FOLDER gets the environments. The engines come from pip; PyTorch is not installed for this: a
training step runs where an environment in build, or that Python itself, has it. Prints one table; 1 where anything
failed.
"""

import glob
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLAN = """
import lowtide
graph = lowtide.generate("transformer", 300)
outcome = lowtide.plan(graph, "70%", time=5)
assert outcome.plan and lowtide.verify(graph, outcome.plan).peak <= outcome.budget, outcome
graph.save("graph.json.gz")
"""
TRAINING = """
import copy, torch, lowtide.torch
torch.manual_seed(0)
model = torch.nn.Sequential(*(layer for _ in range(6) for layer in (torch.nn.Linear(64, 64), torch.nn.Tanh())))
twin, x = copy.deepcopy(model), torch.randn(512, 64)
optimizer, other = torch.optim.AdamW(model.parameters()), torch.optim.AdamW(twin.parameters())
planned = lowtide.torch.optimize(model, (x,), budget="80%", optimizer=optimizer)
for step, updates in ((planned, optimizer), (twin, other)):
    step(x).square().sum().backward()
    updates.step()
assert all(map(torch.equal, model.parameters(), twin.parameters()))
print(lowtide.torch.reports()[-1])
"""


class Failed(Exception):
    pass


class Environment:
    """A new environment of one Python, whose processes see its own programs and nothing else."""

    def __init__(self, python, folder):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        self.folder, self.bin = folder, folder / "bin"
        assert not any(shutil.which(name, path=str(self.bin)) for name in ("cc", "c++", "gcc", "g++", "clang", "ninja"))

    def install(self, *arguments):
        """With what pip is told outside, so that it finds its index."""
        done = subprocess.run([self.bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check",
                               *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"pip install {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")

    def run(self, program, *arguments, code=0):
        done = subprocess.run([self.bin / program, *arguments], capture_output=True, text=True, timeout=900,
                              cwd=self.folder, stdin=subprocess.DEVNULL,
                              env={"PATH": str(self.bin), "HOME": str(self.folder), "LC_ALL": "C.UTF-8"})
        if done.returncode != code:
            raise Failed(f"{program} {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def install_wheel(env, dist):
    """The name of the wheel that pip has chosen."""
    report = env.folder / "report.json"
    env.install("--no-index", "--no-deps", "--only-binary=:all:", "--find-links", dist, "--report", report, "lowtide")
    return json.loads(report.read_text())["install"][0]["download_info"]["url"].rsplit("/", 1)[-1]


def plan(env, _):
    env.run("python", "-W", "error", "-c", PLAN)


def command(env, _):
    assert env.run("lowtide", "--version") == env.run("python", "-m", "lowtide", "--version")
    said = env.run("lowtide", "demo", "--no-open", "--time", "2", "--output", "page.html")
    if "page.html" not in said or "</html>" not in (env.folder / "page.html").read_text():
        raise Failed(said)


def worker(env, dist):
    """CP-SAT and HiGHS: they run in lowtide-worker."""
    env.run("lowtide-worker", code=2)  # it is no command for people
    env.install("--find-links", dist, "lowtide[engines]")
    env.run("lowtide", "generate", "chain", "--ops", "30", "-o", "small.json")
    for solver in ("moccasin", "checkmate"):
        said = json.loads(env.run("lowtide", "plan", "small.json", "--budget", "80%", "--solver", solver, "--json"))
        if said["status"] not in ("optimal", "feasible"):
            raise Failed(f"{solver}: {said}")


def training(env, _):
    packages = torch_packages(env)
    if packages is None:
        return "no torch"
    site = next(env.folder.glob("lib/python3*/site-packages"))
    (site / "torch_of_another.pth").write_text(f"{packages}\n")  # behind the environment's own packages
    env.run("python", "-c", TRAINING)
    return "torch " + env.run("python", "-c", "import torch; print(torch.__version__)").strip()


def torch_packages(env):
    """A folder of packages with a PyTorch for this Python, or None."""
    lib = next(env.folder.glob("lib/python3*")).name
    base = env.run("python", "-c", "import sys; print(sys.base_prefix)").strip()
    for folder in [*sorted(glob.glob(f"{ROOT}/build/*/lib/{lib}/site-packages")), f"{base}/lib/{lib}/site-packages"]:
        if Path(folder, "torch/version.py").exists():
            return folder
    return None


TRIES = (plan, command, worker, training)


def row(python, dist, folder):
    """The table's row, and what failed in full."""
    said, failures = {}, []
    env = Environment(python, folder)
    version = env.run("python", "-V").split()[1]
    try:
        wheel = install_wheel(env, dist)
    except Failed as failure:
        return [version, "none", "", "", *("" for _ in TRIES)], [str(failure)]
    for attempt in TRIES:
        try:
            said[attempt] = attempt(env, dist) or "yes"
        except (Failed, AssertionError, subprocess.TimeoutExpired) as failure:
            said[attempt] = "FAILED"
            failures.append(f"Python {version}, {attempt.__name__}: {failure}")
    if not failures:
        shutil.rmtree(folder)
    glibc = re.search(r"manylinux_(\d+)_(\d+)", wheel)
    size = (dist / wheel).stat().st_size / 1e6
    return [version, wheel, f"{glibc[1]}.{glibc[2]}" if glibc else "as here", f"{size:.1f}", *said.values()], failures


def main():
    dist, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    rows, failures = [["Python", "wheel", "glibc", "MB", *(attempt.__name__ for attempt in TRIES)]], []
    for python in sys.argv[3:]:
        cells, failed = row(python, dist, folder / Path(python).name)
        rows.append(cells)
        failures += failed
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    print("", *failures, sep="\n")
    return 1 if failures or len(rows) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
