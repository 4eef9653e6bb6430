"""Workspaces of a GPU's libraries are there before a plan counts what is, in the forward's thread and in the engine's.

A process of its own registers a device that computes nothing, for which the autograd engine has a thread as for a GPU.
"""

import json
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch import settings
from lowtide.torch.device import workspaces

CARD = """
import contextlib, json, sys, threading, types
import torch
from torch.utils import backend_registration as registration
from torch.utils._pytree import tree_map_only

WORKSPACE = 32 << 20
products = []  # the thread of each
biased = set()  # the threads of products with a bias, for which cuBLASLt takes a workspace
freed = []  # how many products there were when workspaces were freed
streams = ["ordinary"]
in_streams = {}  # the threads of products in each


class Module(registration._DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16]


def on_card(op, *args, **kwargs):
    if op in (torch.ops.aten.mm.out, torch.ops.aten.addmm.out):
        products.append(threading.get_ident())
        if op == torch.ops.aten.addmm.out:
            biased.add(threading.get_ident())
        in_streams.setdefault(streams[-1], set()).add(threading.get_ident())
    if op._schema.is_mutable:
        return args[0]
    args, kwargs = tree_map_only(torch.Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta"), (args, kwargs))
    made = op(*args, **kwargs | ({"device": "meta"} if "device" in kwargs else {}))
    return tree_map_only(torch.Tensor, lambda t: torch._C._acc.create_empty_tensor(tuple(t.shape), t.dtype), made)


registration._setup_privateuseone_for_python_backend("card", Module())
library = torch.library.Library("_", "IMPL")
library.fallback(on_card, "PrivateUse1")
card = torch.device("card")
torch.cuda.synchronize = lambda device: None
segments = []
torch.cuda.memory_snapshot = lambda: segments
torch.cuda.get_allocator_backend = lambda: "native"
torch._C._cuda_clearCublasWorkspaces = lambda: freed.append(len(products))
torch.cuda.empty_cache = lambda: freed.append("cache")
torch.cuda.memory_allocated = lambda device: 1000 + WORKSPACE * len(set(products))

from lowtide.torch import settings
from lowtide.torch.device.workspaces import _free_earlier, take_workspaces


def backward_thread():
    "The thread in which a step of the user's runs its backward."
    weight, x = (torch.zeros(4, 4, device=card, requires_grad=True) for _ in range(2))
    loss = (x @ weight).sum()
    products.clear()
    loss.backward()
    (thread,) = set(products)
    return thread


engines = backward_thread()
products.clear()
settings.take_workspaces = lambda device, **more: take_workspaces(card, **more)
program = types.SimpleNamespace(graph=types.SimpleNamespace(tensors=[]))
biased.clear()
with torch.autograd.set_multithreading_enabled(False):  # as while AOTAutograd traces
    tracers = backward_thread()
    products.clear()
    standing = settings.Settings("100%").standing(600, types.SimpleNamespace(type="cuda"), program)
    took = set(products)
    with_bias = set(biased)
    again = settings.Settings("100%").standing(600, types.SimpleNamespace(type="cuda"), program)
mine = threading.get_ident()


@contextlib.contextmanager
def stream(of):
    streams.append(of)
    yield
    streams.pop()


torch.cuda.stream, torch.cuda.Stream, torch.cuda.current_device = stream, lambda index: f"recorded {index}", lambda: 0
settings.Settings("100%", cuda_graph=True).standing(600, types.SimpleNamespace(type="cuda"), program)
segments.append({"segment_pool_id": (0, 1)})  # of a CUDA graph, which may write to a workspace
_free_earlier.__wrapped__()
print(json.dumps({"freed": freed, "with a bias": with_bias == took,
                  "engine apart": engines != mine, "tracer's": tracers == mine, "took": sorted(took) == sorted([mine, engines]),
                  "standing": standing - 2 * WORKSPACE, "once": again == standing and set(products) == took,
                  "where graphs are recorded": in_streams["recorded 0"] == in_streams["ordinary"]}))
"""


@pytest.mark.skipif(not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"), reason="no device in Python here")
def test_the_forwards_thread_and_the_engines_have_their_workspaces_before_the_plan_counts():
    ran = subprocess.run([sys.executable, "-c", CARD], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {"freed": [0, "cache"], "with a bias": True, "engine apart": True, "tracer's": True, "took": True, "standing": 400, "once": True,
                                                        "where graphs are recorded": True}


def test_workspaces_stay_under_an_allocator_that_tells_nothing(monkeypatch):
    def refuse(*_):
        raise RuntimeError("it has no snapshots")

    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "cudaMallocAsync")
    monkeypatch.setattr(torch.cuda, "memory_snapshot", refuse)
    workspaces.free_workspaces()


def test_a_plan_that_is_made_in_another_stream_has_workspaces_there(monkeypatch):
    stream, took = [], []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=stream[-1]))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(workspaces, "free_workspaces", lambda: None)
    monkeypatch.setattr(workspaces, "_multiply", lambda device: took.append((str(device), stream[-1])))
    workspaces._take.cache_clear()
    for index, where in ((0, 7), (0, 8), (0, 7), (1, 7)):
        stream.append(where)
        workspaces.take_workspaces(torch.device("cuda", index))
    workspaces._take.cache_clear()
    assert took == [("cuda:0", 7), ("cuda:0", 8), ("cuda:1", 7)]


@pytest.mark.parametrize("cuda_graph", [False, True])
def test_workspaces_are_taken_beside_a_reserve_too(monkeypatch, cuda_graph):
    took = []
    monkeypatch.setattr(settings, "take_workspaces", lambda device, recorded=False: took.append(recorded))
    given = settings.Settings("100%", reserve="512MB", cuda_graph=cuda_graph)
    assert given.standing(0, torch.device("cuda"), None) == 512_000_000 and took == [False, True][:1 + cuda_graph]
    assert given.standing(0, torch.device("cpu"), None) == 512_000_000 and len(took) == 1 + cuda_graph
