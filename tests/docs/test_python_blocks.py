"""The Python of README and docs, page by page: each block runs after those before it, in less time and with small models
in the place of what a reader has."""

import contextlib
import functools
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch

import lowtide

sys.path.insert(0, str(Path(__file__).resolve().parent))
from blocks import ROOT, blocks, with_blocks

ELSEWHERE = {  # the suites that run these pages
    "docs/how-to/plan-an-onnx-model.md": "tests/onnx/test_onnx_command.py",
    "docs/how-to/train-in-jax.md": "tests/python/test_jax.py",
    "docs/how-to/use-from-python.md": "tests/python/test_package.py",
    "docs/how-to/train-on-several-gpus.md": "tests/python/test_torch_ddp.py",
    "docs/how-to/train-with-fsdp.md": "tests/python/test_torch_fsdp.py",
    "docs/how-to/train-with-hugging-face.md": "tests/python/test_torch_frameworks.py",
    "docs/how-to/train-with-lightning.md": "tests/python/test_torch_frameworks.py",
    "docs/how-to/train-with-trl-and-peft.md": "tests/python/test_torch_frameworks.py",
    "docs/how-to/train-with-diffusers.md": "tests/python/test_torch_frameworks.py",
    "docs/how-to/train-with-torchtitan.md": "tests/python/test_torch_torchtitan.py",
    "docs/how-to/write-a-solver.md": "tests/python/test_solver.py",
    "docs/how-to/replace-a-part-of-hiremate.md": "tests/python/test_hierarchy.py"}
# where a page says sizes or budgets that are for more than a test can wait for: a quarter, so that tensors are a sixteenth
SMALLER = {"docs/how-to/train-under-a-budget.md": {"512": "128", "8192": "2048", '"300MB"': '"20MB"', '"110MB"': '"6MB"', "range(12)": "range(6)",
                                                   "10_000_000": "10_000"},
           "docs/how-to/choose-a-budget.md": {"range(64)": "range(8)"}}

WORK = {"docs/how-to/change-the-graph.md": 1_000_000}  # for budgets that take longer to reach


def small():
    """What pages take for granted: a model, its inputs, an optimizer, and a graph."""
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = body

        def forward(self, x, y):
            return torch.nn.functional.cross_entropy(self.body(x), y)

    x, y = torch.randn(512, 64), torch.randint(10, (512,))
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    return {"torch": torch, "lowtide": lowtide, "contextlib": contextlib, "model": model, "x": x, "y": y, "optimizer": optimizer,
            "loss": lambda model, x, y: model(x, y), "graph": lowtide.Graph.load(ROOT / "examples/gpt2-train.graph.json.gz")}


def of_a_training(names):
    """What a loop has, of the model and inputs that the page has by then."""
    batch = names["x"], names["y"]
    return {"batches": [batch], "micro_batches": [batch, batch],
            "scheduler": torch.optim.lr_scheduler.ConstantLR(names["optimizer"])}


@pytest.fixture
def hurried(request, monkeypatch, tmp_path):
    """Plans with little work, the same on a busy machine, in a folder with the examples; nothing kept of other runs."""
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    work = WORK.get(request.node.callspec.params["page"], 30_000)
    monkeypatch.setattr(lowtide.torch, "explain", functools.partial(lowtide.torch.explain, time=1))  # which knows no work
    for module, name in ((lowtide.torch, "optimize"), (lowtide.torch, "step"), (lowtide, "plan"), (lowtide, "curve"),
                         (lowtide, "fit")):
        real = getattr(module, name)

        @functools.wraps(real)
        def quick(*args, real=real, **options):
            return real(*args, **options | {"time": None, "work": work})

        monkeypatch.setattr(module, name, quick)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", [page for page in with_blocks("python") if page not in ELSEWHERE])
def test_blocks_run(page, hurried, monkeypatch):
    module = types.ModuleType("page_of_docs")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where the tracer looks for what a model names
    names = module.__dict__
    names |= small()
    for block in blocks(ROOT / page, "python"):
        for before, after in SMALLER.get(page, {}).items():
            block = block.replace(before, after)
        if "torch.compile(" in block:
            torch._dynamo.reset()
        names |= of_a_training(names)
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize(("page", "suite"), ELSEWHERE.items())
def test_other_pages_are_run_by_their_suites(page, suite):
    assert page in (ROOT / suite).read_text() and page in with_blocks("python")
