"""Models that several ranks train: what is refused, what works, and that pricing talks to nobody.

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
from rank_models import Block, Counted, Net, built, trained
from rank_support import ranks
from torch import nn

OPTIONS = {"costs": "cpu", "work": 20_000, "time": None}


@pytest.fixture(scope="module")
def both():
    with ranks(2) as call:
        yield call


class Summed(nn.Module):
    """Blocks with a sum over all ranks after each."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        from torch.distributed._functional_collectives import all_reduce

        for block in self.blocks:
            x = all_reduce(torch.tanh(block(x)), "sum", dist.group.WORLD) / 2
        return x.square().mean()


# ---- collectives in the graph


def _with_collectives(rank, folder, cold):
    os.environ["LOWTIDE_CACHE"] = "off" if rank == cold else folder
    module, plain, x = built(Summed, rank)
    with Counted() as pricing:
        step = lowtide.torch.optimize(module, (x,), budget="80%", work=20_000, time=None, fallback="error")
    with Counted() as a_step:
        step(x).backward()
    module.zero_grad()
    expected, got = trained(plain, plain, x, rank), trained(module, step, x, rank)
    return dict(pricing.calls), dict(a_step.calls), all(map(torch.equal, expected, got))


@pytest.mark.parametrize("cold", [None, 1])
def test_pricing_runs_no_collective_and_a_step_each_once(both, tmp_path_factory, cold):
    folder = str(tmp_path_factory.getbasetemp() / "ranks-cache")  # the second case finds what the first measured
    for pricing, a_step, exact in both(_with_collectives, folder, cold):
        assert pricing == {}
        assert a_step == {"all_reduce": 6, "wait_tensor": 6}
        assert exact


# ---- wrapped modules


def _wrapped(module, kind):
    from torch.distributed._composable.replicate import replicate
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.nn.parallel import DistributedDataParallel

    if kind == "DDP":
        return DistributedDataParallel(module)
    if kind == "DDP within":
        module.blocks[1] = DistributedDataParallel(module.blocks[1])
    elif kind == "replicate":
        replicate(module)
    elif kind.startswith("FSDP1"):
        names = kind != "FSDP1, flat"
        if kind == "FSDP1 within":
            module.head = FullyShardedDataParallel(module.head, device_id=torch.device("cpu"), use_orig_params=True)
        else:
            return FullyShardedDataParallel(module, device_id=torch.device("cpu"), use_orig_params=names)
    elif kind == "FSDP2":
        for block in module.blocks:
            fully_shard(block)
        fully_shard(module)
    elif kind == "FSDP2 within":
        fully_shard(module.blocks[2])
    else:
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        parallelize_module(module.blocks[0], mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return module


def _refused(rank, kind):
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    module, plain = _wrapped(module, kind), _wrapped(plain, kind)
    parameters = {name: id(p) for name, p in module.named_parameters()}
    words = []
    for attempt in (lambda: lowtide.torch.optimize(module, (x,), budget="50%"),
                    lambda: lowtide.torch.optimize(module, budget="50%"),
                    lambda: lowtide.torch.capture(module, (x,))):
        try:
            attempt()
        except lowtide.torch.CaptureError as error:
            words.append(str(error))
    same = parameters == {name: id(p) for name, p in module.named_parameters()}
    return words, same and all(map(torch.equal, trained(plain, plain, x, rank), trained(module, module, x, rank)))


@pytest.mark.parametrize(("kind", "word"), [
    ("DDP within", "'blocks.1' is under DistributedDataParallel; optimize the plain module and wrap what that returns"),
    ("replicate", "under replicate; optimize the plain module"),
    ("FSDP1", r"this one is under FSDP \(FullyShardedDataParallel\); give each of its blocks a plan of its own"),
    ("FSDP1, flat", r"this one is under FSDP \(FullyShardedDataParallel\)"),
    ("FSDP1 within", r"'head' is under FSDP \(FullyShardedDataParallel\)"),
    ("FSDP2 within", r"'blocks.2' is under FSDP2 \(fully_shard\); optimize the model that it is a part of")])
def test_a_module_that_ranks_share_is_refused_and_left_as_it_was(both, kind, word):
    import re

    for words, trains_as_ever in both(_refused, kind):
        assert len(words) == 3 and all(re.search(word, text) for text in words), words
        assert trains_as_ever


def _compiled(rank, kind):
    """What torch.compile makes of it: exactness, and warnings."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    options = OPTIONS | {"budget": "4MB" if "FSDP" in kind else "90%"}
    blocks = kind == "blocks, then FSDP2"
    if blocks:
        for block in module.blocks:
            block.compile(backend="lowtide", options=options)
    module, plain = (_wrapped(m, "FSDP2" if blocks else kind) for m in (module, plain))
    before = len(lowtide.torch.reports())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        step = module if blocks else torch.compile(module, backend="lowtide", options=options)
        got = trained(module, step, x, rank)
    exact = all(map(torch.equal, trained(plain, plain, x, rank), got))
    return exact, len(lowtide.torch.reports()) - before, [str(w.message) for w in said if "lowtide" in str(w.message)]


@pytest.mark.parametrize("kind", ["DDP", "replicate", "FSDP1", "FSDP2", "blocks, then FSDP2", "tensor parallel"])
def test_torch_compile_of_what_ranks_share_is_exact(both, kind):
    for exact, planned, said in both(_compiled, kind):
        assert exact
        assert planned > 0
        assert sum("parameters that FSDP has gathered" in words for words in said) == ("FSDP1" in kind)


# ---- operators of the user's own

runs = 0


@torch.library.custom_op("lowtide_ranks::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    global runs
    runs += 1
    return 2 * x


twice.register_fake(torch.empty_like)
twice.register_autograd(lambda context, gradient: 2 * gradient)


@torch.library.custom_op("lowtide_ranks::note", mutates_args=())
def note(x: torch.Tensor, group_name: str) -> torch.Tensor:
    global runs
    runs += 1
    return x.clone()


note.register_fake(lambda x, group_name: torch.empty_like(x))
note.register_autograd(lambda context, gradient: (gradient, None))


class Own(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.layers, self.name = nn.ModuleList(nn.Linear(32, 32) for _ in range(4)), name

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
            x = twice(x) if self.name == "twice" else note(x, "group")
        return x.square().mean()


def _own(rank, name):
    """How often an operator of one's own runs for its price, and in a step."""
    global runs
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(lambda: Own(name), rank)
    runs = 0
    step = lowtide.torch.optimize(module, (x,), budget="75%", fallback="error")
    for_its_price, runs = runs, 0
    loss = step(x)
    loss.backward()
    in_a_step, expected = runs, plain(x)
    expected.backward()
    exact = torch.equal(loss, expected) and all(
        torch.equal(p.grad, q.grad) for p, q in zip(module.parameters(), plain.parameters(), strict=True))
    return for_its_price, in_a_step, exact


@pytest.mark.parametrize("name", ["twice", "note"])
def test_operators_that_may_communicate_run_only_in_steps(both, name):
    assert both(_own, name) == [(0, 4, True)] * 2
    for_its_price, _, exact = _own(0, name)  # this process is alone
    assert exact and (for_its_price > 0) == (name == "twice")


def test_operators_without_a_result_run_only_in_steps():
    """A check of made-up numbers would fail, on a GPU for good."""
    from lowtide.torch.tensors import effects

    assert not effects.may_be_priced(torch.ops.aten._assert_async.msg)
    assert not effects.may_be_priced(torch.ops._c10d_functional.wait_tensor.default)
    assert effects.may_be_priced(torch.ops.aten.mm.default)


def test_collectives_are_priced_by_the_link():
    from lowtide.frontend.roofline import DEVICES, collective_ns

    slow, fast = DEVICES["rtx4090"], DEVICES["h100"]
    assert collective_ns(slow, 1 << 30) > collective_ns(fast, 1 << 30) > (1 << 30) / fast.peer_link[0] * 1e9
    assert collective_ns(fast, 0) > 0


def test_data_parallel_is_refused():
    with pytest.raises(lowtide.torch.CaptureError, match="DataParallel, which runs copies of it in threads"):
        lowtide.torch.optimize(nn.DataParallel(Net()), (torch.randn(4, 32),), budget="50%")
