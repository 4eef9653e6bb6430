"""Engines that are missing or hang: what is said, and that nobody waits for them."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import BINARY, lowtide, wait_for_handler

NOWHERE = {"LOWTIDE_CPSAT": "/nowhere", "LOWTIDE_HIGHS": "/nowhere"}


@pytest.fixture
def deaf(tmp_path):
    """A worker that never says a word."""
    path = tmp_path / "deaf"
    path.write_text("#!/bin/sh\nexec sleep 100000\n")
    path.chmod(0o755)
    return {"LOWTIDE_WORKER": str(path), "LOWTIDE_CPSAT": "x.so", "LOWTIDE_HIGHS": "x.so"}


@pytest.fixture
def alone(tmp_path):
    """The command where nothing lies beside it."""
    path = tmp_path / "some" / "bin" / "lowtide"
    path.parent.mkdir(parents=True)
    shutil.copy(BINARY, path)
    return path


def lines(out):
    return {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()[-2:]}


def test_variables_that_are_wrong_are_named(resnet):
    said = lines(lowtide("solvers", env=NOWHERE).out)
    for engine, variable in (("CP-SAT", "LOWTIDE_CPSAT"), ("HiGHS", "LOWTIDE_HIGHS")):
        assert said[engine] == f"{variable}=/nowhere cannot be opened: No such file or directory"
    done = lowtide("plan", resnet, "--budget", "60%", "--solver", "moccasin", "--json", env=NOWHERE)
    assert done.code == 1 and done.json()["status"] == "unsupported"
    assert done.json()["reason"] == "it needs CP-SAT: " + said["CP-SAT"]
    assert lowtide("plan", resnet, "--budget", "60%", "--work", 100000, env=NOWHERE).code == 0


def test_missing_engines_are_listed_with_the_command_that_installs_them(alone):
    clean = {name: text for name, text in os.environ.items() if not name.startswith("LOWTIDE_")}
    clean["PATH"] = "/usr/bin:/bin"
    run = subprocess.run([alone, "solvers"], capture_output=True, text=True, env=clean, timeout=600)
    for said in lines(run.stdout).values():
        assert said.startswith("lowtide-worker was not built or installed")
    worker = Path(BINARY).resolve().parent / "lowtide-worker"
    shutil.copy(worker, alone.parent)
    run = subprocess.run([alone, "solvers"], capture_output=True, text=True, env=clean, timeout=600)
    said = lines(run.stdout)
    for engine, package in (("CP-SAT", "ortools"), ("HiGHS", "highsbox")):
        # The system may have one of its own.
        assert said[engine].startswith(f"not found; pip install {package}, or set ") or ", lib" in said[engine]
    assert max(map(len, run.stdout.splitlines()[-2:])) <= 100


def test_a_worker_that_hangs_does_not_keep_the_list(deaf):
    said = lines(lowtide("solvers", env=deaf).out)
    assert said["CP-SAT"] == said["HiGHS"] == f"LOWTIDE_WORKER={deaf['LOWTIDE_WORKER']} does not answer"


@pytest.mark.parametrize("solver", ["moccasin", "checkmate"])
def test_a_deadline_is_kept_while_an_engine_is_looked_for(chain, deaf, solver):
    done = lowtide("plan", chain, "--budget", "90%", "--solver", solver, "--time", "0.5", "--json", env=deaf).json()
    assert done["stopped_by"] == "deadline"


def test_auto_does_without_an_engine_that_hangs(tmp_path, deaf):
    graph = tmp_path / "layered.graph.json"
    assert lowtide("generate", "layered", "--ops", 60, "--seed", 2, "-o", graph).code == 0
    done = lowtide("plan", graph, "--budget", "70%", "--order", "given", "--time", "3", "--json", env=deaf).json()
    assert done["status"] == "feasible"


def test_an_interrupt_ends_the_look_for_an_engine(chain, deaf):
    run = subprocess.Popen([BINARY, "plan", chain, "--budget", "90%", "--solver", "checkmate", "--time", "60"],
                           stdout=subprocess.PIPE, text=True, env={**os.environ, **deaf})
    wait_for_handler(run)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=600)
    assert "stopped by: cancelled" in out
