"""Frameworks that bring the loop (docs/how-to/train-with-hugging-face.md, train-with-lightning.md, train-with-trl-and-peft.md,
train-with-diffusers.md), and that what is trained there is what is trained without a plan."""

import copy
import functools
import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from blocks import ROOT, blocks

set_default = lowtide.torch.set_default
QUICK = {"work": 30_000, "time": None}  # a loaded machine finds the same plans


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    yield
    set_default()
    if "accelerate" in sys.modules:  # its options are those of the process's first script
        sys.modules["accelerate"].state.AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("page", "frameworks"), [
    ("docs/how-to/train-with-hugging-face.md", ["transformers", "accelerate"]),
    ("docs/how-to/train-with-lightning.md", ["lightning"]),
    ("docs/how-to/train-with-trl-and-peft.md", ["transformers", "peft"]),
    ("docs/how-to/train-with-diffusers.md", ["diffusers", "accelerate"]),
])
def test_the_how_to_runs(page, frameworks, monkeypatch):
    for name in frameworks:
        pytest.importorskip(name, reason=f"no {name} (tools/deps frameworks)")
    module = types.ModuleType("page_of_docs")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(lowtide.torch, "set_default", functools.partial(set_default, **QUICK))
    lowtide.torch.set_default()
    before = len(lowtide.torch.reports())
    left_out = None
    for block in blocks(ROOT / page, "python"):
        left_out = next((name for name in re.findall(r"^import (\w+)$", block, re.MULTILINE) if importlib.util.find_spec(name) is None), None)
        if left_out:
            break
        exec(compile(block, page, "exec"), module.__dict__)
        torch._dynamo.reset()
    planned = lowtide.torch.reports()[before:]
    assert len(planned) >= 2 and all(report.peak <= report.budget for report in planned)
    if left_out:
        pytest.skip(f"the blocks that need {left_out}; those before them passed")


def trained(transformers, by):
    """Losses and parameters after three steps of a Trainer: without a plan, by the backend's name, or of an optimized model."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    tokens = torch.randint(64, (24, 32))
    data = [{"input_ids": row, "labels": row, "comment": "a column that no model takes"} for row in tokens]
    options = {}
    if by == "name":
        lowtide.torch.set_default(budget="70%", **QUICK)
        options["torch_compile_backend"] = "lowtide"
    if by == "optimize":
        batch = {"input_ids": tokens[:8], "labels": tokens[:8]}
        model = lowtide.torch.optimize(model, batch, budget="70%", **QUICK)
    arguments = transformers.TrainingArguments("out", per_device_train_batch_size=8, max_steps=3, report_to=[], use_cpu=True,
                                               disable_tqdm=True, save_strategy="no", logging_steps=1, **options)
    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    trainer.train()
    return [said["loss"] for said in trainer.state.log_history if "loss" in said], [p.detach().clone() for p in model.parameters()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by", ["name", "optimize"])
def test_trainer_trains_the_same_model_under_a_budget(by):
    transformers = pytest.importorskip("transformers", reason="no transformers (tools/deps frameworks)")
    pytest.importorskip("accelerate", reason="no accelerate (tools/deps frameworks)")
    losses, parameters = trained(transformers, None)
    before = len(lowtide.torch.reports())
    planned_losses, planned = trained(transformers, by)
    assert planned_losses == losses and all(map(torch.equal, planned, parameters))
    assert len(lowtide.torch.reports()) > before


@pytest.mark.filterwarnings("ignore")
def test_padded_batches_of_many_lengths_make_few_plans():
    transformers = pytest.importorskip("transformers", reason="no transformers (tools/deps frameworks)")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=64, bos_token_id=0, eos_token_id=0)
    eager = transformers.GPT2LMHeadModel(config)
    model = copy.deepcopy(eager)
    planned = torch.compile(model, backend="lowtide", options={"budget": "act:70%", **QUICK})
    before = len(lowtide.torch.reports())
    for length in (24, 40, 31, 28, 36):
        tokens, mask = torch.randint(64, (4, length)), torch.ones(4, length, dtype=torch.int64)
        mask[1, length // 2:] = 0
        batch = {"input_ids": tokens, "attention_mask": mask, "labels": tokens.masked_fill(mask == 0, -100)}
        losses = []
        for each in (eager, planned):
            torch.manual_seed(length)
            losses.append(each(**batch).loss)
            losses[-1].backward()
        assert torch.equal(*losses)
    assert all(map(torch.equal, (p.grad for p in eager.parameters()), (p.grad for p in model.parameters())))
    assert len(lowtide.torch.reports()) - before <= 3  # of the first length, and of all lengths for one or two of them
