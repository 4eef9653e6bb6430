"""docs/how-to/train-with-torchtitan.md: its configuration, and its Trainer on two gloo ranks, with and without a plan."""

import importlib.util
import os
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("torchtitan") is None or importlib.util.find_spec("triton") is None:
    pytest.skip("no torchtitan, or no triton, which it imports", allow_module_level=True)

import lowtide.torch
from rank_support import ranks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from blocks import ROOT, blocks

PAGE = "docs/how-to/train-with-torchtitan.md"


def on_a_cpu():
    """torchtitan asks a GPU for its name and memory; its FSDP2 and time limits want more of torch.distributed than gloo has."""
    import torch.distributed as dist
    import torchtitan.tools.utils as utils

    known = {name: getattr(torch.cpu, name) for name in dir(torch.cpu) if not name.startswith("__")}
    nothing = dict.fromkeys(("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats"), lambda *_: None)
    utils.device_type, utils.device_module = "cpu", types.SimpleNamespace(**known | nothing | {
        "device_count": lambda: 1, "current_device": lambda: 0, "get_device_name": lambda *_: "cpu", "memory_stats": lambda *_: {},
        "get_device_properties": lambda *_: types.SimpleNamespace(total_memory=2**34)})
    dist.set_timeout = getattr(dist, "set_timeout", lambda *_, **__: None)


def trained(rank, backend):
    """Losses and parameters of this rank after two steps of the small Llama, and the peak of the first."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    on_a_cpu()
    from torch.distributed.fsdp import FSDPModule
    from torchtitan.config import CompileConfig
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.models.llama3.config_registry import llama3_debugmodel_ce_loss

    config = llama3_debugmodel_ce_loss()
    if backend:
        lowtide.torch.set_default(budget="75%", reserve="9MB", work=20_000, time=None)
        config.compile = CompileConfig(enable=True, backend=backend)
    layers = config.model_spec.model.layers = config.model_spec.model.layers[:2]
    for layer in layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()  # flex attention has no backward on a CPU
    training = config.training
    training.local_batch_size, training.seq_len, training.steps = 4, 128, 2
    training.disable_cuda_graphs, training.mixed_precision_param = True, "float32"
    config.parallelism.spmd_backend, config.activation_checkpoint, config.debug.seed = "partial_dtensor", None, 0
    config.checkpoint.enable = config.validator.enable = False
    random = torch.Generator().manual_seed(rank)

    def tokens():
        return torch.randint(2048, (4, 128), generator=random)

    data = [({"input": tokens()}, tokens()) for _ in range(3)]
    config.tokenizer = types.SimpleNamespace(build=lambda **_: None)
    config.dataloader = types.SimpleNamespace(build=lambda **_: data)
    trainer = config.build()
    (model,) = trainer.model_parts
    for unit in model.modules():
        if isinstance(unit, FSDPModule):
            unit.set_force_sum_reduction_for_comms(True)
    losses, peaks, step = [], [], trainer.forward_backward_step

    def measured(**given):
        held = [p.to_local() for p in model.parameters()]
        peaks.append(lowtide.torch.measure_peak(lambda: losses.append(step(**given)), held=held))
        return losses[-1]

    trainer.forward_backward_step = measured
    trainer.train()
    lowtide.torch.set_default()
    budget = lowtide.torch.reports()[-1].budget if backend else None
    return [loss.item() for loss in losses], [p.to_local().detach().clone() for p in model.parameters()], peaks[0], budget


def test_the_trainer_trains_the_same_on_two_ranks():
    with ranks(2) as call:
        eager = call(trained, None)
        planned = call(trained, "lowtide")
    for (losses, parameters, peak, _), (own_losses, own_parameters, own_peak, budget) in zip(eager, planned, strict=True):
        assert own_losses == losses and all(map(torch.equal, own_parameters, parameters))
        assert own_peak <= budget < peak


def test_the_configuration_of_the_page(monkeypatch):
    module = types.ModuleType("under_a_budget")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (block,) = blocks(ROOT / PAGE, "python")
    exec(compile(block, PAGE, "exec"), module.__dict__)
    config = module.llama3_debugmodel()
    from torchtitan.distributed.compile import _maybe_regional_inductor_backend

    with torch.device("meta"):
        model = config.model_spec.model.build()
    assert _maybe_regional_inductor_backend(model, config.compile.backend) == "lowtide"
    lowtide.torch.set_default()
