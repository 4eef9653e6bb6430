"""Training steps side by side: with a plan and without, compared to the last bit."""

import contextlib
import copy
import shutil
import warnings

import lowtide.torch
import pytest
import torch
import torch.nn.functional as F
from lowtide.frontend.planning import planner, search
from lowtide.torch.graphs import planning as region_planning
from lowtide.torch.tracing.own_kernels import own_kernels
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import lowtide

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler on a CPU")


@contextlib.contextmanager
def alone(monkeypatch):
    """A test by itself: on one thread, with nothing compiled or kept on disk before; a LowtideWarning is an error."""
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lowtide.torch.LowtideWarning)
        yield
    torch.set_num_threads(threads)


@contextlib.contextmanager
def deterministic(monkeypatch):
    """Steps on a GPU that repeat their bits, or eager ones differ from one another.  An error where an operator cannot: with
    a warning alone the backward of attention stays as it is."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def train(module, inputs, step, steps=3, seed=1):
    """What `steps` of SGD give: losses, gradients, then all state and the generator's, in one flat list."""
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = step(*inputs)
        loss.backward()
        seen += [loss.detach().clone(), *(p.grad.clone() for p in module.parameters() if p.grad is not None)]
        optimizer.step()
    return [*seen, *(t.clone() for t in module.state_dict().values()), torch.get_rng_state()]


def train_traced(module, inputs, steps=3):
    """The same of the step as PyTorch traces it, without a plan: with its own casts and sums, but eager kernels."""
    with own_kernels():
        return train(module, inputs, torch.compile(module, backend="aot_eager"), steps)


def equal(a, b):
    """Are two lists of tensors the same to the last bit (NaN equal to NaN)?"""
    def alike(x, y):
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        if x.dtype.is_floating_point or x.dtype.is_complex:
            return bool(((x == y) | (x.isnan() & y.isnan())).all())
        return torch.equal(x, y)

    return len(a) == len(b) and all(map(alike, a, b))


def fresh(entry):
    """A module of the zoo and its inputs, the same every time."""
    torch.manual_seed(0)
    return entry()


def twin(module):
    return copy.deepcopy(module)


# how a network computes: in which number type it lies, and to which its products are cast
NUMBERS = {"f32": (torch.float32, None), "f64": (torch.float64, None), "bf16": (torch.bfloat16, None),
           "f16": (torch.float16, None), "autocast bf16": (torch.float32, torch.bfloat16),
           "autocast f16": (torch.float32, torch.float16)}


class _Cast(nn.Module):
    def __init__(self, body, dtype):
        super().__init__()
        self.body, self.dtype = body, dtype

    def forward(self, *inputs):
        with torch.autocast("cpu", self.dtype):
            return self.body(*inputs)


def cast(module, inputs, numbers):
    """A module and its inputs, made to compute in one of NUMBERS."""
    own, products = NUMBERS[numbers]
    if own is not torch.float32:
        module = module.to(own)
        inputs = tuple(t.to(own) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs)
    return (_Cast(module, products) if products else module), inputs


class _Live(TorchDispatchMode):
    """Counts the bytes of the storages that operators made and that are still there: no workspaces of kernels,
    which a CPU's allocator would show too."""

    def __init__(self):
        super().__init__()
        self._seen, self.peak = {}, 0

    @classmethod
    def ignore_compile_internals(cls):
        return True  # or torch.compile would step aside

    def note(self, tree, made):
        for t in tree_leaves(tree):
            if isinstance(t, torch.Tensor) and t.layout == torch.strided:
                data = t.untyped_storage()
                if data._cdata not in self._seen:
                    self._seen[data._cdata] = StorageWeakRef(data), data.nbytes() if made else 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self._seen = {key: entry for key, entry in self._seen.items() if not entry[0].expired()}
        self.note((args, kwargs), False)
        result = function(*args, **(kwargs or {}))
        self.note(result, True)
        self.peak = max(self.peak, sum(size for _, size in self._seen.values()))
        return result


def live_rise(function, *args):
    """Bytes of tensors by which function(*args) rises at most above what was there before it."""
    with _Live() as live:
        function(*args)
    return live.peak


def planned(module, share="act:80%", **options):
    """`module` compiled to a budget of that share of what each region can plan."""
    options = {"budget": share, "costs": "cpu", "work": 30_000, "time": None, "fallback": "error"} | options
    return torch.compile(module, backend="lowtide", options=options)


def optimized(module, inputs, budget, work=100_000):
    """A twin of `module` under a plan within the budget, or within the smallest that was met; its step, its report."""
    for _ in range(2):
        torch._dynamo.reset()
        mine = twin(module)
        try:
            step = lowtide.torch.optimize(mine, inputs, budget=budget, costs="cpu", work=work, time=None,
                                          fallback="error")
            break
        except lowtide.torch.BudgetError as error:
            assert error.smallest
            budget = error.smallest
    return mine, step, lowtide.torch.reports()[-1]


def both(make, run, **options):
    """run(module, step) on a plain twin and on a planned one: what each returned."""
    torch.manual_seed(0)
    module = make()
    plain, mine = twin(module), twin(module)
    torch.manual_seed(1)
    expected = run(plain, plain)
    rng = torch.get_rng_state()
    torch.manual_seed(1)
    got = run(mine, planned(mine, **options))
    assert torch.equal(torch.get_rng_state(), rng)
    return got, expected


def gradients(module):
    return [p.grad.clone() for p in module.parameters() if p.grad is not None]


class Body(nn.Module):
    """Hands out features; the loss is computed outside."""

    def __init__(self, p=0.0):
        super().__init__()
        self.layers, self.p = nn.ModuleList(nn.Linear(64, 64) for _ in range(6)), p

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(torch.tanh(layer(x)), self.p, self.training)
        return x


def force(monkeypatch, choose):
    """Have the planner take the transforms that `choose` picks for a problem, and plan as ever if it picks none."""
    plan = lowtide.plan

    def forced(problem, **options):
        transforms = choose(problem) if "split" in problem.techniques else None
        if not transforms:
            return plan(problem, **options)
        return plan(problem.graph, problem.budget, transforms=transforms, work=1000)

    monkeypatch.setattr(planner.lowtide, "plan", forced)
    monkeypatch.setattr(search, "_WORTH_BITS", 0)  # whatever keeps all bits, and takes as little
    monkeypatch.setattr(region_planning, "_LITTLE", float("inf"))  # however long it takes


def largest(survey):
    return max(range(len(survey)), key=lambda i: len(survey[i]["ops"]))


def in_parts(problem, parts, place=largest):
    """Transforms that run one region of the graph in so many parts.  place: which of those that are there."""
    hoist = "hoist" in problem.techniques
    survey = problem.graph.regions(hoist=hoist)["regions"]
    made = problem.graph.regions(hoist=hoist, pick=place(survey))["transforms"]
    return [t | {"parts": parts} if t["kind"] == "split" else t for t in made]
