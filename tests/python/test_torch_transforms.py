"""Plans that change the graph run: regions in parts, the backward in the forward; what they compute, what they hold.

In double precision parts give what the whole gives but for the last digits, so a wrong slice, weight or sum is far
outside of what is compared.
"""

import os

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch_run
from lowtide.frontend.planning import as_code
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.tensors.operators import Kernel
from lowtide.torch.transforms import transformed as transformed_module
from lowtide.torch.transforms.parts import PartCall
from torch import nn
from torch.nn import functional as F
from torch_run import alone, fresh, gradients, in_parts, twin
from torch_zoo import ZOO

import lowtide

SLACK = 64  # bytes of scalars that the autograd engine makes beside the graph
LONG = int(os.environ.get("LOWTIDE_TEST_SCALE", "1")) >= 10
REGIONS = 3 if LONG else 2  # of each model that are tried; random modules try any (test_torch_random.py)


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Words(nn.Module):
    """Guesses the next of many words: its peak is the loss head."""

    def __init__(self, words=2048, width=32, dropout=0.0):
        super().__init__()
        self.embed, self.up, self.down = nn.Embedding(words, width), nn.Linear(width, 64), nn.Linear(64, width)
        self.head, self.dropout = nn.Linear(width, words), dropout

    def forward(self, x, y):
        h = self.embed(x)
        h = h + self.down(F.dropout(F.gelu(self.up(h)), self.dropout, self.training))
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


def words(**options):
    torch.manual_seed(0)
    return Words(**options), (torch.randint(0, 2048, (8, 16)), torch.randint(0, 2048, (8, 16)))


def planned(module, inputs, budget, **options):
    """A step of `module` under a plan, and the report."""
    options = {"techniques": "all", "costs": "cpu", "work": 25_000, "time": None, "fallback": "error"} | options
    step = lowtide.torch.optimize(module, inputs, budget=budget, **options)
    return step, lowtide.torch.reports()[-1]


def trained(module, inputs, step, seed=1):
    torch.manual_seed(seed)
    module.zero_grad()
    loss = step(*inputs)
    loss.backward()
    return [loss.detach(), *gradients(module)]


def distance(got, expected):
    """The largest difference, of each tensor by its largest number; tensors of rounding errors alone count little."""
    return max(((a - b).abs().max() / b.abs().max().clamp(min=1e-5)).item() for a, b in zip(got, expected, strict=True))


def force(monkeypatch, choose):
    """Have the planner take the transforms that `choose` picks for a graph, and none if it picks none."""
    torch_run.force(monkeypatch, lambda problem: choose(problem.graph))


def picks(graph):
    """Transforms of regions that differ in their ops, those with the fewest parts first."""
    found, seen = [], set()
    for i, region in sorted(enumerate(graph.regions()["regions"]), key=lambda pair: pair[1]["parts"]):
        if tuple(region["ops"]) not in seen:
            seen.add(tuple(region["ops"]))
            found.append(i)
    return found


class Spectra(nn.Module):
    """Conjugates and negatives that are flags of a view until somebody computes with them."""

    def __init__(self):
        super().__init__()
        self.up, self.weight = nn.Linear(16, 32), nn.Parameter(torch.randn(17))

    def forward(self, x):
        found = torch.fft.rfft(self.up(x)) * torch.complex(self.weight, self.weight)
        return found.conj().imag.sin().sum() + torch.fft.irfft(found).square().mean()


class Scaled(Words):
    """Its parts go on to compute with the loss."""

    def forward(self, x, y):
        h = self.head(self.embed(x)).flatten(0, 1)
        return F.cross_entropy(h, y.flatten()) / 4 + 1e-3 * h.logsumexp(-1).square().mean()


class Sampled(nn.Module):
    """Its offsets lie in one order, and the gradient of their size is a number: a product that fake kernels in half
    precision lay out in another order than real ones."""

    def __init__(self):
        super().__init__()
        self.first, self.offsets = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        moved = torch.tanh(self.offsets(h)).permute(0, 2, 3, 1)
        return h.square().mean() + (moved.abs().sum() + moved.sin().sum()) / 100


MODELS = ZOO | {"spectra": lambda: (Spectra(), (torch.randn(24, 16),)),
                "scaled": lambda: (Scaled(words=64), (torch.randint(0, 64, (8, 16)), torch.randint(0, 64, (8, 16))))}


@pytest.mark.parametrize("name", ["mixer", "encoder", "norms", "cells", "unet", "attention_dropout", "spectra", "scaled",
                                  *(["gpt_dropout", "group_norm"] if LONG else [])])
def test_every_region_computes_what_the_whole_computes(name, monkeypatch):
    module, inputs = fresh(MODELS[name])
    module = module.double()
    inputs = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    plain = twin(module)
    expected = trained(plain, inputs, plain)
    tried = 0
    for turn in range(REGIONS):
        made = []

        def choose(graph, turn=turn, made=made):
            places = picks(graph)
            if turn < len(places):
                made += graph.regions(pick=places[turn])["transforms"]
            return made

        torch._dynamo.reset()
        with monkeypatch.context() as patched:
            force(patched, choose)
            mine = twin(module)
            step, report = planned(mine, inputs, 10**9)
        if not made:
            break
        tried += 1
        assert report.transforms, made
        assert distance(trained(mine, inputs, step), expected) < 1e-9, report.transforms
        mine.zero_grad()
        measured = report.inputs + report.resident + peak_rise(lambda step=step: step(*inputs).backward())
        # norms update their statistics in place, where the plan counts new ones
        statistics = sum(b.nbytes for b in module.buffers() if b.is_floating_point())
        assert -SLACK - statistics <= measured - report.peak <= SLACK, report.transforms
    assert tried or name in ("norms", "unet")  # batch norm takes the whole batch


class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.GroupNorm(4, 8)
        self.second = nn.Conv2d(8, 32, 1)

    def forward(self, x):
        return self.second(F.silu(self.norm(self.first(x)))).square().mean()


class Grouped(nn.Module):
    """Attention of four queries for two keys."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 16), nn.Linear(32, 16)

    def forward(self, x):
        heads = (layer(x).unflatten(-1, (-1, 8)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True).square().mean()


@pytest.mark.parametrize(("make", "share"), [
    (lambda: (Depthwise(), (torch.randn(6, 8, 12, 12),)), 0.5),
    (lambda: (Grouped(), (torch.randn(6, 12, 32),)), 0.8),
    (lambda: (nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Flatten(0)), (torch.randn(7, 16),)), 1.0)], ids=["conv", "gqa", "odd"])
def test_the_smallest_budget_that_is_named_is_kept(make, share):
    """It is that of parts as they are priced, not as they were estimated; and no larger than without parts."""
    module, inputs = fresh(make)
    if isinstance(module, nn.Sequential):
        module.register_forward_hook(lambda _, __, x: x.square().mean())
    module, inputs = module.double(), tuple(t.double() for t in inputs)
    plain, least = twin(module), {}
    expected = trained(plain, inputs, plain)
    for techniques in ("default", "all"):
        torch._dynamo.reset()
        with pytest.raises(lowtide.torch.BudgetError) as refused:
            planned(twin(module), inputs, 1, techniques=techniques)
        least[techniques] = refused.value.smallest
    assert least["all"] <= share * least["default"]
    torch._dynamo.reset()
    step, report = planned(module, inputs, least["all"])
    assert report.peak <= least["all"] and distance(trained(module, inputs, step), expected) < 1e-9
    module.zero_grad()
    assert report.inputs + report.resident + peak_rise(lambda: step(*inputs).backward()) <= least["all"] + SLACK


class Shifted(Words):
    """Its labels are its inputs, one place on, so that an op of the model makes them."""

    def forward(self, x):
        return F.cross_entropy(self.head(self.embed(x))[:, :-1].flatten(0, 1), x[:, 1:].flatten())


def test_labels_that_the_model_makes_are_counted_before_the_parts(monkeypatch):
    torch.manual_seed(0)
    module, inputs = Shifted(words=64).double(), (torch.randint(0, 64, (8, 16)),)
    plain = twin(module)
    expected = trained(plain, inputs, plain)

    def choose(graph):
        regions = graph.regions()["regions"]
        place = next(i for i, region in enumerate(regions) if (region["what"], region["parts"]) == ("whole graph", 2))
        *hoist, split = graph.regions(pick=place)["transforms"]
        loss = next(op for op in graph.ops if op.kind == "aten.nll_loss_forward")
        maker = graph.tensor(next(o["tensor"] for o in loss.operands if o["argument"] == "target")).producer
        assert maker not in split["ops"]
        with pytest.raises(lowtide.PlanError, match="once for all parts of .*, which the parts make"):
            lowtide.transform(graph, [*hoist, split | {"ops": sorted([*split["ops"], maker]),
                                                       "prices": [*split["prices"], [maker, 1, 0]]}])
        return [*hoist, split]

    force(monkeypatch, choose)
    step, report = planned(module, inputs, 10**9)
    assert report.transforms and distance(trained(module, inputs, step), expected) < 1e-12


def test_kernels_that_go_by_other_strides_get_copies(monkeypatch):
    """Along the tokens the statistics of a part of a layer norm lie far apart in those of the whole."""
    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(8)

        def forward(self, x):
            return self.norm(x).sin().sum()

    def choose(graph):
        op = next(graph.op(i) for i in range(graph.num_ops) if graph.op(i).kind == "aten.native_layer_norm_backward")
        entry = graph.to_dict()["ops"][op.index]
        return [{"kind": "split", "ops": [op.index], "parts": 2, "axes": [{"tensor": entry["operands"][0]["tensor"], "dim": 1}],
                 "prices": [[op.index, 1, 0]], "joins": [[t, 1, 0] for t in entry["outputs"]]}]

    module, inputs = fresh(lambda: (Normed(), (torch.randn(300, 16, 8),)))
    plain = twin(module)
    expected = trained(plain, inputs, plain)
    force(monkeypatch, choose)
    step, report = planned(module, inputs, 10**9)
    assert report.transforms and distance(trained(module, inputs, step), expected) < 1e-5
    module.zero_grad()
    measured = report.inputs + report.resident + peak_rise(lambda: step(*inputs).backward())
    assert abs(measured - report.peak) <= SLACK


@pytest.mark.parametrize("corrected", [True, False])
def test_slices_are_of_what_kernels_really_make(corrected, monkeypatch):
    """Known before the plan, or else found when it runs, and copied."""
    if not corrected:
        for place in ("tracing.real_types", "transforms.parts"):
            monkeypatch.setattr(f"lowtide.torch.{place}.as_really_made", lambda *_: None)
    module, inputs = fresh(lambda: (Sampled().bfloat16(), (torch.randn(8, 3, 12, 12).bfloat16(),)))
    plain = twin(module)
    expected = trained(plain, inputs, plain)
    chosen = []

    def choose(graph, place):
        places = picks(graph)
        chosen[:] = graph.regions(pick=places[place])["transforms"] if place < len(places) else []
        return chosen

    for place in range(4):
        torch._dynamo.reset()
        with monkeypatch.context() as patched:
            force(patched, lambda graph, place=place: choose(graph, place))
            mine = twin(module)
            step, report = planned(mine, inputs, 10**9)
        assert report.transforms and distance(trained(mine, inputs, step), expected) < 0.05, chosen
        mine.zero_grad()
        measured = report.inputs + report.resident + peak_rise(lambda step=step: step(*inputs).backward())
        assert not corrected or abs(measured - report.peak) <= SLACK


def test_a_head_in_parts_needs_a_third():
    module, inputs = words()
    plain = twin(module)
    whole = peak_rise(lambda: plain(*inputs).backward())
    expected = trained(plain, inputs, plain)
    step, report = planned(module, inputs, "35%")
    assert report.transforms[0] == "hoist of the backward into the forward" and "split of" in report.transforms[1]
    assert "split of" in str(report)
    names = [t.name for t in report.techniques]
    assert names[:2] == ["hoist", "split"] and set(names[2:]) <= {"recompute", "in_place", "substitute"}
    split = report.techniques[1]
    assert split.saved > 0.3 * report.own_peak and "parts" in str(split) and split.modules["head"] > 0
    got = trained(module, inputs, step)
    assert torch.equal(got[0], expected[0]) and distance(got, expected) < 1e-5
    module.zero_grad()
    rise = peak_rise(lambda: step(*inputs).backward())
    assert abs(report.inputs + rise - report.peak) <= SLACK and rise < 0.35 * whole


@pytest.mark.parametrize("compiled", [False, True])
def test_inputs_may_be_views_of_one_storage_at_other_places_in_each_step(compiled):
    module, _ = words()
    module = module.double()
    plain = twin(module)
    text = torch.randint(0, 2048, (4, 2, 8, 16))
    batches = [(text[0, 0], text[0, 1]), (text[1, 1], text[2, 0]), (text[3, 1], text[3, 0])]
    if compiled:
        options = {"budget": "35%", "techniques": "all", "costs": "cpu", "work": 25_000, "time": None, "fallback": "error"}
        step = torch.compile(module, backend="lowtide", options=options)
    else:
        step, _ = planned(module, batches[0], "35%")
    for batch in batches:
        got, expected = step(*batch), plain(*batch)
        got.backward()
        expected.backward()
        assert torch.equal(got, expected)
        assert distance(gradients(module), gradients(plain)) < 1e-12
        module.zero_grad()
        plain.zero_grad()
    assert any("split" in text for text in lowtide.torch.reports()[-1].transforms)


def test_half_precision_adds_up_in_single():
    module, inputs = words()
    exact_module = twin(module).double()
    exact = [t.float() for t in trained(exact_module, inputs, exact_module)]
    half = module.bfloat16()
    plain = twin(half)
    error = distance([t.float() for t in trained(plain, inputs, plain)], exact)
    step, report = planned(half, inputs, "60%")
    assert any("split" in text for text in report.transforms)
    assert distance([t.float() for t in trained(half, inputs, step)], exact) < 1.5 * error
    half.zero_grad()
    assert report.inputs + peak_rise(lambda: step(*inputs).backward()) <= report.budget + SLACK


def test_masks_are_those_of_the_whole():
    module, inputs = words(dropout=0.3)
    module = module.double()
    plain = twin(module)
    expected = trained(plain, inputs, plain)
    generator = torch.get_rng_state()
    step, report = planned(module, inputs, "45%")
    assert report.transforms
    assert distance(trained(module, inputs, step), expected) < 1e-9
    assert torch.equal(torch.get_rng_state(), generator)


class Autoencoder(nn.Module):
    """A variational one: half of its loss is of what it draws, in half precision."""

    def __init__(self):
        super().__init__()
        self.into, self.code = nn.Conv2d(1, 8, 4, 2, 1), nn.Linear(128, 16)
        self.out, self.back = nn.Linear(8, 128), nn.ConvTranspose2d(8, 1, 4, 2, 1)

    def forward(self, x, noise=None):
        with torch.autocast("cpu", torch.bfloat16):
            mean, spread = self.code(F.relu(self.into(x)).flatten(1)).chunk(2, 1)
            noise = torch.randn_like(spread) if noise is None else noise
            drawn = F.relu(self.out(mean + noise * (spread / 2).exp()))
            seen = self.back(drawn.unflatten(1, (8, 4, 4)))
            apart = 1 + spread - mean.square() - spread.exp()
            return F.binary_cross_entropy_with_logits(seen, x.sigmoid()) - apart.sum(1).mean() / 2


def test_parts_under_autocast_are_a_loop_over_slices_of_the_noise(monkeypatch):
    """To the last bit: each part's gradients are rounded by their kernels, and added up in single."""
    module, (x,) = fresh(lambda: (Autoencoder(), (torch.randn(16, 1, 8, 8),)))
    plain = twin(module)
    torch.manual_seed(1)
    noise = torch.randn(16, 8, dtype=torch.bfloat16)
    parts = 4
    losses = [plain(*slices) for slices in zip(x.chunk(parts), noise.chunk(parts), strict=True)]
    for loss in losses:
        (loss / parts).backward()

    # In how many parts which region is worth while hangs on the processor's kernels, which need other workspaces.
    torch_run.force(monkeypatch, lambda problem: in_parts(problem, parts))
    step, report = planned(module, (x,), 10**9)
    got = trained(module, (x,), step)
    assert f"into {parts} parts" in report.transforms[-1]
    assert all(map(torch.equal, got, [sum(loss.detach() for loss in losses) / parts, *gradients(plain)]))


@pytest.fixture
def hoisted(monkeypatch):
    """A module, its inputs, and the step of it with the backward in the forward and nothing in parts."""
    module, inputs = words()

    def make(**options):
        with monkeypatch.context() as patched:
            force(patched, lambda graph: graph.regions(pick=0)["transforms"][:1])
            return planned(module, inputs, **{"budget": 10**9} | options)[0]

    return module, inputs, make


def test_hoisted_gradients_are_equal_for_powers_of_two(hoisted):
    module, inputs, make = hoisted
    plain, step = twin(module), make(loss_scale=1)
    for scale in (1, 0.25, 65536):
        a = trained(module, inputs, lambda *given, scale=scale: scale * step(*given))
        b = trained(plain, inputs, lambda *given, scale=scale: scale * plain(*given))
        assert all(map(torch.equal, a, b)), scale


def test_gradients_are_scaled_wherever_a_plan_makes_the_assumed_tangent_again(hoisted, monkeypatch):
    """The engine holds the tangent to the end, so a plan may free it and make it again behind the forward."""
    module, inputs, make = hoisted
    scheduled, again = as_code.schedule, []

    def with_another(program, steps):
        computes = [op for kind, op, *_ in steps if kind.startswith("compute")]
        again.extend(op.index for op in program.graph.ops if op.kind == "lowtide.tangent")
        return scheduled(program, [("compute", op) for op in (*computes, *again)])

    monkeypatch.setattr(as_code, "schedule", with_another)
    plain, step = twin(module), make(loss_scale=1)
    assert len(again) == 1
    for scale in (4, 0.5):
        a = trained(module, inputs, lambda *given, scale=scale: scale * step(*given))
        b = trained(plain, inputs, lambda *given, scale=scale: scale * plain(*given))
        assert all(map(torch.equal, a, b)), scale


def test_the_last_tangent_is_the_next_assumed_one(hoisted):
    module, inputs, make = hoisted
    plain, step = twin(module), make()
    for _ in range(2):
        a = trained(module, inputs, lambda *given: step(*given) / 3)
        b = trained(plain, inputs, lambda *given: plain(*given) / 3)
        assert distance(a, b) < 1e-5
    assert all(map(torch.equal, a, b))
    # Nothing can be divided by these, and they are not kept.
    for scale in (0.0, float("nan")):
        (scale * step(*inputs)).backward()
        module.zero_grad()
        assert distance(trained(module, inputs, step), trained(plain, inputs, plain)) < 1e-5


def test_a_scaler_says_the_tangent(hoisted):
    module, inputs, make = hoisted
    scaler = torch.amp.GradScaler("cpu", init_scale=3.0 * 2**14)
    plain, step = twin(module), make(loss_scale=scaler)
    a = trained(module, inputs, lambda *given: scaler.scale(step(*given)))
    other = torch.amp.GradScaler("cpu", init_scale=3.0 * 2**14)
    b = trained(plain, inputs, lambda *given: other.scale(plain(*given)))
    assert distance(a, b) < 1e-5
    a = trained(module, inputs, lambda *given: scaler.scale(step(*given)))  # from its first use on it has a scale
    assert all(map(torch.equal, a, b))


def test_graphs_that_are_kept_forwards_that_wait_and_hooks(hoisted):
    module, inputs, make = hoisted
    plain, step = twin(module), make(loss_scale=1)

    def kept(model, run):
        model.zero_grad()
        loss = run(*inputs)
        loss.backward(retain_graph=True)
        (2 * loss).backward(retain_graph=True)
        loss.backward()
        return gradients(model)

    def waiting(model, run):
        model.zero_grad()
        first, second = run(*inputs), run(inputs[1], inputs[0])
        second.backward()
        (first * 2).backward()
        return gradients(model)

    def hooked(model, run):
        handle = model.head.weight.register_hook(lambda g: 2 * g)
        model.zero_grad()
        run(*inputs).backward()
        handle.remove()
        return gradients(model)

    for way in (kept, waiting, hooked):
        assert all(map(torch.equal, way(module, step), way(plain, plain))), way
    some = list(module.parameters())[:2]
    got = torch.autograd.grad(step(*inputs), some)
    assert all(map(torch.equal, got, torch.autograd.grad(plain(*inputs), list(plain.parameters())[:2])))
    with torch.no_grad():
        assert torch.equal(step(*inputs), plain(*inputs))


def test_gradients_that_live_on_are_no_forward_that_waits(hoisted):
    """A hoisted forward leaves the gradients themselves.  While somebody holds them a budget without any room is kept, and
    where they stand they are counted once."""
    module, inputs, make = hoisted
    make()
    peak = lowtide.torch.reports()[-1].peak
    torch._dynamo.reset()
    step = make(budget=peak)
    kept = []
    for _ in range(3):  # a warning would be an error
        module.zero_grad()
        step(*inputs).backward()
        kept.append([p.grad for p in module.parameters()])
    stands = sum(p.numel() * p.element_size() for p in module.parameters())
    with pytest.warns(lowtide.torch.OverBudgetWarning) as said:
        step(*inputs).backward()
    assert any(f"reserve={stands}" in str(warning.message) for warning in said), [str(warning.message) for warning in said]


def test_other_ways_to_compile(hoisted):
    module, inputs, make = hoisted
    plain, step = twin(module), make(loss_scale=1)
    expected = trained(plain, inputs, plain)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        assert all(map(torch.equal, trained(module, inputs, step), expected))
    torch._dynamo.reset()
    options = {"budget": "45%", "techniques": "all", "costs": "cpu", "work": 25_000, "time": None, "fallback": "error"}
    step = torch.compile(module, backend="lowtide", options=options)
    assert distance(trained(module, inputs, step), expected) < 1e-5
    assert lowtide.torch.reports()[-1].transforms
    with torch.no_grad():  # a plan of its own, in parts too
        torch.testing.assert_close(step(*inputs), expected[0])  # which may add up in another order


def test_a_second_result_keeps_the_backward_where_it_is(monkeypatch):
    class Two(Words):
        def forward(self, x, y):
            logits = self.head(self.embed(x))
            return F.cross_entropy(logits.flatten(0, 1), y.flatten()), logits

    torch.manual_seed(0)
    module, inputs = Two(), words()[1]
    plain, hoisted = twin(module), []

    def choose(graph):
        survey = graph.regions(pick=0)
        hoisted.append(survey["hoisted"])
        return survey["transforms"]

    force(monkeypatch, choose)
    step, report = planned(module, inputs, 10**9)
    assert hoisted == [False] and report.transforms and not any("hoist" in text for text in report.transforms)
    for run in (step, plain):
        loss, logits = run(*inputs)
        (loss + logits.square().mean()).backward()
    assert distance(gradients(module), gradients(plain)) < 1e-5


def test_plans_with_transforms_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    module, inputs = words()
    _, first = planned(twin(module), inputs, "35%")
    torch._dynamo.reset()
    step, again = planned(module, inputs, "35%")
    assert again.cached and not first.cached and again.transforms == first.transforms and again.peak == first.peak
    plain = twin(module)
    assert distance(trained(module, inputs, step), trained(plain, inputs, plain)) < 1e-5


@pytest.mark.parametrize(("error", "said"), [
    (lowtide.torch.CaptureError("a part makes something else"), "a part makes something else"),
    (KeyError("arguments"), r"\w+: aten.* has no plan because of a fault of Lowtide's own.*'arguments'")],
    ids=["by PyTorch", "by a fault of our own"])
def test_parts_that_cannot_be_made_are_refused_with_the_node(error, said, monkeypatch):
    def other(node, entries, fakes):
        raise error

    monkeypatch.setattr(transformed_module, "check", other)
    module, inputs = words()
    force(monkeypatch, lambda graph: graph.regions(pick=0)["transforms"])
    with pytest.warns(lowtide.torch.LowtideWarning, match=f"does not run in parts: {said}"):
        _, report = planned(module, inputs, 10**9)
    assert not report.transforms


def test_parts_of_one_kind_are_tried_once(monkeypatch):
    """What differs in the places of its slices alone takes the results of the first, so that more parts ask for no more
    kernels, neither of their own nor of what puts them together."""
    calls = []
    kernel = PartCall.kernel
    monkeypatch.setattr(PartCall, "kernel", lambda call, fakes: calls.append(call) or kernel(call, fakes))
    monkeypatch.setattr(transformed_module, "Kernel", lambda *fields: calls.append(fields) or Kernel(*fields))
    module, inputs = words()
    plain = twin(module)
    expected = trained(plain, inputs, plain)
    took = []
    for parts in (4, 16):
        def choose(graph, parts=parts):
            return [t | {"parts": parts} if t["kind"] == "split" else t for t in graph.regions(pick=0)["transforms"]]

        torch._dynamo.reset()
        calls.clear()
        with monkeypatch.context() as patched:
            force(patched, choose)
            mine = twin(module)
            step, report = planned(mine, inputs, 10**9)
        assert f"into {parts} parts" in report.transforms[-1]
        assert distance(trained(mine, inputs, step), expected) < 1e-4
        took.append(len(calls))
    assert took[0] == took[1]


def test_without_leave_nothing_is_split():
    module, inputs = words()
    with pytest.raises(lowtide.torch.BudgetError):
        planned(module, inputs, "35%", techniques=None)
    _, report = planned(module, inputs, "90%", techniques="default")
    assert report.transforms == []


def test_the_smallest_plan_of_all_techniques_is_none_of_fewer():
    module, inputs = words()
    for techniques in ("all", "recompute,in_place"):
        torch._dynamo.reset()
        with pytest.raises(lowtide.torch.BudgetError):
            planned(module, inputs, 1, techniques=techniques)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_in_parts_are_equal(dtype, reduction, monkeypatch):
    class Ignoring(Words):
        def forward(self, x, y):
            logits = self.head(self.embed(x)).flatten(0, 1)
            return F.cross_entropy(logits, y.flatten(), ignore_index=7, reduction=reduction)

    torch.manual_seed(0)
    module, (x, y) = Ignoring(words=1024).to(dtype), (t % 1024 for t in words()[1])
    inputs = x, y.masked_fill(y % 3 == 0, 7)
    plain = twin(module)
    expected = trained(plain, inputs, plain)

    force(monkeypatch, lambda graph: graph.regions(pick=0)["transforms"])
    step, report = planned(module, inputs, 10**9)
    got = trained(module, inputs, step)
    assert len(report.transforms) == 2 and torch.equal(got[0], expected[0])
    assert distance(got, expected) < (1e-5 if dtype is torch.float32 else 0.1)
