"""Parts of a region that compute the same run as one function: the same bits, and the same is live at every call."""

import operator
import random
import weakref

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend.planning import as_code
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.emission import emit, repeated
from lowtide.torch.emission.execute import compile_graph
from lowtide.torch.tensors.operators import touched_bytes
from lowtide.torch.transforms.parts import PartCall, Slice
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch_run import alone, force, gradients, in_parts, twin

SLACK = 64  # bytes of scalars that the autograd engine makes beside the graph
PARTS = 16


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


# ---- graphs by hand


class Value:
    """A number that knows who is alive; what is called on it says what was, each time."""

    alive = weakref.WeakSet()
    seen = []

    def __init__(self, number):
        self.number = number
        Value.alive.add(self)


def mixed(kind, numbers, *values):
    """A new value of these, by a rule of its own for each `kind`."""
    inner = sum(range(*numbers)) if isinstance(numbers, tuple) else numbers
    found = hash((kind, repr(inner), *(v.number for v in values)))
    Value.seen.append((found, sorted(v.number for v in Value.alive)))
    return Value(found)


def pair(value, number):
    return mixed("first", number, value), mixed("second", number, value)


def random_graph(chance):
    """Parts that are alike, but for some: their numbers, what they read from outside and what is read of them."""
    graph = fx.Graph()
    outside = [graph.placeholder(f"x{i}") for i in range(3)]
    last, carried = graph._root.prev, graph.call_function(mixed, ("begin", 0, outside[0]))
    last = repeated.note_parts(graph, last, None)
    recipe = [(chance.choice("abc"), chance.choice([1, 2.5, True, -0.0, (0, 3)]), chance.random(), chance.random(), chance.random())
              for _ in range(chance.randint(8, 12))]
    kept = []
    for part in range(chance.randint(16, 24)):
        odd = chance.random() < 0.15
        mine = [carried]
        for i, (kind, number, where, other, several) in enumerate(recipe):
            if odd and i == len(recipe) // 2:
                number = chance.choice([0.0, 1.0, 7, False])
            elif number == 1 and number is not True:
                number = part // 2
            elif isinstance(number, tuple):
                number = (0, part, 1)
            a = mine[int(where * len(mine))]
            b = outside[int(other * 3)] if other < 0.5 else mine[int(other * len(mine))]
            if other > 0.9:
                b = kept[-1] if kept else a
            if several < 0.2:
                both = graph.call_function(pair, (a, number))
                both.meta["val"] = (None, None)
                mine.append(graph.call_function(operator.getitem, (both, int(several < 0.1))))
            else:
                mine.append(graph.call_function(mixed, (kind, number, a, b)))
        if chance.random() < 0.2:
            kept.append(mine[-2])
        carried = mine[-1]
        last = repeated.note_parts(graph, last, (("split", part),))
    graph.output((carried, *kept))
    return graph


def test_the_same_is_computed_and_the_same_is_live():
    shared = 0
    for seed in range(30):
        graph = random_graph(random.Random(seed))
        module = fx.GraphModule(nn.Module(), graph)
        found = []
        for shares in (False, True):
            if shares:
                before = len(graph.nodes)
                repeated.share_code(module, graph)
                graph.lint()
                module.recompile()  # PyTorch's own form of it has to be code, too
                shared += len(graph.nodes) < before
            run = compile_graph(module, "by hand")
            Value.seen.clear()
            results = [v.number for v in run([Value(i) for i in range(3)])]
            found.append((results, list(Value.seen)))
        assert found[0] == found[1], seed
        assert [v.number for v in module(*map(Value, range(3)))] == found[0][0], seed
    assert shared > 18


def test_numbers_that_only_look_alike_are_two():
    """Of which some are equal, or have the same hash."""
    for others in ((0.0, -0.0), (1, True), (1, 1.0), ("a", "b")):
        graph = fx.Graph()
        value, last = graph.placeholder("x"), graph._root.prev
        for part in range(18):
            for _ in range(8):
                value = graph.call_function(mixed, ("a", others[part % 2], value, value))
            last = repeated.note_parts(graph, last, part)
        graph.output((value,))
        module = fx.GraphModule(nn.Module(), graph)
        expected = compile_graph(module, "by hand")([Value(0)])[0].number
        repeated.share_code(module, graph)
        called = {n.target for n in graph.nodes if n.op == "call_function" and n.target is not operator.getitem}
        assert len(called) == 2 and mixed not in called, others
        assert compile_graph(module, "by hand")([Value(0)])[0].number == expected, others


# ---- training steps


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.up, self.down = nn.Embedding(256, 32), nn.Linear(32, 64), nn.Linear(64, 32)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 256)

    def forward(self, x, y):
        h = self.embed(x)
        h = h + self.down(F.dropout(F.gelu(self.up(self.norm(h))), 0.2, self.training))
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


def words(dtype=torch.float32):
    torch.manual_seed(0)
    return Words().to(dtype), tuple(torch.randint(0, 256, (2 * PARTS, 8)) for _ in range(2))


def stepped(monkeypatch, module, inputs, apart, techniques="all"):
    """Loss, gradients and the generator's state of a step in parts, its nodes and functions, its measured peak and report."""
    nodes, functions = [], []

    def share(owner, graph):
        repeated.share_code(owner, graph)
        nodes.append(len(graph.nodes))

    def function(*given):
        functions.append(repeated_function(*given))
        return functions[-1]

    repeated_function = repeated._function
    torch._dynamo.reset()
    mine = twin(module)
    with monkeypatch.context() as patched:
        force(patched, lambda problem: in_parts(problem, PARTS))
        patched.setattr(emit, "share_code", share)
        patched.setattr(repeated, "_APART", apart)
        patched.setattr(repeated, "_function", function)
        step = lowtide.torch.optimize(mine, inputs, budget=10**9, techniques=techniques, costs="cpu", work=20_000,
                                      time=None, fallback="error")
    report = lowtide.torch.reports()[-1]
    assert f"into {PARTS} parts" in report.transforms[-1]
    torch.manual_seed(1)
    loss = step(*inputs)
    loss.backward()
    bits = [loss.detach(), *gradients(mine), torch.get_rng_state()]
    mine.zero_grad()
    measured = report.inputs + report.resident + peak_rise(lambda: step(*inputs).backward())
    return bits, sum(nodes), functions, measured, report


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_in_parts_has_the_same_bits_and_the_same_peak(dtype, monkeypatch):
    module, inputs = words(dtype)
    bits, straight, none, peak, _ = stepped(monkeypatch, module, inputs, PARTS)
    assert not none
    shared_bits, shared, functions, shared_peak, report = stepped(monkeypatch, module, inputs, 8)
    assert functions and shared < straight / 2
    assert all(map(torch.equal, shared_bits, bits))
    assert shared_peak == peak and abs(peak - report.peak) <= SLACK


def test_a_part_with_other_steps_runs_by_itself(monkeypatch):
    """One part computes an activation twice, and holds less meanwhile."""
    module, inputs = words()
    scheduled, again = as_code.schedule, []

    def unlike(program, steps):
        computes = [op for kind, op, *_ in steps if kind.startswith("compute")]
        for op in computes:
            entry = program.graph.op(op)
            last = [at for at, other in enumerate(computes) if set(entry.outputs) & set(program.graph.op(other).inputs)]
            if entry.kind == "aten.gelu" and program.runs[op].part[-1][1] == PARTS // 2:
                again.append(op)
                computes.insert(last[-1], op)
                break
        return scheduled(program, [("compute", op) for op in computes])

    plain, _, alike, _, _ = stepped(monkeypatch, module, inputs, 8)
    monkeypatch.setattr(as_code, "schedule", unlike)
    bits, nodes, functions, measured, report = stepped(monkeypatch, module, inputs, 8)
    assert len(again) == 1 and len(functions) == len(alike) and report.again
    assert all(map(torch.equal, bits, plain))
    assert abs(measured - report.peak) <= SLACK


def test_a_backward_in_parts_that_pytorch_traces_itself(monkeypatch):
    """Without a hoist there are parts in the code of the backward, of which compiled autograd makes code of its own."""
    module, inputs = words()
    techniques = ["split", "recompute", "in_place"]
    bits, _, none, _, _ = stepped(monkeypatch, module, inputs, PARTS, techniques)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        shared_bits, _, functions, _, report = stepped(monkeypatch, module, inputs, 8, techniques)
    assert functions and not none and not any("hoist" in text for text in report.transforms)
    assert all(map(torch.equal, shared_bits, bits))


def test_tensors_shared_by_equal_parts_count_separately_in_one_call():
    """Of one kind and one fake result: a sum of the two moves three tensors, a square two."""
    with FakeTensorMode():
        fake = torch.empty(8, 4)
    fakes = {"q": fake, "k": fake}

    def product(*keys):
        slices = [Slice(key, None, (8, 4), (4, 1), 0, torch.float32) for key in keys]
        return PartCall(torch.ops.aten.mul.Tensor, dict(zip(("self", "other"), slices, strict=True)), [("made", None)])

    with fake.fake_mode:
        two, square = (product("q", other).kernel(fakes) for other in "kq")
    assert touched_bytes(two.read) == 2 * touched_bytes(square.read) == 2 * 8 * 4 * 4
    assert product("q", "k").kind(fakes) == product("k", "q").kind(fakes) != product("q", "q").kind(fakes)
