"""While a solve runs: other threads, progress, exceptions, Ctrl-C, the end of the interpreter."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")

from package_support import script


@pytest.fixture(scope="module")
def large():
    """Nobody finishes it within a test."""
    return lowtide.generate("transformer", 3000)


def test_other_threads_go_on(large):
    """It is one of them that ends the solve."""
    heard, beats = threading.Event(), []

    def beat():
        heard.wait()
        for _ in range(20):
            beats.append(1)
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=beat)
    thread.start()
    outcome = lowtide.plan(large, "50%", time=100, threads=1, progress=lambda _: heard.set())
    thread.join()
    assert outcome.stopped_by == "cancelled" and len(beats) == 20


def test_two_threads_solve_at_once(large):
    found = []
    threads = [threading.Thread(target=lambda: found.append(lowtide.plan(large, "50%", time=0.5, threads=1)))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.stopped_by for outcome in found] == ["deadline", "deadline"]


def test_progress_is_told_on_the_calling_thread(large):
    heard = []
    outcome = lowtide.plan(large, "50%", time=1, progress=lambda event: heard.append((threading.get_ident(), event)))
    assert {thread for thread, _ in heard} == {threading.get_ident()}
    events = [event for _, event in heard]
    assert 1 <= len(events) <= 25
    seconds = [event.seconds for event in events]
    assert seconds == sorted(seconds) and seconds[-1] <= outcome.seconds
    bounds = [event.bound for event in events]
    assert bounds == sorted(bounds)
    last = events[-1]
    assert (last.duration, last.peak) == (outcome.duration, outcome.peak)
    assert last.overhead == outcome.overhead and last.gap >= 0 and last.solver == "auto"


heard = []


class Enough(Exception):
    pass


def refuse(event):
    heard.append(event)
    raise Enough("enough")


@pytest.mark.parametrize("solve", [
    lambda graph: lowtide.plan(graph, "50%", time=60, progress=refuse),
    lambda graph: lowtide.curve(graph, time=60, progress=refuse),
    lambda graph: lowtide.fit(graph, "5%", time=60, progress=refuse),
], ids=["plan", "curve", "fit"])
def test_an_exception_in_progress_ends_the_solve_and_is_raised(solve, large):
    heard.clear()
    with pytest.raises(Enough, match="enough"):
        solve(large)
    assert len(heard) == 1


SOLVE = """
import lowtide
graph = lowtide.generate("transformer", 3000)
def progress(event):
    if event.duration is not None:
        print("found", flush=True)
outcome = lowtide.plan(graph, "50%", time=100, progress=progress)
print(outcome.status, outcome.stopped_by, lowtide.verify(graph, outcome.plan).peak <= outcome.budget)
"""


def test_ctrl_c_returns_the_best_so_far():
    process = subprocess.Popen([sys.executable, "-c", SOLVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=Path(sys.executable).parent)
    assert process.stdout.readline() == "found\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "feasible cancelled True"


def test_a_second_ctrl_c_raises(large):
    presses = []

    def press(_):
        presses.append(1)
        time.sleep(0.3)  # there is news again
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        for _ in range(10):  # should the solve end before the second
            lowtide.plan(large, "50%", time=60, progress=press)
            signal.raise_signal(signal.SIGINT)
    assert presses


def test_a_signal_handlers_exception_is_raised(large):
    def late(*_):
        raise Enough("too late")

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Enough, match="too late"):
            lowtide.plan(large, "50%", time=60)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_interpreter_ends_while_a_daemon_solves():
    run = script("""
import lowtide, threading, time
graph = lowtide.generate("transformer", 3000)
threading.Thread(target=lambda: lowtide.plan(graph, "50%", time=100), daemon=True).start()
time.sleep(0.3)
""")
    assert (run.returncode, run.stderr) == (0, "")
