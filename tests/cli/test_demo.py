"""demo: a first plan from nothing but the command, and the page that it draws."""

import os
import pty
import re
import select
import subprocess

import pytest
from conftest import BINARY, lowtide


@pytest.fixture
def desktop(tmp_path):
    """An environment with a display and an xdg-open that writes down what it is given."""
    opener, opened = tmp_path / "xdg-open", tmp_path / "opened"
    os.mkfifo(opened)
    opener.write_text(f'#!/bin/sh\nprintf %s "$1" >{opened}\n')
    opener.chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin", "DISPLAY": ":0"}, opened


def on_a_terminal(*arguments, env):
    """What the command says on a terminal."""
    ours, its = pty.openpty()
    run = subprocess.Popen([BINARY, *map(str, arguments)], stdin=its, stdout=its, stderr=its, env=env)
    os.close(its)
    said = b""
    try:
        while piece := os.read(ours, 1 << 16):
            said += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert run.wait(600) == 0
    return said.decode()


def test_the_demo_draws_a_plan_within_half_the_memory(tmp_path):
    page = tmp_path / "x.html"
    done = lowtide("demo", "--no-open", "--time", 1, "-o", page, env={"COLUMNS": "80"})
    assert done.code == 0 and done.err == ""
    assert "ResNet-50" in done.out and re.search(r"^budget +5\.22 GiB", done.out, re.MULTILINE)
    assert f"open this page in a browser: {page}\n" in done.out
    text = page.read_text()
    assert "ResNet-50" in text and text.rstrip().endswith("</html>")


def test_without_a_name_the_page_lies_here(tmp_path):
    subprocess.run([os.path.abspath(BINARY), "demo", "--time", "0.5"], cwd=tmp_path, check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["lowtide-demo.html"]


def test_a_budget_without_a_plan_has_no_page(tmp_path):
    done = lowtide("demo", "--budget", "2%", "--time", 1, "-o", tmp_path / "x.html")
    assert done.code == 1 and "infeasible" in done.out and not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments, said", [(("--budget", "0.5"), "0.5"), (("--time", "soon"), "'soon'"),
                                             (("-o", "none/x.html"), "none/x.html"), (("-o", "-"), "name one")])
def test_the_demo_refuses_impossible_arguments_before_it_plans(arguments, said):
    done = lowtide("demo", "--no-open", *arguments)
    assert done.code == 2 and done.out == "" and said in done.err


def test_the_demo_opens_the_page_on_a_desktop(desktop, tmp_path):
    env, opened = desktop
    reader = os.open(opened, os.O_RDWR)  # so that it waits for who writes
    page = tmp_path / "x.html"
    assert "opened in your browser" in on_a_terminal("demo", "--time", "0.5", "-o", page, env=env)
    assert select.select([reader], [], [], 600)[0]
    assert os.read(reader, 1000).decode() == str(page)
    os.close(reader)


@pytest.mark.parametrize("change, flags", [({"DISPLAY": ""}, ()), ({"PATH": "/nowhere"}, ()), ({}, ("--no-open",))])
def test_the_demo_prints_the_path_of_a_page_that_it_does_not_open(desktop, tmp_path, change, flags):
    said = on_a_terminal("demo", *flags, "--time", "0.5", "-o", tmp_path / "x.html", env={**desktop[0], **change})
    assert "open this page in a browser" in said and (tmp_path / "x.html").exists()
