"""Ranks for tests: processes in one gloo group that run functions side by side and hand back what these return."""

import contextlib
import datetime
import gc
import multiprocessing
import os
import tempfile
import traceback

_SECONDS = 60  # until a collective that nobody answers is an error
_LIMIT = 3 * _SECONDS


def _serve(rank, size, store, pipe):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)  # before all else: a forked process has none of the threads that its parent computed with
    dist.init_process_group("gloo", store=dist.FileStore(store, size), rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=_SECONDS))
    while (task := pipe.recv()) is not None:
        function, args = task
        try:
            torch._dynamo.reset()
            gc.collect()
            gc.freeze()  # what earlier tasks leave is no garbage of this one, whose measured peaks take collections
            pipe.send((True, function(rank, *args)))
        except BaseException:  # the test shall see it
            pipe.send((False, traceback.format_exc()))
    os._exit(0)  # the end of a group waits for ranks that have left before


def _context():
    """Ranks are forked, since importing torch takes longer than most tests; where there is a GPU, they are spawned: CUDA does not
    survive a fork."""
    import torch

    return multiprocessing.get_context("spawn" if torch.cuda.is_available() else "fork")


@contextlib.contextmanager
def ranks(size=2):
    """call(function, *args): [function(rank, *args) for every rank], each in a process of its own.  gone: a rank that ends meanwhile,
    for which there is (None, None).

    `function` is one of a module's own; what it takes and returns can be pickled.
    """
    context = _context()
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(rank, size, os.path.join(folder, "store"), there), daemon=True)
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)

        def call(function, *args, gone=None):
            for pipe in pipes:
                pipe.send((function, args))
            answers = []
            for rank, pipe in enumerate(pipes):
                assert pipe.poll(_LIMIT), f"rank {rank} hangs"
                answers.append((True, (None, None)) if rank == gone else pipe.recv())
            assert all(right for right, _ in answers), "\n".join(text for right, text in answers if not right)
            return [answer for _, answer in answers]

        try:
            yield call
        finally:
            for pipe in pipes:
                with contextlib.suppress(OSError):
                    pipe.send(None)
            for process in processes:
                process.join(2)
                if process.is_alive():
                    process.kill()
                    process.join()
