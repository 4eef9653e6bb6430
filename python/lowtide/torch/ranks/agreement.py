"""One decision of several ranks: each hands in a value, and all get the same list, or all fail.

The ranks of a process group run the same code, and call `exchange` at the same places of it.  Values go through the store of the
process group: every rank writes its value, the first rank collects them and writes the result, the others read it.  A store
needs no collective and no communicator, so a rank that is missing is known by name, and a rank on a GPU may be busy.

A rank that fails writes its failure in the place of its next value.  The first rank passes on the first failure that it sees, or
the names of ranks that have written nothing in time.  So every exchange ends within the time limit on every rank.

Agreements are numbered in the store.  The first rank begins a number; another rank writes nothing before that, and takes the number
after its last one.  It passes over agreements that have ended because it did not come.  So a rank that has asked alone, and failed,
is in step with the others at the next call.
"""

from __future__ import annotations

import contextlib
import pickle
import time
import zlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch.distributed as dist

from ...frontend.errors import some
from ..compat.distributed import store_of
from .failure import Failure, RankError

_PIECE = 4 << 20  # bytes of a value of the store, which is limited
_FIRST_WAIT, _LONGEST_WAIT = 0.001, 0.1  # seconds between two looks at the store
_RESULT = "result"
_BEGUN = "begun"  # how many agreements the first rank has begun


class Agreement:
    """with Agreement.of(process_group) as ranks: values = ranks.exchange("what", value)

    rank, ranks: this rank and all of them, by their numbers in the whole job.  seconds: the time limit of an exchange.  over: why
    there are no more exchanges, once a rank has left.  known: the latest failure that all ranks know.  An exception that leaves the
    block fails the next exchange of the others.
    """

    def __init__(self, store: Any, rank: int, ranks: Sequence[int], seconds: float) -> None:
        """store: of these ranks, for all of their agreements."""
        self.rank, self.ranks, self.seconds = rank, tuple(ranks), seconds
        self.over: Exception | None = None
        self.known: Exception | None = None
        self._store, self._collecting = store, False
        self._number = self._round = 0  # of this agreement, once this rank takes part in it, and of its latest exchange
        self._last: list[str] = []  # what this rank has written in the latest round

    @classmethod
    def of(cls, group: dist.ProcessGroup | None = None) -> Agreement:
        """The next agreement of the ranks of a process group, of all ranks by default; its time limit is that of the group's store."""
        group = group or dist.group.WORLD
        assert group is not None, "there is a process group"
        store, name, seconds = store_of(group)
        return cls(dist.PrefixStore(f"lowtide/{name}", store), dist.get_rank(), dist.get_process_group_ranks(group), seconds)

    @property
    def is_first(self) -> bool:
        """Is this the rank that decides what one rank decides?"""
        return self.rank == self.ranks[0]

    def exchange(self, stage: str, value: object = None, *, error: Exception | None = None, more: float = 0) -> list[Any]:
        """The values of all ranks, in the order of `ranks`.

        stage: what is exchanged, the same words on all ranks, for messages.  error: this rank has none to give, but goes on.
        more: seconds that a rank may take beyond the limit.

        Raises `error`; the error of another rank as failure.py says; and RankError if a rank is missing or elsewhere.
        """
        if self.over is not None:
            raise self.over
        done: list[str] = []
        result: Any = self._missing_first(stage, self.seconds + more)
        if result is None:
            self._round += 1
            done, self._last = self._last, []
            failure = None if error is None else Failure.of(self.rank, error, left=False)
            self._write(str(self.rank), (stage, value, failure))
            result = self._result(stage, more)
        if isinstance(result, Failure):
            raised = error if error is not None and result.rank == self.rank else result.raised()
            self.over = raised if result.left else None
            raise self.on_all(raised)
        with contextlib.suppress(RuntimeError):  # a store that forgets nothing
            for key in done:  # all ranks have come to this round, so nobody reads it any more
                self._store.delete_key(key)
        return list(result)

    def first(self, stage: str, decide: Callable[[], Any], *, more: float = 0) -> Any:
        """What `decide` returns on the first rank, on all of them; or its exception as of `exchange`."""
        value, error = None, None
        if self.is_first:
            try:
                value = decide()
            except Exception as raised:
                error = raised
        return self.exchange(stage, value, error=error, more=more)[0]

    def on_all(self, error: Exception) -> Exception:
        """An error that all ranks raise, since they find it in what they have exchanged."""
        self.known = error
        return error

    def fail(self, error: BaseException) -> None:
        """This rank leaves; the others fail at their next exchange."""
        if self.over is not None:
            return
        failure = Failure.of(self.rank, error, left=True)
        try:
            missing = self._missing_first("", self.seconds)
            self.over = failure.raised()
            if missing is not None:
                return
            if self._collecting:
                self._write(_RESULT, failure)
                return
            self._round += 1
            self._write(str(self.rank), ("", None, failure))
            if self.is_first:
                self._write(_RESULT, failure)
        except RankError:  # the store is gone, and so is everybody else
            pass

    def __enter__(self) -> Agreement:
        if self.is_first:
            self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.fail(error)

    def _result(self, stage: str, more: float) -> Any:
        """What has become of an exchange, once this rank has written its value."""
        if not self.is_first:  # the first rank waits for the others as long, and is then to write
            result = self._read(_RESULT, self.seconds * 2 + more)
            return Failure.missing([self.ranks[0]], stage, self.seconds * 2 + more) if result is None else result
        self._collecting = True
        result = self._collected(stage, self.seconds + more)
        self._write(_RESULT, result)
        self._collecting = False
        return result

    # ---- the number of this agreement

    def _begin(self) -> None:
        """The first rank begins the next agreement, unless it has begun this one."""
        self._number = self._number or self._added(_BEGUN, 1)

    def _missing_first(self, stage: str, seconds: float) -> Failure | None:
        """This rank takes part from now on.  A failure if the first rank has not begun within that time."""
        if self.is_first:
            self._begin()
        own = f"latest of {self.rank}"  # the number of the latest agreement that this rank has taken part in, or passed over
        deadline, wait = time.monotonic() + seconds, _FIRST_WAIT
        while not self._number:
            if self._added(_BEGUN, 0) > self._added(own, 0):
                self._number, self._round = self._added(own, 1), 1
                result = self._written(_RESULT)
                self._round = 0
                if isinstance(result, Failure) and self.rank in result.absent:
                    self._number = 0
            elif time.monotonic() > deadline:
                return Failure.missing([self.ranks[0]], stage, seconds)
            else:
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        return None

    # ---- the store

    def _added(self, name: str, more: int) -> int:
        """A count in the store, which becomes so much more."""
        try:
            return int(self._store.add(name, more))
        except RuntimeError as error:
            raise self._without_store(error) from error

    def _collected(self, stage: str, seconds: float) -> list[Any] | Failure:
        """What all ranks have written within that time, or why not."""
        deadline = time.monotonic() + seconds
        found: dict[int, Any] = {}
        wait = _FIRST_WAIT
        while len(found) < len(self.ranks):
            for rank in self.ranks:
                if rank in found or (written := self._written(str(rank))) is None:
                    continue
                its_stage, found[rank], failure = written
                if failure is not None:
                    return failure
                if its_stage != stage:
                    return Failure.elsewhere(rank, its_stage, self.rank, stage)
            if len(found) < len(self.ranks):
                if time.monotonic() > deadline:
                    return Failure.missing([r for r in self.ranks if r not in found], stage, seconds)
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        return [found[rank] for rank in self.ranks]

    def _read(self, name: str, seconds: float) -> Any:
        """What is written under a name within that time; None if nothing is."""
        deadline, wait = time.monotonic() + seconds, _FIRST_WAIT
        while (written := self._written(name)) is None and time.monotonic() < deadline:
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        return written

    def _written(self, name: str) -> Any:
        key = f"{self._number}/{self._round}/{name}"
        try:
            if not self._store.check([key]):
                return None
            data = b"".join(self._store.get(f"{key}/{i}") for i in range(int(self._store.get(key))))
        except RuntimeError as error:
            raise self._without_store(error) from error
        return pickle.loads(zlib.decompress(data))  # of the ranks of one job, which trust each other

    def _write(self, name: str, value: object) -> None:
        key, data = f"{self._number}/{self._round}/{name}", zlib.compress(pickle.dumps(value), 1)
        pieces = [data[i:i + _PIECE] for i in range(0, len(data), _PIECE)]
        try:
            for i, piece in enumerate(pieces):
                self._store.set(f"{key}/{i}", piece)
            self._store.set(key, str(len(pieces)))
            self._last += [key, *(f"{key}/{i}" for i in range(len(pieces)))]
        except RuntimeError as error:
            raise self._without_store(error) from error

    def _without_store(self, error: Exception) -> Exception:
        self.over = RankError("the store of the process group cannot be reached, which the process of rank 0 keeps as a rule: "
                              f"{some(str(error).splitlines(), 1)}", (0,))
        return self.over
