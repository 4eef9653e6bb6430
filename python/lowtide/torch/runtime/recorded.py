"""The sides of a step as CUDA graphs: recorded once, and replayed by one call each.

A graph reads and writes the same memory each time.  So arguments that come in new tensors are copied into tensors of the record's
own, and results are copied out of the graph's memory.  Parameters and buffers are read, and written, where they lie, and handed out
as they are; when one has moved, or a setting of an optimizer has changed, the sides are recorded anew.  The first steps run as ever:
libraries choose their kernels and take their workspaces then.

What the forward saves lies in memory that both graphs share.  The backward is recorded with the only references to it, so that its
frees are those of the plan.  Autograd gets tensors over that memory which do not keep it.  While a backward is still to come, or a graph
of autograd is held, another forward runs as ever.  So does a backward of what another forward has saved, or a hook has put elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable
from typing import Any

import torch

from ..compat.cuda import CudaGraph, life_of, tensor_over
from .arranged import ArrangedBlock

_WARM_UP = 2  # steps
_MOST = 16  # records of one step, of which each takes about as long as a step without a record

Run = Callable[[list[Any]], Any]


class NotRecorded(Exception):
    """A step cannot be recorded; the text says why."""


class Recorded:
    """Both sides of a step.

    stay: the places of arguments of the forward that lie where they lay, and are not copied.  handed_out: how many of its results the
    caller gets; it saves the others.  tangents: how many arguments of the backward are none of these.  state: what else the code reads
    on the host, in a form that can be compared.  say: tells, once, why a step is not recorded.  block: in which all that the step
    allocates is arranged, if it is.
    """

    def __init__(self, stay: Container[int], handed_out: int, say: Callable[[str], None], state: Callable[[], Any] = lambda: None,
                 generators: Iterable[torch.Generator] = (), block: ArrangedBlock | None = None) -> None:
        self._block = block
        self._stay, self._handed_out, self._state, self._say, self._generators = stay, handed_out, state, say, tuple(generators)
        self._steps = self._records = 0
        self._is_off = False
        self._device = torch.device("cpu")
        self._forward: _Side | None = None
        self._backward: _Side | None = None
        self._key: Any = None
        self._saved: list[Any] = []  # of the forward that was recorded and has no backward yet
        self._arranged: list[Any] = []  # results of the forward, which lie in the block until the backward has been recorded
        self._places: list[int] = []  # where what it saves lies
        self._is_waiting: Callable[[], bool] = lambda: False
        self._is_to_come = False  # the backward of the last replay

    def forward(self, run: Run) -> Run:
        def forward(args: list[Any]) -> Any:
            self._steps += 1
            if self._is_off or self._steps <= _WARM_UP or self._is_waiting():
                return run(args)
            key = (self._key_of(args), self._state())
            if self._forward is None or key != self._key:
                if not self._record_forward(run, args, key):
                    return run(args)
            assert self._forward is not None, "as it was recorded"
            return self._hand_out(self._forward.replay(args))

        return forward

    def _key_of(self, args: list[Any]) -> tuple[Any, ...]:
        """What each argument is, as far as the record depends on it."""
        return tuple((t.data_ptr() if i in self._stay else None, t.shape, t.stride()) if isinstance(t, torch.Tensor) else t
                     for i, t in enumerate(args))

    def _record_forward(self, run: Run, args: list[Any], key: Any) -> bool:
        self._records += 1
        self._forward = self._backward = None
        try:
            if self._records > _MOST:
                raise NotRecorded(f"it was recorded {_MOST} times, since its parameters move, or settings of its optimizer change: give a "
                                  "setting such as lr as a tensor on the device")
            device = next((t.device for t in args if _is_on_device(t)), None)
            if device is None:
                raise NotRecorded("none of its arguments is on the device")
            graph, self._device = CudaGraph(device, generators=self._generators), device
            with self._recording(graph):
                self._forward, results = _Side.record(run, args, self._stay, graph)
        except Exception as error:  # whatever a stream does not allow while it is recorded
            self._give_up(error)
            return False
        self._key, self._saved = key, results[self._handed_out:]
        self._arranged = results[:self._handed_out] if self._block is not None and self._saved else []
        self._places = [t.data_ptr() for t in self._saved if _is_on_device(t)]
        return True

    def _hand_out(self, results: list[Any]) -> list[Any]:
        """For the caller copies of results, for the backward what does not keep its memory."""
        saved = [tensor_over(t) if _is_on_device(t) else t for t in results[self._handed_out:]]
        first = next((t for t in saved if _is_on_device(t)), None)
        if first is not None:
            self._is_waiting, self._is_to_come = life_of(first), True
        assert self._forward is not None, "as it was replayed"
        through = self._forward.through
        return [*(t.clone() if isinstance(t, torch.Tensor) and i not in through else t for i, t in enumerate(results[:self._handed_out])), *saved]

    def backward(self, run: Run, tangents: int) -> Run:
        def backward(args: list[Any]) -> Any:
            count = len(args) - tangents
            if self._forward is None or [t.data_ptr() for t in args[:count] if _is_on_device(t)] != self._places or not self._places:
                return run(args)
            if not self._is_to_come:
                raise RuntimeError("a second backward of a step that runs as a CUDA graph (cuda_graph=True): the first has written over what the "
                                   "forward had saved; leave cuda_graph out where graphs are retained")
            self._is_to_come = False
            if self._backward is None and not self._record_backward(run, args, count):
                try:
                    return run(args)
                finally:
                    self._forward = None  # in whose pool the saved values lie
            assert self._backward is not None, "as it was recorded"
            del args[:count]
            return [t.clone() if isinstance(t, torch.Tensor) else t for t in self._backward.replay(args)]

        return backward

    def _record_backward(self, run: Run, args: list[Any], count: int) -> bool:
        saved, self._saved = self._saved, []
        assert self._forward is not None, "what it saved is there"
        graph = CudaGraph(self._device, self._forward.graph, self._generators)
        try:
            with self._recording(graph):
                self._backward, _ = _Side.record(run, args[count:], (), graph, saved)
        except Exception as error:
            self._give_up(error)
            return False
        self._arranged = []
        return True

    def _recording(self, graph: CudaGraph) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._block is None else self._block.recording(graph.memory)

    def _give_up(self, error: Exception) -> None:
        self._is_off = True
        self._saved = self._arranged = []
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        self._say(line if isinstance(error, NotRecorded) else f"it does something that cannot be recorded: {type(error).__name__}: {line}")


class _Side:
    """One recorded side.  given: its arguments: tensors of its own, or where they lie.  results: over its memory, which they do not
    keep.  through: which results are arguments that lie where they lay, and their places."""

    def __init__(self, graph: CudaGraph, given: list[Any], results: list[Any], copied: list[int], through: dict[int, int]) -> None:
        self.graph, self._given, self._results, self._copied, self.through = graph, given, results, copied, through

    @staticmethod
    def record(run: Run, args: list[Any], stay: Container[int], graph: CudaGraph, before: list[Any] | None = None) \
            -> tuple[_Side, list[Any]]:
        """The side, and its results.  before: arguments in front of these, to which nobody else has a reference."""
        copied = [i for i, t in enumerate(args) if isinstance(t, torch.Tensor) and i not in stay and t.numel()]
        for i in copied:
            if not _is_on_device(args[i]):
                raise NotRecorded(f"argument {i}, of shape {list(args[i].shape)}, is a tensor on the host, which a record would read once "
                                  "and for all: move it to the device")
        given = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t) if i in copied else t
                 for i, t in enumerate(args)]
        all_ = [*(before or ()), *given]
        if before:
            before.clear()
        results = list(graph.record(lambda: run(all_)))
        over = [tensor_over(t) if _is_on_device(t) else t for t in results]
        places = {id(t): i for i, t in enumerate(given) if isinstance(t, torch.Tensor) and i not in copied}
        through = {k: places[id(t)] for k, t in enumerate(results) if id(t) in places}
        return _Side(graph, given, over, copied, through), results

    def replay(self, args: list[Any]) -> list[Any]:
        for i in self._copied:
            self._given[i].copy_(args[i])
        results = list(self._results)
        for k, i in self.through.items():
            results[k] = args[i]
        args.clear()
        self.graph.replay()
        return results


def _is_on_device(t: Any) -> bool:
    return isinstance(t, torch.Tensor) and t.device.type in DEVICES


DEVICES = ("cuda",)
