"""Architectures as people first try them: one graph, equal to eager execution or, where the report says so, to the
traced step.

Two of them where transformers is installed, all of torch_suite.py in long runs.
"""

import os
import random

import lowtide.torch
import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.tracing.own_kernels import own_kernels
from torch_architectures import available
from torch_run import alone as alone_
from torch_run import equal, train, twin
from torch_suite import SUITE, Only

SCALE = int(os.environ.get("LOWTIDE_TEST_SCALE", "1"))
# why a model comes in several graphs, or is not compared
SEVERAL = {
    "SegFormer": "its first call registers hooks under a lock",
    "wav2vec 2.0": "masks, CTC's lengths and gradients of inputs depend on numbers",
}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    with alone_(monkeypatch):
        yield


@pytest.mark.parametrize("name", SUITE if SCALE >= 10 else ["GPT-2", "ViT"])
def test_one_graph_and_no_other_bit(name):
    package, make = SUITE[name]
    if not available(package, untangle=False):
        pytest.skip(f"{package} is not installed")
    if name in SEVERAL:
        pytest.skip(f"{name}: {SEVERAL[name]}")
    torch.manual_seed(0)
    random.seed(0)
    module, batch = make()
    module.train()
    names = tuple(batch)

    def run(model, step):
        call = Only(step)
        return train(model, tuple(batch.values()), lambda *given: call(**dict(zip(names, given, strict=True))), steps=2)

    mine, before = twin(module), len(lowtide.torch.reports())
    step = lowtide.torch.optimize(mine, kwargs=batch, budget="100%", costs="cpu", work=5_000, time=None, fallback="error")
    assert len(lowtide.torch.reports()) == before + 1, "not one graph"
    report, got = lowtide.torch.reports()[-1], run(mine, step)
    plain = twin(module)
    if not equal(got, run(plain, plain)):
        assert not report.exactness.as_eager
        traced = twin(module)
        torch._dynamo.reset()
        with own_kernels():
            assert equal(got, run(traced, torch.compile(traced, backend="aot_eager")))
