"""One plan on all ranks, and modules under DistributedDataParallel: exact, within the budget, and one failure is all ranks'.

Two processes in one gloo group serve all tests of this file (rank_support.py).
"""

import contextlib
import copy
import datetime
import os
import sys
import time
import types
import warnings
from pathlib import Path
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("this torch has no gloo", allow_module_level=True)

import lowtide.torch
import torch.distributed as dist
from lowtide.torch.ranks.agreement import Agreement
from lowtide.torch.tracing.scalars import NotOpen
from rank_models import Net, built, trained
from rank_support import ranks
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from blocks import ROOT
from blocks import blocks as blocks_of_page

PAGE = "docs/how-to/train-on-several-gpus.md"
OPTIONS = {"costs": "cpu", "work": 20_000, "time": None}


@pytest.fixture(scope="module")
def both():
    with ranks(2) as call:
        yield call


# ---- one plan


def _planned(rank, options, rows, attempts=1):
    """What `optimize` on all ranks makes of a model, with this rank's options and rows: its report, or the error."""
    os.environ["LOWTIDE_CACHE"] = "off"
    found = []
    for _ in range(attempts):
        torch.manual_seed(0)
        module = Net()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                lowtide.torch.optimize(module, (torch.randn(rows[rank], 32),), ranks="together", **options[rank])
            except Exception as error:
                found.append((type(error).__name__, str(error)))
                continue
        report = lowtide.torch.reports()[-1]
        found.append((report.budget, report.peak, report.duration, [str(w.message) for w in said]))
    return found[-1]


def test_ranks_take_the_times_of_the_first_and_plan_the_same(both):
    first, second = both(_planned, [{"budget": "60%"}] * 2, (128, 128))  # by times that each has measured, and by the clock
    assert first == second and first[3] == []


def test_the_smallest_budget_and_the_largest_reserve_are_those_of_all(both):
    alone, _ = both(_planned, [{"budget": "60%"} | OPTIONS] * 2, (128, 128))
    first, second = both(_planned, [{"budget": "90%"} | OPTIONS, {"budget": "60%"} | OPTIONS], (128, 128))
    assert first[:3] == second[:3] == alone[:3]
    first, second = both(_planned, [{"budget": "100%", "reserve": n} | OPTIONS for n in (1000, 5000)], (128, 128))
    assert first == second
    assert both(_planned, [{"budget": "100%", "reserve": 5000} | OPTIONS] * 2, (128, 128)) == [first, second]


@pytest.mark.parametrize(("options", "kind", "words"), [
    ({"budget": "5%"}, "BudgetError", "no plan keeps this step within"),
    ({"budget": "60%", "order": "given"}, "RankError", "rank 1 is given order='given' and rank 0 order='free'"),
    ({"budget": "60%", "inner": "none"}, "RankError", "rank 1 failed with ValueError: inner must be")])
def test_a_failure_of_one_rank_is_one_of_all(both, options, kind, words):
    (first, text), (second, _) = both(_planned, [{"budget": "60%"} | OPTIONS, OPTIONS | options], (128, 128))
    assert first == kind and second in (kind, "ValueError") and words in text
    first, second = both(_planned, [{"budget": "60%"} | OPTIONS] * 2, (128, 128))  # the next call is a new one
    assert first == second and first[3] == []


def test_different_graphs_are_refused_on_all_ranks(both):
    budget = {"budget": "60%", "fallback": "error"} | OPTIONS
    results = both(_planned, [budget] * 2, (128, 64))
    assert {kind for kind, _ in results} == {"CaptureError"}
    assert all("rank 1 has traced another graph than rank 0" in text for _, text in results)


def _without_a_call(rank):
    """The steps of plans that torch.compile and `optimize` make on each rank alone."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    torch.compile(module, backend="lowtide", options={"budget": "60%", "costs": "cpu"})(x).backward()
    lowtide.torch.optimize(plain, (x,), budget="60%", costs="cpu")
    return [(r.duration, r.peak, r.bound) for r in lowtide.torch.reports()[-2:]]


def test_ranks_that_plan_alone_plan_equal_graphs_the_same(both):
    first, second = both(_without_a_call)
    assert first == second


# ---- DistributedDataParallel

ORDERS = {
    "optimize around": lambda module, x, options, ddp: lowtide.torch.optimize(DistributedDataParallel(module, **ddp), (x,), **options),
    "optimize within": lambda module, x, options, ddp: DistributedDataParallel(lowtide.torch.optimize(module, (x,), **options), **ddp),
    "optimize within, together": lambda module, x, options, ddp: DistributedDataParallel(
        lowtide.torch.optimize(module, (x,), ranks="together", **options), **ddp),
    "compile around": lambda module, x, options, ddp: torch.compile(DistributedDataParallel(module, **ddp), backend="lowtide",
                                                                    options=options),
    "compile within": lambda module, x, options, ddp: DistributedDataParallel(
        torch.compile(module, backend="lowtide", options=options), **ddp),
}


def _step_of(order, module, x, budget, ddp, **options):
    return ORDERS[order](module, x, OPTIONS | {"budget": budget} | options, ddp)


def _under_ddp(rank, order, ddp):
    """Exactness, warnings, the measured peak with buckets, its budget, and the captured graphs, of steps at 60 %."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    names = list(module.state_dict())
    before = len(lowtide.torch.reports())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        step = _step_of(order, module, x, "60%", ddp)
        plain = DistributedDataParallel(plain, **ddp)
        exact = all(map(torch.equal, trained(plain, plain, x, rank, 3), trained(module, step, x, rank, 3)))
        for p in module.parameters():
            p.grad = None
        peak = lowtide.torch.measure_peak(lambda: step(x).backward(), held=(module, x))
    buckets = sum(p.numel() * p.element_size() for p in module.parameters())
    report = lowtide.torch.reports()[-1]
    words = [str(w.message) for w in said if issubclass(w.category, lowtide.torch.LowtideWarning)]
    return exact, words, peak + buckets, report.budget, report.resident >= buckets, len(lowtide.torch.reports()) - before, \
        names == list(module.state_dict())


@pytest.mark.parametrize(("order", "ddp"), [
    *((order, {}) for order in ORDERS),
    ("optimize around", {"static_graph": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 0.02}),
    ("optimize within", {"find_unused_parameters": True, "bucket_cap_mb": 0.02}),
    ("compile around", {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.02})])
def test_a_module_under_ddp_is_exact_within_a_share_of_the_step_with_its_buckets(both, order, ddp):
    for exact, words, peak, budget, counted, graphs, same_names in both(_under_ddp, order, ddp):
        assert exact and words == [] and counted and same_names
        assert peak <= budget and graphs == 1


def _accumulated(rank, order):
    """Whether two microbatches, the first without a reduction, give the same gradients as without a plan."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    step, plain = _step_of(order, module, x, "80%", {}), DistributedDataParallel(plain)
    parallel = step if isinstance(step, DistributedDataParallel) else step._orig_mod
    found = []
    for wrapped, run in ((plain, plain), (parallel, step)):
        torch.manual_seed(rank)
        for synchronized in (False, True, False, True):
            with contextlib.nullcontext() if synchronized else wrapped.no_sync():
                run(x).backward()
        found.append([p.grad for p in wrapped.parameters()])
    return all(map(torch.equal, *found))


@pytest.mark.parametrize("order", ["optimize around", "compile around"])
def test_accumulation_without_reduction_is_exact(both, order):
    with_warnings = both(_accumulated, order)
    assert with_warnings == [True, True]


SMALL = {"bucket_cap_mb": 0.02}  # several buckets of Net


def _traced(rank, order):
    """The operators of a backward, with "bucket" where one leaves."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, _, x = built(Net, rank)
    step = _step_of(order, module, x, "80%", SMALL)
    parallel = step if isinstance(step, DistributedDataParallel) else step._orig_mod
    seen = []

    def leaves(_, bucket):
        seen.append("bucket")
        reduced = dist.all_reduce(bucket.buffer().div_(2), async_op=True).get_future()
        return reduced.then(lambda future: future.value()[0])

    parallel.register_comm_hook(None, leaves)
    for _ in range(2):  # after the first step DDP sorts its buckets
        step(x).backward()
    loss = step(x)
    seen.clear()
    with Operators(seen):
        loss.backward()
    return seen


class Operators(TorchDispatchMode):
    """Lists the operators that compute something."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.gelu, torch.ops.aten.gelu_backward):
            self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("order", ["optimize around", "optimize within", "compile around"])
def test_the_first_bucket_leaves_before_half_of_the_backward(both, order):
    for seen in both(_traced, order):
        buckets = [i for i, name in enumerate(seen) if name == "bucket"]
        assert len(buckets) > 2 and buckets[0] < len(seen) / 2 and buckets[1] < len(seen) - 3


def _more_than_once(rank):
    """Backwards of a kept graph, and of the input, in parts: whether gradients are those without a plan."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    module.eval(), plain.eval()
    x.requires_grad_()
    step, plain = _step_of("optimize around", module, x, "90%", SMALL), DistributedDataParallel(plain, **SMALL)
    found = []
    for model in (plain, step):
        loss = model(x)
        loss.backward(retain_graph=True)
        with model.no_sync():
            loss.backward()
        model(x).backward()
        with torch.no_grad():
            model(x)
        found.append([x.grad.clone(), *(p.grad.clone() for p in model.parameters())])
        x.grad = None
    return all(map(torch.equal, *found))


def test_a_kept_graph_runs_in_parts_again(both):
    assert all(both(_more_than_once))


def _refused_twice(rank, order):
    """What becomes of two calls within DDP, whose buckets no plan in the budget has room for."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, _, x = built(Net, rank)
    step = _step_of(order, module, x, "60%", {})
    if order == "compile within":
        step.module(x).backward()
        module.zero_grad()
    found = []
    with mock.patch("lowtide.torch.ranks.buckets.bucket_bytes", return_value=1 << 40):
        for _ in range(2):
            try:
                step(x)
                found.append("")
            except lowtide.torch.BudgetError:
                found.append("refused")
    return found


@pytest.mark.parametrize("order", ["optimize within", "optimize within, together", "compile within"])
def test_a_call_after_a_refused_one_is_refused_as_well(both, order):
    assert both(_refused_twice, order) == [["refused"] * 2] * 2


def _closed_on_one(rank, function, errors):
    """What becomes of three calls within DDP of a graph for all sizes, which rank 1 cannot compile again at the first of them: the error,
    or how often the ranks have planned together."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, _, x = built(Net, rank)
    run = lowtide.torch.optimize(module, (x,), ranks="together", budget="8MB", **OPTIONS)
    run(x[:96]).backward()
    module.zero_grad()
    parallel = DistributedDataParallel(run)
    found = []
    for attempt in range(3):
        fails = mock.patch(f"lowtide.torch.{function}", side_effect=errors) if (rank, attempt) == (1, 0) else contextlib.nullcontext()
        with fails, mock.patch.object(Agreement, "of", wraps=Agreement.of) as together:
            try:
                parallel(x[:96]).backward()
                found.append(together.call_count)
            except Exception as error:
                found.append(type(error).__name__)
    return found


def test_where_one_rank_cannot_keep_sizes_open_all_go_on_with_the_code_that_they_have(both):
    assert both(_closed_on_one, "tracing.open_sizes.OpenSizes.arguments", NotOpen) == [[1, 0, 0]] * 2


def test_ranks_plan_again_together_where_one_has_no_code_of_their_plan(both):
    assert both(_closed_on_one, "graphs.captured_graph.emit", ValueError) == [["CaptureError", 1, 0]] * 2


def _reserved(rank):
    """The report of a plan within DDP with a reserve of the user's own."""
    os.environ["LOWTIDE_CACHE"] = "off"
    module, _, x = built(Net, rank)
    buckets = sum(p.numel() * p.element_size() for p in module.parameters())
    step = _step_of("optimize within", module, x, "100%", {}, reserve=buckets)
    before = len(lowtide.torch.reports())
    with warnings.catch_warnings():
        warnings.simplefilter("error", lowtide.torch.OverBudgetWarning)
        step(x).backward()
    return lowtide.torch.reports()[-1].resident == buckets, len(lowtide.torch.reports()) - before


def test_a_reserve_stands_for_the_buckets(both):
    assert both(_reserved) == [(True, 0)] * 2


def _refused(rank):
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    parallel = DistributedDataParallel(module)
    words = ""
    try:
        lowtide.torch.optimize(parallel, (x,), budget="5%", **OPTIONS)
    except lowtide.torch.BudgetError as error:
        words = str(error)
    plain = DistributedDataParallel(plain)
    return words, all(map(torch.equal, trained(plain, plain, x, rank), trained(module, parallel, x, rank)))


def test_a_module_under_ddp_that_is_refused_trains_as_ever(both):
    for words, trains in both(_refused):
        assert "no plan keeps this step" in words and trains


def _page(rank):
    """The peak and the budget of the page's plan, and whether both ranks end with the same parameters."""
    os.environ["LOWTIDE_CACHE"] = "off"
    torch.manual_seed(rank)
    module = types.ModuleType("page_of_docs")
    sys.modules[module.__name__] = module
    for block in blocks_of_page(ROOT / PAGE, "python"):
        exec(compile(block, PAGE, "exec"), module.__dict__)
    report = lowtide.torch.reports()[-1]
    return report.peak, report.budget, [p.detach().sum().item() for p in module.model.parameters()]


def test_the_how_to_runs(both):
    first, second = both(_page)
    assert first == second and first[0] <= first[1]


# ---- four ranks, and ranks that fail


def _steps(rank):
    """The plan of a DDP model on four ranks, and whether training is exact.

    The order in which gloo adds four numbers depends on their place in a bucket.  DDP sorts buckets by the order in which gradients come,
    which a plan may change, unless parameters may be unused.
    """
    os.environ["LOWTIDE_CACHE"] = "off"
    module, plain, x = built(Net, rank)
    ddp = SMALL | {"find_unused_parameters": True}
    step, plain = _step_of("optimize around", module, x, "60%", ddp), DistributedDataParallel(plain, **ddp)
    report = lowtide.torch.reports()[-1]
    exact = all(map(torch.equal, trained(plain, plain, x, rank), trained(module, step, x, rank)))
    return (report.peak, report.duration), exact


def _one_fails(rank, who, how, seconds):
    """What becomes of a call on all ranks where one of them is killed, refused, interrupted or late."""
    os.environ["LOWTIDE_CACHE"] = "off"
    dist.distributed_c10d._get_default_store().set_timeout(datetime.timedelta(seconds=seconds))
    module, _, x = built(Net, rank)
    options = OPTIONS | {"budget": "60%"}
    searching = contextlib.nullcontext()
    if rank == who:
        if how == "killed":
            os._exit(1)
        if how == "interrupted":
            searching = mock.patch.object(lowtide, "plan", side_effect=KeyboardInterrupt)
        if how == "refused":
            options["budget"] = "5%"
        if how == "late":
            time.sleep(1)
    try:
        with searching:
            lowtide.torch.optimize(module, (x,), ranks="together", **options)
    except (Exception, KeyboardInterrupt) as error:
        return type(error).__name__, str(error)
    return "planned", str(lowtide.torch.reports()[-1].duration)


def test_four_ranks_train_exactly_by_one_plan_and_fail_together():
    with ranks(4) as call:
        results = call(_steps)
        assert len({plan for plan, _ in results}) == 1 and all(exact for _, exact in results)
        assert {kind for kind, _ in call(_one_fails, 2, "refused", 60)} == {"BudgetError"}
        assert len(set(call(_one_fails, 3, "late", 60))) == 1  # all have planned the same
        found = call(_one_fails, 0, "interrupted", 60)
        assert [kind for kind, _ in found] == ["KeyboardInterrupt", "RankError", "RankError", "RankError"]
        assert all(text == "rank 0 was cancelled" for _, text in found[1:])
        found = call(_one_fails, 2, "killed", 2, gone=2)
        assert [kind for kind, _ in found if kind] == ["RankError"] * 3
        assert all(text.startswith("rank 2 did not come to") for _, text in found if text)


def test_a_process_without_ranks_plans_alone():
    module = Net()
    x = torch.randn(8, 32)
    optimized = lowtide.torch.optimize(copy.deepcopy(module), (x,), budget="100%", ranks="together", **OPTIONS)
    assert torch.equal(optimized.eval()(x), module.eval()(x))
    with pytest.raises(ValueError, match="ranks must be 'together', 'alone', a process group or None, not 'all'"):
        lowtide.torch.optimize(module, (x,), budget="90%", ranks="all")
