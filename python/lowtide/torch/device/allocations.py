"""Records the CPU's allocations during a function, without `torch.profiler`.

`torch.profiler` has one session per process; starting another one ends the user's session, whose trace is then empty.  The
legacy profiler records each allocation and free of one thread, and does not disturb a session in another thread.  So Lowtide
runs its own measurements in a separate thread (`in_own_thread`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from ..compat.autograd import begin_profile, end_profile, is_profiled

Result = TypeVar("Result")


def allocations(run: Callable[[], Any]) -> list[int]:
    """Bytes that `run` allocates (> 0) and frees (< 0), in their order; of its own thread and those that compute for it.

    Raises RuntimeError in a thread that a profiler looks at.
    """
    if is_profiled():
        raise RuntimeError("a profiler runs here, and sees what is to be measured in the place of lowtide, which leaves it "
                           "alone: measure outside of it")
    begin_profile()
    try:
        run()
    finally:
        of_threads = end_profile()
    begin = next(e for events in of_threads for e in events if e.name() == "__start_profile")
    seen = [(begin.cpu_elapsed_us(e), e.cpu_memory_usage()) for events in of_threads for e in events
            if e.kind() == "memory_alloc"]
    return [size for _, size in sorted(seen, key=lambda of: of[0])]  # a sort is stable: of one moment as they came


def in_own_thread(run: Callable[[], Result]) -> Result:
    """What `run` returns, or raises, in a thread that nothing looks at, and that has no modes of its own."""
    made: list[Result] = []
    raised: list[BaseException] = []

    def whole() -> None:
        try:
            torch.get_num_threads()  # oneDNN does not know how many there are to be until PyTorch has said it to this one
            made.append(run())
        except BaseException as error:  # it is the caller's
            raised.append(error)

    thread = threading.Thread(target=whole, name="lowtide", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return made[0]
