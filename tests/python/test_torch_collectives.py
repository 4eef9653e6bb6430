"""Collectives in planned graphs: tensor parallelism, and functional collectives in a model's code.

Two processes in one gloo group serve the tests of whole steps (rank_support.py).  The others need no second rank.
"""

import datetime
import os
import subprocess
import warnings

import pytest

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("this torch has no gloo", allow_module_level=True)

import lowtide.torch
import torch.distributed as dist
import torch.nn.functional as F
from lowtide.torch.pricing.costs import roofline
from lowtide.torch.ranks import collectives
from package_support import BINARY
from rank_models import Counted, trained
from rank_support import ranks
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.fx.experimental.proxy_tensor import make_fx

OPTIONS = {"work": 20_000, "time": None, "fallback": "error"}
WIDTH = 32


@pytest.fixture(scope="module")
def both():
    with ranks(2) as call:
        yield call


@pytest.fixture
def alone():
    """The first of two ranks, of which the other is not there."""
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", rank=0, world_size=2, store=fake.FakeStore())
    yield
    dist.destroy_process_group()


# ---- models


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, 8)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.up, self.down = Attention(), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + F.dropout(self.down(F.gelu(self.up(self.between(x)))), 0.1, self.training)


class SmallGPT(nn.Module):
    """Tensor parallel over all ranks."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(64, WIDTH), nn.Linear(WIDTH, 64)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        plan = dict.fromkeys(("attention.q", "attention.k", "attention.v", "up"), ColwiseParallel()) \
            | dict.fromkeys(("attention.out", "down"), RowwiseParallel())
        for block in self.blocks:
            parallelize_module(block, mesh, plan)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), tokens.flatten())

    def example(self, rank):
        return torch.randint(0, 64, (8, 32), generator=torch.Generator().manual_seed(5))


class Functional(nn.Module):
    """Parameters in shards that are gathered where they are used, and the other collectives in its code."""

    def __init__(self):
        super().__init__()
        self.shards = nn.ParameterList(nn.Parameter(torch.randn(WIDTH // 2, WIDTH) / 6) for _ in range(4))

    def forward(self, x):
        group = dist.group.WORLD
        for shard in self.shards:
            x = x + torch.tanh(F.gelu(x @ functional.all_gather_tensor_autograd(shard, 0, group)))
        with torch.no_grad():
            halves = functional.reduce_scatter_tensor_coalesced([x * 2, x + 1], "sum", [0, 0], group)
            spread = functional.all_to_all_single(x, None, None, group)
            first, mean = functional.broadcast(x, 0, group), functional.all_reduce(x.mean(0), "avg", group)
            beside = sum(t.mean() for t in (*halves, spread, first, mean))
        return x.square().mean() + beside

    def example(self, rank):
        return torch.randn(128, WIDTH, generator=torch.Generator().manual_seed(rank))


class Sharded(nn.Module):
    """Parameters that are DTensors in shards, each gathered where it is used, as SimpleFSDP does: more bytes than of activations."""

    def __init__(self):
        super().__init__()
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        self.weights = nn.ParameterList(nn.Parameter(distribute_tensor(torch.randn(WIDTH, WIDTH) / 6, mesh, [Shard(0)]))
                                        for _ in range(6))

    def forward(self, x):
        for weight in self.weights:
            x = x + torch.tanh(x @ weight.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial("avg")]))
        return x.square().mean()

    def example(self, rank):
        return torch.randn(4, WIDTH, generator=torch.Generator().manual_seed(rank))


MODELS = {"sharded": Sharded, "tensor parallel": SmallGPT, "functional": Functional}


def built(name):
    torch.manual_seed(0)
    return MODELS[name]()


def local(t):
    return getattr(t, "_local_tensor", t).detach().clone()


def smallest_peak(run, held, enough):
    """The smallest peak of runs until one is small enough: gloo's threads may hold what they have sent for a moment longer, on a busy
    machine in most of the runs.  All ranks make the same number of runs."""
    peaks = []
    for _ in range(40):
        peaks.append(lowtide.torch.measure_peak(run, held=held))
        most = torch.tensor([min(peaks) - enough])
        dist.all_reduce(most, dist.ReduceOp.MAX)
        if most.item() <= 0:
            break
    return min(peaks)


def steps_of(report):
    return [list(step) for step in report.plan.steps]


# ---- whole steps on two ranks


def _planned(rank, name, how, budget, cache="off"):
    """What a planned step does on a rank, beside the same step in eager execution."""
    os.environ["LOWTIDE_CACHE"] = "off" if rank else cache
    plain, module = built(name), built(name)
    x = plain.example(rank)
    options = OPTIONS | {"budget": budget}
    if how == "compile":
        step = torch.compile(module, backend="lowtide", options=options)
    else:
        with Counted() as planning:
            step = lowtide.torch.optimize(module, (x,), ranks=how, **options)
        assert not planning.calls
    expected, got = trained(plain, plain, x, rank), trained(module, step, x, rank)
    with Counted() as ours:
        step(x).backward()
    with Counted() as eager:
        plain(x).backward()
    module.zero_grad()
    report = lowtide.torch.reports()[-1]

    def run():
        step(x).backward()
        module.zero_grad()

    peak = smallest_peak(run, (module, x), report.budget)
    return {"exact": all(map(torch.equal, expected, got)), "peak": peak, "budget": report.budget, "own": report.own_peak,
            "hash": report.graph.hash, "steps": steps_of(report), "calls": communication(ours), "eager": communication(eager)}


def communication(counted):
    return {name: calls for name, calls in counted.calls.items() if name not in ("wait_tensor", "_wrap_tensor_autograd")}


@pytest.mark.parametrize("how", ["compile", "together"])
def test_tensor_parallel_training_is_exact_at_half_the_peak(both, how):
    for seen in both(_planned, "tensor parallel", how, "50%"):
        assert seen["exact"]
        assert seen["peak"] <= seen["budget"] <= seen["own"] / 2
        assert seen["calls"]["all_reduce"] == seen["eager"]["all_reduce"] > 0


def test_collectives_run_once_and_ranks_of_equal_inputs_plan_the_same(both, tmp_path):
    """The second time the cache of the first rank is warm, and that of the other one is not: no rank waits for a collective that
    another runs for its price, and both have the same plan, though no rank knows what another plans."""
    for _ in range(2):
        first, second = both(_planned, "functional", "compile", "80%", str(tmp_path))
        for seen in (first, second):
            assert seen["exact"]
            assert seen["peak"] <= seen["budget"]
            assert seen["calls"] == seen["eager"]
        assert first["hash"] == second["hash"] and first["steps"] == second["steps"]


def test_parameters_are_gathered_again_where_all_ranks_run_one_plan(both):
    again = both(_planned, "sharded", "together", "75%")
    for seen in again:
        assert seen["exact"]
        assert seen["peak"] <= seen["budget"]
        assert seen["calls"]["all_gather_into_tensor"] > seen["eager"]["all_gather_into_tensor"]
        reductions = [name for name in seen["eager"] if "reduce" in name]
        assert reductions and all(seen["calls"][name] == seen["eager"][name] for name in reductions)
    assert again[0]["steps"] == again[1]["steps"]


def _of_other_sizes(rank):
    """What comes of inputs of another size, on all ranks and then on the last one alone, where plans gather parameters again."""
    os.environ["LOWTIDE_CACHE"] = "off"
    plain, module = built("sharded"), built("sharded")
    step = lowtide.torch.optimize(module, (plain.example(rank),), ranks="together", budget="75%", **OPTIONS)
    larger = plain.example(rank).repeat(2, 1)
    exact = all(map(torch.equal, trained(plain, plain, larger, rank, 1), trained(module, step, larger, rank, 1)))
    steps = steps_of(lowtide.torch.reports()[-1])
    store = dist.distributed_c10d._get_default_store()
    before = store.timeout
    store.set_timeout(datetime.timedelta(seconds=2))
    try:
        if rank == 1:
            step(larger.repeat(2, 1))
        return exact, steps, ""
    except Exception as error:
        return exact, steps, f"{type(error).__name__}: {error}"
    finally:
        store.set_timeout(before)


def test_where_plans_gather_again_a_rank_plans_nothing_alone(both):
    (exact, steps, nothing), (also_exact, same, words) = both(_of_other_sizes)
    assert exact and also_exact and steps == same
    assert not nothing and "rank 0 did not come" in words


def _with_kept_losses(rank):
    """Steps where plans gather parameters again, and the first rank alone keeps losses with all that their backwards need: the warnings,
    and whether training is exact afterwards."""
    os.environ["LOWTIDE_CACHE"] = "off"
    plain, module = built("sharded"), built("sharded")
    x = plain.example(rank)
    step = lowtide.torch.optimize(module, (x,), ranks="together", budget="75%", **OPTIONS)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kept = []
        for _ in range(16):
            if rank == 0:
                kept.append(step(x))
            else:
                step(x)
        kept.clear()
        for _ in range(2):
            step(x).backward()
            module.zero_grad()
        exact = all(map(torch.equal, trained(plain, plain, x, rank), trained(module, step, x, rank)))
    return exact, [str(w.message) for w in said if issubclass(w.category, lowtide.torch.OverBudgetWarning)]


def test_where_plans_gather_again_a_rank_over_the_budget_warns_and_keeps_the_plan(both):
    (exact, words), (also_exact, nothing) = both(_with_kept_losses)
    assert exact and also_exact and not nothing
    assert any("no rank plans its graphs again alone" in text and "lowtide.torch.optimize" in text for text in words)


def _of_an_eager_collective(rank):
    """A graph that waits for a collective which runs when it is called, and hands out a DTensor."""
    os.environ["LOWTIDE_CACHE"] = "off"
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
    weight = nn.Parameter(torch.ones(WIDTH, WIDTH))

    def work(x, y):
        return DTensor.from_local(torch.tanh(x @ weight) * y, mesh, [Replicate()])

    compiled = torch.compile(work, backend="lowtide", options=OPTIONS | {"budget": "100%"})
    found = []
    for function in (work, compiled, compiled):
        weight.grad = None
        x = functional.all_reduce(torch.full((64, WIDTH), 0.01 * (1 + rank)), "sum", dist.group.WORLD)
        made = function(x, torch.full((64, WIDTH), 0.5))
        made.to_local().sum().backward()
        found.append((local(made), weight.grad))
    return [type(made).__name__, all(torch.equal(a, b) for one in found[1:] for a, b in zip(one, found[0], strict=True))]


def test_arguments_may_be_on_their_way_and_results_may_be_dtensors(both):
    assert both(_of_an_eager_collective) == [["DTensor", True]] * 2


def _whole_step(rank):
    """A step with its backward, its collectives and its update in one graph, as make_fx traces it."""
    os.environ["LOWTIDE_CACHE"] = "off"
    torch.manual_seed(0)
    given = [*(torch.randn(WIDTH // 2, WIDTH) / 6 for _ in range(6)), torch.randn(16, WIDTH)]

    def step(*given):
        *shards, x = given
        shards = [shard.detach().requires_grad_() for shard in shards]
        for shard in shards:
            x = x + torch.tanh(x @ functional.all_gather_tensor_autograd(shard, 0, dist.group.WORLD))
        loss = x.square().mean()
        return loss, *(shard - 0.1 * gradient for shard, gradient in zip(shards, torch.autograd.grad(loss, shards), strict=True))

    expected = step(*given)
    run = lowtide.torch.backend(make_fx(step, tracing_mode="fake")(*given), given, options=OPTIONS | {"budget": "85%"})
    exact = all(map(torch.equal, expected, run(*given)))
    budget = lowtide.torch.reports()[-1].budget
    return exact, smallest_peak(lambda: run(*given), given, budget) <= budget


def test_a_whole_step_that_make_fx_has_traced_is_planned(both):
    assert both(_whole_step) == [(True, True)] * 2


# ---- one rank


def graph_of(model, x, **options):
    """The graph of a step as it is planned."""
    before = len(lowtide.torch.reports())
    lowtide.torch.optimize(model, (x,), budget="100%", costs="a100", **OPTIONS, **options)
    assert len(lowtide.torch.reports()) == before + 1
    return lowtide.torch.reports()[-1].graph


def by_kind(graph, word):
    return [op for op in graph.ops if op.kind and op.kind.startswith(f"_c10d_functional.{word}")]


def test_a_wait_takes_the_place_of_what_its_collective_makes_and_reads_its_operands(alone):
    graph = graph_of(built("functional"), torch.randn(128, WIDTH))
    gathers, waits = by_kind(graph, "all_gather"), by_kind(graph, "wait")
    assert len(gathers) == 4 and len(waits) > 4
    for wait in waits:
        made = wait.inputs[0]
        collective = graph.op(graph.tensor(made).producer)
        assert (made, wait.outputs[0]) in [tuple(pair) for pair in wait.in_place]
        assert set(collective.inputs) <= set(wait.inputs)
        assert wait.time == 0 < collective.time
        assert not wait.recomputable and not collective.recomputable


def test_collectives_keep_the_order_of_the_model(alone):
    graph = graph_of(built("functional"), torch.randn(128, WIDTH))
    before = None
    for op in graph.ops:
        if op.kind == "lowtide.barrier" or op.kind.startswith("_c10d_functional.") and "wait" not in op.kind:
            assert before is None or before in op.after
            before = op.index


def test_a_gather_and_its_wait_are_repeatable_where_all_ranks_run_one_plan(alone):
    graph = lowtide.torch.capture(built("functional"), torch.randn(128, WIDTH))
    for op in by_kind(graph, ""):
        collective = graph.op(graph.tensor(op.inputs[0]).producer) if "wait" in op.kind else op
        assert op.recomputable == ("all_gather" in collective.kind)


def test_a_step_with_dtensors_is_captured(alone):
    model = built("tensor parallel")
    graph = lowtide.torch.capture(model, model.example(0), optimizer="adamw")
    parameters = [t for t in graph.tensors if t.role == "parameter"]
    assert sum(t.bytes for t in parameters) == sum(local(p).nbytes for p in model.parameters()) == graph.resident_bytes / 2
    assert "blocks.0.up.weight" in {t.name for t in parameters}
    assert len(by_kind(graph, "all_reduce")) == 18


def test_updates_in_the_backward_take_no_dtensors(alone):
    model = built("tensor parallel")
    with pytest.raises(lowtide.torch.CaptureError, match="update='backward' of parameters of which each rank holds a part"):
        lowtide.torch.optimize(model, (model.example(0),), budget="80%", update="backward", fallback="error",
                               optimizer=torch.optim.SGD(model.parameters()))


def test_a_captured_graph_is_priced_again_as_it_was(alone, tmp_path):
    """`convert --device` and `capture(costs=)` are one formula."""
    files = [str(tmp_path / name) for name in ("captured.graph.json", "priced.graph.json")]
    lowtide.torch.capture(built("functional"), torch.randn(128, WIDTH), costs="h100").save(files[0])
    subprocess.run([BINARY, "convert", *files, "--device", "h100"], check=True)
    captured, priced = map(lowtide.Graph.load, files)
    assert [op.time for op in by_kind(captured, "")] == [op.time for op in by_kind(priced, "")]


def test_a_wrapper_of_several_tensors_has_no_plan():
    from torch.testing._internal.two_tensor import TwoTensor

    def work(x):
        return torch.tanh(x).sum()

    compiled = torch.compile(work, backend="lowtide", options={"budget": "100%"})
    x = TwoTensor(torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True))
    with pytest.warns(lowtide.torch.LowtideWarning, match="TwoTensor, a subclass of Tensor that wraps several tensors"):
        compiled(x)


def test_bytes_that_collectives_send(alone):
    """Of n bytes a ring of two ranks sends half from each, twice where it reduces and gathers."""
    from lowtide.torch.tensors.operators import Kernel

    ops, group = torch.ops._c10d_functional, dist.group.WORLD.group_name
    whole, half = torch.empty(64, dtype=torch.uint8), torch.empty(32, dtype=torch.uint8)

    def sent(op, args, read, written):
        return collectives.bytes_sent(Kernel(op.default, args, {}, [read], [written], written))

    assert sent(ops.all_reduce, (whole, "sum", group), whole, whole.clone()) == 64
    assert sent(ops.all_gather_into_tensor, (half, 2, group), half, whole) == 32
    assert sent(ops.reduce_scatter_tensor, (whole, "sum", 2, group), whole, half) == 32
    assert sent(ops.all_to_all_single, (whole, [32, 32], [32, 32], group), whole, whole.clone()) == 32
    assert sent(ops.broadcast, (whole, 0, group), whole, whole.clone()) == 64
    assert sent(ops.all_gather_into_tensor, (half, 8, "no such group"), half, whole) == 56
    slow, fast = (lowtide_device(name) for name in ("l4", "h100"))
    large = torch.empty(1 << 28, dtype=torch.uint8, device="meta")
    kernel = Kernel(ops.all_reduce.default, (large, "sum", group), {}, [large], [torch.empty_like(large)], large)
    assert roofline(slow)(kernel) > roofline(fast)(kernel) > (1 << 28) / fast.peer_link[0] * 1e9


def lowtide_device(name):
    from lowtide.frontend.roofline import DEVICES

    return DEVICES[name]
