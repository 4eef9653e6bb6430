"""What every suite here leaves out, since it takes time and says nothing of Lowtide."""

import gc
import os
import sys

import pytest

# Most of the time that JAX takes here is LLVM's for the code of each step; in long runs it optimizes it.
if int(os.environ.get("LOWTIDE_TEST_SCALE", "1")) < 10:
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


@pytest.fixture(scope="session", autouse=True)
def unmeasured_guards():
    """Dynamo flushes the processor's caches after each compilation, to know how long its guards take."""
    guards = sys.modules.get("torch._dynamo.guards")
    if guards is not None and hasattr(guards, "profile_guard_manager"):
        guards.profile_guard_manager = lambda *_: 0.0


@pytest.fixture(scope="session", autouse=True)
def kernels_of_eager_execution():
    """Steps on a GPU are compared with eager ones, where by default they may run fused kernels."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        os.environ.setdefault("LOWTIDE_INNER", "eager")


@pytest.fixture(scope="session", autouse=True)
def counted_work():
    """Searches that are given no limit end by their work, alike on every machine, long before their second is over."""
    os.environ.setdefault("LOWTIDE_WORK", "100000")


@pytest.fixture
def uncompiled(monkeypatch):
    """Clusters run op by op, which takes no compiler's time, as if others of their graph were compiled: a graph all of whose clusters
    Inductor refuses runs on eager kernels."""
    from lowtide.torch.clusters import cluster

    def refuses(*_):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(cluster, "compile_kernels", refuses)
    monkeypatch.setattr(cluster.Cluster, "is_refused", False)
    monkeypatch.setattr(cluster, "_known", {})


def pytest_runtest_setup(item):
    """What earlier tests leave is no garbage of this one: each measured peak takes a collection, which need not
    go through it again."""
    gc.collect()
    gc.freeze()
