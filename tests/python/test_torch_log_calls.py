"""Calls that log break no graph under Lowtide: they run behind it, each step, with their arguments.

Other backends are as ever.
"""

import functools
import io
import logging
import sys
import warnings

import lowtide.torch
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch_run import alone as alone_
from torch_run import twin

log = logging.getLogger("lowtide.tests.model")


@functools.cache
def said_once(text, level=1):
    log.warning("once: %s", text)
    log.info("and %d", level)


@functools.lru_cache(None)
def _warn_once(self, *args):
    self.warning(*args)


class Talks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.adapter = logging.LoggerAdapter(log, {})

    def forward(self, x):
        log.warning("shape %s", x.shape)
        x = self.layers[0](x).relu()
        log.warn_once("a method that a library has added")
        log.info(f"mean {x.mean()} of {type(self).__name__}", stacklevel=1)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("never")
        said_once("text", level=2)
        x = self.layers[1](x).relu()
        print("printed", x.shape[0], end="!\n", flush=True)
        warnings.warn("careful", FutureWarning, stacklevel=2)
        self.adapter.error("adapted %s", {"a": [1, 2]})
        logging.info("of the root")
        return self.layers[2](x).square().mean()


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(logging.Logger, "warn_once", _warn_once, raising=False)
    with alone_(monkeypatch):
        yield


def said(step, inputs, steps=2):
    """What is logged, printed and warned of, and the gradients."""
    _warn_once.cache_clear()
    said_once.cache_clear()
    records, out = [], io.StringIO()
    handler = logging.Handler()
    handler.emit = lambda r: records.append((r.levelname, r.getMessage(), r.funcName))
    root, level = logging.getLogger(), log.level
    log.setLevel(logging.INFO)
    root.addHandler(handler)
    stdout, sys.stdout = sys.stdout, out
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(steps):
                step.zero_grad()
                step(*inputs).backward()
    finally:
        sys.stdout = stdout
        root.removeHandler(handler)
        log.setLevel(level)
    mine = [r for r in records if "lowtide:" not in r[1]]
    warned = [str(w.message) for w in found if w.category is FutureWarning]
    return mine, out.getvalue(), warned, [p.grad for p in step.parameters()]


@pytest.mark.parametrize("by", ["optimize", "compile"])
def test_calls_run_behind_the_graph_as_in_eager_execution(by, monkeypatch):
    torch.manual_seed(0)
    module, inputs = Talks(), (torch.randn(4, 8),)
    records, printed, warned, gradients = said(twin(module), inputs)
    assert len(records) == 9 and len(warned) == 2
    log.setLevel(logging.INFO)  # whether a level is enabled is asked while the step is traced
    before = len(lowtide.torch.reports())
    if by == "optimize":
        step = lowtide.torch.optimize(twin(module), inputs, budget="100%", costs="cpu", work=1000, time=None)
    else:
        step = torch.compile(twin(module), backend="lowtide",
                             options={"budget": "100%", "costs": "cpu", "work": 1000, "time": None})
    got = said(step, inputs)
    log.setLevel(logging.NOTSET)
    assert len(lowtide.torch.reports()) == before + 1, "one graph"
    assert got[:3] == (records, printed, warned)
    assert all(map(torch.equal, got[3], gradients))


def test_a_tensor_is_shown_detached_and_changes_no_bit():
    class Shows(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            y = self.layer(x)
            print("loss", y.square().mean())
            return y.square().mean()

    torch.manual_seed(0)
    module, inputs = Shows(), (torch.randn(4, 8),)
    _, printed, _, gradients = said(twin(module), inputs, 1)
    step = lowtide.torch.optimize(twin(module), inputs, budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    got = said(step, inputs, 1)
    assert got[1] == printed.replace(", grad_fn=<MeanBackward0>", "")
    assert all(map(torch.equal, got[3], gradients))


def test_other_backends_break_the_graph_as_ever():
    class Logs(nn.Module):
        def forward(self, x):
            log.warning("here")
            return x.sin()

    graphs = []
    torch.compile(Logs(), backend=lambda gm, _: graphs.append(gm) or gm.forward)(torch.ones(2))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(Logs(), backend="eager", fullgraph=True)(torch.ones(2))
