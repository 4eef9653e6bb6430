"""PyTorch's private functions for CUDA."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_SMALL = 1 << 20  # the largest request of the allocator's small blocks


def wait(cycles: int) -> None:
    """Has the current stream do nothing for so many cycles of the clock."""
    torch.cuda._sleep(cycles)


def allocations_of(run: Callable[[], Any], device: torch.device) -> list[int] | None:
    """Bytes of each allocation that `run` makes on a GPU, and of each free as a negative number, in their order.

    None if the user records the process's memory (torch.cuda.memory._record_memory_history), since this call would end that record,
    and for allocators that keep none.
    """
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if enabled is None or allocator_backend() != "native" or enabled():
        return None
    torch.cuda.memory._record_memory_history("all", context=None, clear_history=True)
    try:
        made = run()
        torch.cuda.synchronize(device)
        index = torch.cuda.current_device() if device.index is None else device.index
        trace = torch.cuda.memory._snapshot()["device_traces"][index]
        del made
    finally:
        torch.cuda.memory._record_memory_history(None)
    signs = {"alloc": 1, "free_completed": -1}
    return [signs[entry["action"]] * entry["size"] for entry in trace if entry["action"] in signs]


def free_workspaces() -> None:
    """Free the workspaces of cuBLAS and give back their segments; the next products of cuBLAS allocate workspaces again.

    Does nothing where a CUDA graph or a torch.cuda.MemPool has memory, since a graph that the user has recorded may write to a workspace.
    A graph that allocates nothing is not seen.
    """
    if allocator_backend() != "native":  # other allocators raise when asked for a snapshot
        return
    if all(_pool(segment) == (0, 0) for segment in torch.cuda.memory_snapshot()):
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def allocator_backend() -> str:
    """"native", the caching allocator; "cudaMallocAsync"; or "pluggable"."""
    return str(torch.cuda.get_allocator_backend())


def allocator_settings() -> str:
    """The settings of this process's caching allocator for CUDA, as PYTORCH_ALLOC_CONF has them.

    Each string that a process gives changes what it names, and leaves the rest; PyTorch remembers the last string, and tells some
    of what holds.
    """
    try:
        told = torch.cuda.memory._snapshot()["allocator_settings"]
        last = str(told["PYTORCH_CUDA_ALLOC_CONF"]) or _given_by_environment()  # an empty string has changed nothing
    except (KeyError, RuntimeError, TypeError):
        return _given_by_environment()
    earlier = []
    if told.get("expandable_segments") and "expandable_segments" not in last:
        earlier.append("expandable_segments:True")
    largest = told.get("max_split_size", -1)  # -1, and on some versions the largest number, where there is none
    if 0 < largest < 1 << 60 and "max_split_size_mb" not in last:
        earlier.append(f"max_split_size_mb:{largest >> 20}")
    return ",".join(filter(None, (*earlier, last)))


def _given_by_environment() -> str:
    return os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))


def pool_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The id of the pool that a GPU's tensor lies in: (0, 0), or that of a torch.cuda.MemPool or a CUDA graph."""
    address = tensor.data_ptr()
    for segment in torch.cuda.memory_snapshot():
        if segment["device"] == tensor.device.index and 0 <= address - segment["address"] < segment["total_size"]:
            return _pool(segment)
    return (0, 0)


def _pool(segment: Any) -> tuple[int, ...]:
    """The id of the pool that a segment of a snapshot belongs to."""
    return tuple(segment.get("segment_pool_id", (0, 0)))


@dataclass(frozen=True)
class Segment:
    """A segment of the caching allocator.  blocks: bytes, and whether they are used, in the order of their addresses.  whole: is it one
    for large blocks that came from the device at once, and not an expandable one?"""

    blocks: list[tuple[int, bool]]
    whole: bool


def segments(device: torch.device) -> list[Segment]:
    """The segments of a GPU by their addresses.  Blocks that tensors of the current stream cannot take count as used: those of other
    streams and of pools.  What lies between mapped parts of an expandable segment is free, and reserves nothing.
    """
    index = torch.cuda.current_device() if device.index is None else device.index
    stream = torch.cuda.current_stream(index).cuda_stream
    found: list[Segment] = []
    ends: dict[tuple[Any, ...], int] = {}  # of expandable segments
    for segment in sorted(torch.cuda.memory_snapshot(), key=lambda segment: segment["address"]):
        if segment["device"] != index:
            continue
        pool, large, expandable = _pool(segment), segment["segment_type"] == "large", segment.get("is_expandable")
        whole = large and not expandable
        if expandable:
            kind = segment["stream"], pool, large
            gap = segment["address"] - ends.get(kind, segment["address"])
            if gap:
                found.append(Segment(_allocatable([(gap, False)], large), whole))
            ends[kind] = segment["address"] + segment["total_size"]
        ours = segment["stream"] == stream and pool == (0, 0)
        blocks = [(block["size"], not ours or block["state"] != "inactive") for block in segment["blocks"]]
        found.append(Segment(_allocatable(blocks, large), whole))
    return found


def _allocatable(blocks: list[tuple[int, bool]], large: bool) -> list[tuple[int, bool]]:
    """The same bytes in blocks that requests of these sizes make: those of up to 1 MiB come from segments of small blocks, and no other."""
    made: list[tuple[int, bool]] = []
    for size, used in blocks:
        if not large:
            made += [(min(_SMALL, size - at), used) for at in range(0, size, _SMALL)]
        elif made and min(size, made[-1][0]) <= _SMALL:
            made[-1] = made[-1][0] + size, made[-1][1] or used
        else:
            made.append((size, used))
    return made


class OwnPool:
    """A pool of the caching allocator, for the allocations of this thread within `inside`."""

    def __init__(self, device: torch.device) -> None:
        self._device = torch.cuda.current_device() if device.index is None else device.index
        with torch.cuda.device(self._device):  # a pool is of the current device, and only there it lives on between its uses
            self._pool = torch.cuda.MemPool()

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        earlier = getattr(_inside, "pool", None)
        with torch.cuda.use_mem_pool(self._pool, self._device):
            _inside.pool = self
            try:
                yield
            finally:
                _inside.pool = earlier

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """The opposite, within `inside`."""
        torch._C._cuda_endAllocateToPool(self._device, self._pool.id)
        try:
            yield
        finally:
            torch._C._cuda_beginAllocateCurrentThreadToPool(self._device, self._pool.id)
            torch._C._cuda_releasePool(self._device, self._pool.id)  # the beginning counts as one more user

    def allocate(self, size: int) -> tuple[torch.Tensor, int]:
        made = torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", self._device))
        return made, made.data_ptr()

    def is_empty(self) -> bool:
        return not any(block["state"] != "inactive" for segment in torch.cuda.memory_snapshot(self._pool.id, include_traces=False)
                       if segment["segment_type"] == "large" for block in segment["blocks"])


class GraphMemory:
    """The pool of memory of CUDA graphs, for the allocations of a thread that records one of them."""

    def __init__(self) -> None:
        self.handle: Any = torch.cuda.graph_pool_handle()

    def inside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # all that is recorded comes from it

    def allocate(self, size: int) -> tuple[torch.Tensor, int]:
        made = torch.empty(size, dtype=torch.uint8, device="cuda")
        return made, made.data_ptr()

    def is_empty(self) -> bool:
        return False  # what is recorded stays


@functools.cache
def recording_stream(index: int) -> Any:
    """The stream of a GPU in which all graphs are recorded: a pool has blocks for each stream, and so have libraries workspaces."""
    return torch.cuda.Stream(index)


class CudaGraph:
    """What runs on a GPU within `record`, with a pool of memory of its own or another graph's, and again by `replay`.

    Nothing is computed while it is recorded.  PyTorch has the default generator of each device go on with each replay; generators:
    others that are drawn from.
    """

    def __init__(self, device: torch.device, before: "CudaGraph | None" = None, generators: Iterable[torch.Generator] = ()) -> None:
        self._device = torch.cuda.current_device() if device.index is None else device.index
        self._graph = torch.cuda.CUDAGraph()
        self.memory: GraphMemory = GraphMemory() if before is None else before.memory
        self._generators = [torch.cuda.default_generators[self._device], *generators]
        for generator in generators:
            self._graph.register_generator_state(generator)

    def record(self, run: Callable[[], Any]) -> Any:
        """The results of `run`, in memory that each replay writes to.  What it raises, and what ends the record, leaves the streams,
        the allocator and the generators as they were."""
        with torch.cuda.device(self._device):
            states = [generator.clone_state() for generator in self._generators]
            before = torch.cuda.current_stream()
            recording = torch.cuda.graph(self._graph, pool=self.memory.handle, stream=recording_stream(self._device), capture_error_mode="thread_local")
            try:
                recording.__enter__()
                made = run()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the first cause says more
                    self._end(recording, before, states)
                raise
            self._end(recording, before, states)
            return made

    def _end(self, recording: Any, before: Any, states: list[torch.Generator]) -> None:
        try:
            recording.__exit__(None, None, None)
        except RuntimeError:  # PyTorch leaves all that comes after the first failure
            torch.cuda.set_stream(before)
            with contextlib.suppress(RuntimeError):
                torch._C._cuda_endAllocateToPool(self._device, self.memory.handle)
            for generator, state in zip(self._generators, states):
                generator.graphsafe_set_state(state)
            raise

    def replay(self) -> None:
        self._graph.replay()


def tensor_over(t: torch.Tensor) -> torch.Tensor:
    """A tensor that lies where t does, and does not keep its memory."""
    storage = t.untyped_storage()
    there = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), t.device, storage.nbytes())
    return torch.empty(0, dtype=t.dtype, device=t.device).set_(there, t.storage_offset(), t.shape, t.stride())


def life_of(t: torch.Tensor) -> Callable[[], bool]:
    """Whether anybody holds a tensor, a graph of autograd for one, asked later."""
    ref = torch._C._WeakTensorRef(t)  # type: ignore[attr-defined]  # which PyTorch's stubs leave out
    return lambda: not ref.expired()


_inside = threading.local()  # pool: the one that this thread allocates from


def is_inside_pool() -> bool:
    """Do allocations of this thread come from a pool of a step's own?"""
    return getattr(_inside, "pool", None) is not None


@contextlib.contextmanager
def outside_of_pools() -> Iterator[None]:
    """What is allocated here outlives a step, so it does not come from a pool of the step's own."""
    pool = getattr(_inside, "pool", None)
    if pool is None:
        yield
        return
    with pool.left():
        yield
