"""The pages that the command draws, and a browser that opens them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BINARY = os.environ.get("LOWTIDE_BIN", "build/release/lowtide")
SOURCE = Path(os.environ.get("LOWTIDE_SOURCE_DIR", "."))
BROWSERS = ["chromium", "chromium-browser", "google-chrome"]
GRAPH = SOURCE / "examples" / "resnet50-train.graph.json.gz"
SCHEMES, WIDTHS = ["light", "dark"], [390, 1400]


@pytest.fixture(scope="session")
def pages(tmp_path_factory) -> dict[str, Path]:
    """A page of each kind, by its name."""
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in ("report", "link", "curve", "partition", "snapshot")}
    plans = {"report": [], "link": ["--link", "25GB/s,10us"]}
    for name, options in plans.items():
        plan = folder / f"{name}.plan.json"
        _run("plan", GRAPH, "--budget", "50%", "--work", 100_000, *options, "-o", plan)
        _run("show", GRAPH, plan, "--html", found[name])
    _run("curve", GRAPH, "--points", 8, "--work", 200_000, "--html", found["curve"])
    _run("partition", GRAPH, "--html", found["partition"])
    _run("show", GRAPH, folder / "report.plan.json", "--snapshot", folder / "plan.pickle")
    _run("snapshot", folder / "plan.pickle", "--html", found["snapshot"])
    return found


def _run(*arguments: object) -> None:
    subprocess.run([BINARY, *map(str, arguments)], check=True, capture_output=True, timeout=600)


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="no playwright (tools/deps browser)")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: {', '.join(BROWSERS)} (tools/deps browser)")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program)
        yield running
        running.close()


@pytest.fixture
def opened(browser, pages):
    """opened(name, scheme, width): that page in a window of its own.  What the page writes to its console fails the test."""
    contexts, said = [], []

    def opened(name, scheme="light", width=1400):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(pages[name].as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not said
