"""A hundred runs in which a random rank is killed, refused, interrupted, late, asks alone, or fails, at a random moment: no rank hangs, all
plan or none does, and the next call works wherever all ranks are still there.

Ranks are processes; each run has its own, and its own time limit (rank_support.py).  LOWTIDE_RUNS: how many runs.
"""

import datetime
import os
import random
import time
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("this torch has no gloo", allow_module_level=True)

import lowtide.torch
import torch.distributed as dist
from lowtide.torch.ranks.agreement import Agreement
from rank_models import Net, built
from rank_support import ranks
from torch.nn.parallel import DistributedDataParallel

RUNS = int(os.environ.get("LOWTIDE_RUNS", "100"))
OPTIONS = {"budget": "70%", "costs": "cpu", "work": 20_000, "time": None}
EXCHANGES = 10  # about as many as a call has
ENOUGH, SHORT = 60, 2  # seconds: of an exchange that somebody is late for, and of one that nobody comes to


def planned(kind, module, x):
    """A call of Lowtide on all ranks; what trains by it."""
    if kind == "FSDP2":
        from torch.distributed.fsdp import fully_shard

        for block in module.blocks:
            fully_shard(block)
        return lowtide.torch.optimize(fully_shard(module), (x,), **OPTIONS)
    if kind == "step":
        parallel = DistributedDataParallel(module)
        return lowtide.torch.step(parallel, torch.optim.SGD(module.parameters(), 0.1), (x,), **OPTIONS)
    if kind == "DDP":
        return lowtide.torch.optimize(DistributedDataParallel(module), (x,), **OPTIONS)
    return DistributedDataParallel(lowtide.torch.optimize(module, (x,), ranks="together", **OPTIONS))


class Fate:
    """What becomes of a rank at its exchange of that number."""

    def __init__(self, what, when):
        self.what, self.left = what, when

    def exchange(self, agreement, *args, **kwargs):
        self.left -= 1
        if self.left == 0 and self.what == "killed":
            os._exit(1)
        if self.left == 0 and self.what == "late":
            time.sleep(0.5)
        if self.left == 0 and self.what in ("interrupted", "fails", "refused"):
            raise {"interrupted": KeyboardInterrupt, "fails": ValueError, "refused": lowtide.torch.CaptureError}[self.what]("by fate")
        return exchange(agreement, *args, **kwargs)


exchange = Agreement.exchange


def limit(seconds):
    dist.distributed_c10d._get_default_store().set_timeout(datetime.timedelta(seconds=seconds))


def attempt(kind, rank, x):
    """"planned", or the kind of error."""
    try:
        return "planned", planned(kind, built(Net, rank)[0], x)
    except (Exception, KeyboardInterrupt) as error:
        return type(error).__name__, None


def _one_run(rank, kind, who, what, when):
    """What becomes of a call, and of the next one, with a step of training."""
    os.environ["LOWTIDE_CACHE"] = "off"
    limit(SHORT if what in ("killed", "alone") else ENOUGH)
    _, _, x = built(Net, rank)
    found = []
    if what == "alone":
        if rank == who:
            found.append(attempt("together", rank, x)[0])
        limit(ENOUGH)
        dist.barrier()
    elif rank == who:
        with mock.patch.object(Agreement, "exchange", lambda *args, **kwargs: fate.exchange(*args, **kwargs)):
            fate = Fate(what, when)
            found.append(attempt(kind, rank, x)[0])
    else:
        found.append(attempt(kind, rank, x)[0])
    if what == "killed":
        return found
    name, step = attempt(kind, rank, x)
    loss = step(x)
    if loss.requires_grad:
        loss.backward()
    return [*found, name]


@pytest.mark.parametrize("seed", range(RUNS))
def test_no_rank_hangs_and_all_plan_or_none_does(seed):
    draw = random.Random(seed)
    size, kind = draw.choice([2, 2, 3]), draw.choice(["together", "DDP", "step", "FSDP2"])
    who, when = draw.randrange(size), draw.randint(1, EXCHANGES + 2)
    what = draw.choice(["killed", "refused", "interrupted", "late", "alone", "fails"])
    with ranks(size) as call:
        found = call(_one_run, kind, who, what, when, gone=who if what == "killed" else None)
    words = f"{size} ranks, {kind}: rank {who} is {what} at exchange {when}: {found}"
    if what == "killed":
        others = [result for rank, result in enumerate(found) if rank != who]
        assert all(others[0] == other for other in others), words
        assert others[0][0] in ("planned", "RankError"), words
        return
    assert all(result[-1] == "planned" for result in found), words
    if what == "alone":
        assert found[who][0] == "RankError", words
    else:
        assert len({result[0] == "planned" for result in found}) == 1 and (what != "late" or found[0][0] == "planned"), words
