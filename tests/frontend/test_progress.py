"""The line that says what takes long."""

import io
import threading

import pytest
from lowtide.frontend import progress


class Terminal(io.StringIO):
    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        if "pricing" in text:
            self.written.set()
        return len(text)


def terminal_at_once(monkeypatch):
    """In the place of stderr, which pytest sets anew for each test's own call."""
    monkeypatch.delenv("LOWTIDE_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "_FIRST", 0.01)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


def test_a_terminal_shows_the_stage_and_is_left_empty(monkeypatch):
    terminal = terminal_at_once(monkeypatch)
    with progress.line():
        progress.stage("pricing kernels", 14, 1653)
        assert terminal.written.wait(60)
    text = terminal.getvalue()
    assert "lowtide: pricing kernels 14 of 1,653, " in text
    assert text.endswith("\r") and not text.rstrip("\r").rpartition("\r")[2].strip()


def test_a_short_run_writes_nothing(monkeypatch):
    terminal = terminal_at_once(monkeypatch)
    monkeypatch.setattr(progress, "_FIRST", 3600)
    with progress.line():
        progress.stage("planning")
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("asked", "said"), [("off", ""), ("on", "lowtide: tracing\nlowtide: planning\n"), ("", "")])
def test_where_it_writes_is_for_the_user_to_say(asked, said, monkeypatch, capsys):
    """Pytest's own stderr is no terminal."""
    monkeypatch.setenv("LOWTIDE_PROGRESS", asked)
    with progress.line():
        progress.stage("tracing")
        with progress.line():  # within another there is one line
            progress.stage("planning", 1, 2)
            progress.stage("planning", 2, 2)
    progress.stage("nothing is shown outside")
    assert capsys.readouterr().err == said
