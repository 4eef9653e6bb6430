"""`step` of models that ranks share: equal to a loop with the optimizer's own step, within the budget, and what is refused.

Two processes in one gloo group serve all tests of this file (rank_support.py).
"""

import os
import warnings

import pytest

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("this torch has no gloo", allow_module_level=True)

import lowtide.torch
import torch.distributed as dist
from lowtide.frontend.planning.sharing import GraphToPlan
from lowtide.torch.graphs.sharded_step import Run, ShardedStep
from lowtide.torch.ranks.gathered import Unit
from lowtide.torch.step_errors import UnknownParameter, UpdateError
from rank_models import Net, built
from rank_support import ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

OPTIONS = {"costs": "cpu", "work": 20_000, "time": None}


@pytest.fixture(scope="module")
def both():
    with ranks(2) as call:
        yield call


def shared(module, kind):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    if kind == "FSDP2":
        for block in module.blocks:
            fully_shard(block)
        return fully_shard(module)
    if kind == "tensor parallel":
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        for block in module.blocks:
            parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
        return module
    views = {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.02} if "views" in kind else {}
    return DistributedDataParallel(module, **views)


OPTIMIZERS = {"SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01)}


def local(t):
    return getattr(t, "_local_tensor", t).detach()


def doubled(model, x):
    loss = model(x)
    return 2 * loss, loss


def _trained(rank, kind, name, loss):
    """Whether losses, parameters and state are those of a loop; warnings; and the measured peak, with buckets, and its budget."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    module, plain = shared(module, kind), shared(plain, kind)
    optimizer, ordinary = (OPTIMIZERS[name](m.parameters()) for m in (module, plain))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        step = lowtide.torch.step(module, optimizer, (x,), loss, budget="80%", **OPTIONS)
        expected, got = [], []
        torch.manual_seed(rank)
        for _ in range(3):
            results = loss(plain, x) if loss else [plain(x)]
            results[0].backward()
            ordinary.step()
            ordinary.zero_grad()
            expected += results
        torch.manual_seed(rank)
        for _ in range(3):
            got += step(x) if loss else [step(x)]
    states = [[local(t) for p in m.parameters() for t in o.state[p].values()] for m, o in ((plain, ordinary), (module, optimizer))]
    seen = [list(map(local, [*results, *m.parameters()])) for m, results in ((plain, expected), (module, got))]
    exact = all(map(torch.equal, *seen)) and all(map(torch.equal, *states)) and len(states[0]) == len(states[1])
    held = list(map(local, module.parameters()))
    buckets = sum(t.nbytes for t in held) if "DDP" in kind else 0
    peak = lowtide.torch.measure_peak(lambda: step(x), held=(held, states[1], x))
    words = [str(w.message) for w in said if issubclass(w.category, lowtide.torch.LowtideWarning)]
    return {"exact": exact, "said": words, "peak": peak + buckets, "budget": step.report.budget,
            "gradients": [p.grad for p in module.parameters() if p.grad is not None]}


@pytest.mark.parametrize(("kind", "name", "loss"), [
    ("DDP", "SGD", None), ("DDP, views", "AdamW", doubled), ("tensor parallel", "AdamW", doubled), ("FSDP2", "AdamW", None)])
def test_a_step_of_a_shared_model_is_that_of_a_loop(both, kind, name, loss):
    for found in both(_trained, kind, name, loss):
        assert found["exact"] and not found["said"] and not found["gradients"], found
        assert found["peak"] <= found["budget"], found


class Wide(nn.Module):
    """Its updates take more than its backward."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 256)

    def forward(self, x):
        return self.layer(x).square().mean()


def _refused(rank, kind, how):
    """What a step raises, and whether the model trains afterwards as ever."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Wide if how == "one update" else Net, rank)
    x = torch.randn(4, 256) if how == "one update" else x
    module, plain = (shared(m, kind) if hasattr(m, "blocks") or kind != "FSDP2" else fully_sharded(m) for m in (module, plain))
    trainable = list(module.parameters())
    optimizer = torch.optim.AdamW(trainable[1:] if how == "unknown" else trainable)
    options = {"budget": "5%" if how == "budget" and rank else "100%"}
    if how == "host":
        options |= {"state_home": "host", "techniques": "default,offload"}
    if how == "loss":
        options["loss"] = doubled
    words = ""
    try:
        step = lowtide.torch.step(module, optimizer, (x,), **options, **OPTIONS)
        if how == "gradients":
            module(x).backward()
        if how == "unreduced" and kind == "FSDP2":
            module.set_requires_gradient_sync(False)
            step(x)
        elif how == "unreduced":
            with module.no_sync():
                step(x)
        else:
            step(x)
    except (lowtide.torch.BudgetError, lowtide.torch.CaptureError, UpdateError, UnknownParameter) as error:
        words = f"{type(error).__name__}: {error}"
    if kind == "FSDP2":
        module.set_requires_gradient_sync(True)
    module.zero_grad()
    found = []
    for model in (plain, module):
        torch.manual_seed(rank)
        model(x).backward()
        found.append([local(p.grad) for p in model.parameters()])
    return words, all(map(torch.equal, *found))


def fully_sharded(module):
    from torch.distributed.fsdp import fully_shard

    return fully_shard(module)


@pytest.mark.parametrize(("kind", "how", "words"), [
    ("DDP", "budget", "BudgetError: "),
    ("DDP", "one update", "gradients, the optimizer's state and one update take"),
    ("DDP", "unknown", "UnknownParameter: step: no optimizer knows module.blocks.0.up.weight"),
    ("DDP", "gradients", "UpdateError: step makes its own gradients"),
    ("DDP", "unreduced", "UpdateError: step would update each rank by gradients of its own"),
    ("DDP", "host", "CaptureError: state_home='host' of a model that ranks share"),
    ("FSDP2", "budget", "BudgetError: "),
    ("FSDP2", "unreduced", "UpdateError: step would update each rank by gradients of its own"),
    ("FSDP2", "loss", "CaptureError: step takes a model under FSDP2 without a loss function")])
def test_what_is_no_step_is_refused_on_all_ranks_and_the_model_trains_as_ever(both, kind, how, words):
    for said, trains in both(_refused, kind, how):
        assert words in said and trains, said


def _wrapped_later(rank, when):
    """What a step of a plain module raises while that and another one, or the other one alone, are wrapped."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, other, x = built(Net, rank)
    wrapped = DistributedDataParallel(module) if when == "before" else None
    step = lowtide.torch.step(module, torch.optim.SGD(module.parameters(), 0.1), (x,), budget="100%", **OPTIONS)
    others = DistributedDataParallel(other)
    if when == "later":
        step(x)
        wrapped = DistributedDataParallel(module)
    try:
        step(x)
        words = ""
    except UpdateError as error:
        words = str(error)
    del wrapped, others
    return words


@pytest.mark.parametrize("when", ["before", "later", "never"])
def test_a_step_of_a_plain_module_does_not_run_while_that_is_wrapped(both, when):
    for words in both(_wrapped_later, when):
        assert ("planned for the module without it" in words) == (when != "never"), words


def test_one_update_after_the_backward_is_a_moment_of_a_step_under_fsdp2():
    unit = Unit(always=50, gradients=30, whole=100, flat=100, reduced=200)
    for update in (0, 1000):
        step = ShardedStep([unit], {}, 8, 1, update)
        step.add(Run(0, 0, 0, 0, {}))
        _, between = step.passes({0: GraphToPlan(None, 7, 0)})
        assert max([moment.others for moment in between if not moment.waiting], default=0) == (50 + 8 + 30 + 1000 + 7 if update else 0)
