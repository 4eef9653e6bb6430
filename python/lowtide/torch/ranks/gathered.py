"""What FSDP2 holds on a rank at each pass of a step.

A unit is a group of parameters that FSDP2 gathers together.  Its hooks run between the graphs: before a unit's forward all ranks'
shards are gathered into a flat buffer and copied out to whole parameters, which are freed after the forward and gathered again before
the backward; after the backward the whole gradients are copied to the input of a reduce-scatter, whose result is the shards' gradients.
A rehearsal records the events of one forward; the backward is its mirror image.

    forward   enter     whole parameters; the flat buffer stays until the next unit is copied out
    backward  leave     whole parameters again; the flat buffer of the unit before, gathered ahead
              enter     gradients are reduced; the input of the reduction stays until the next one

Shards of parameters stand all the time (`always`), those of gradients from the first reduction on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Unit:
    """Parameters that are gathered together, in bytes.

    always: this rank's shards of parameters, and gradients that add up from step to step.  gradients: this rank's shards of those that
    do not.  whole: the gathered parameters.  flat: the buffer that they are copied from.
    gather, reduce: what the collectives take for their own time beside that.  reduced: the input of the reduction.
    left: what of `whole` stays after the forward.  lasts: does the flat buffer outlive the copy in a forward?
    frees: are whole parameters freed after a backward?  again: are they gathered for the backward?
    before: units that are gathered with the beginning of its backward; None: the one whose forward ended before its own.
    """

    always: int
    gradients: int
    whole: int
    flat: int
    reduced: int
    gather: int = 0
    reduce: int = 0
    left: int = 0
    lasts: bool = True
    frees: bool = True
    again: bool = True
    before: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Event:
    """kind: "gather" (the collective), "copy" (to whole parameters), "enter", "leave" (of its forward), or "run".  of: the unit; of a
    run the number of a graph.  late: no input of the unit has a gradient, so that its gradients are reduced when the backward ends."""

    kind: str
    of: int
    late: bool = False


@dataclass(frozen=True)
class Moment:
    """Bytes that FSDP2 holds, shards apart, while a graph's forward or backward runs.  collective: or just before that forward, or after
    that backward, when its hooks run.  run: the index of the run among all."""

    run: int
    backward: bool
    collective: bool
    held: int


@dataclass
class _State:
    whole: dict[int, int] = field(default_factory=dict)  # by unit
    flats: dict[int, int] = field(default_factory=dict)
    copied: int | None = None  # the unit whose flat buffer waits for the next copy
    made: dict[int, int] = field(default_factory=dict)  # whole gradients
    reduced: list[int] = field(default_factory=list)
    gradients: dict[int, int] = field(default_factory=dict)

    @property
    def held(self) -> int:
        return sum((*self.whole.values(), *self.flats.values(), *self.made.values(), *self.reduced, *self.gradients.values()))


def moments(units: Sequence[Unit], events: Sequence[Event], made: Sequence[dict[int, int]], reductions: int = 1) -> Iterator[Moment]:
    """The moments of a step whose forward has these events, in their order.

    made: of each run the bytes of gradients of gathered parameters that its backward makes, by unit.  reductions: inputs of these that
    are kept at most.
    """
    state = _State()
    yield from _forward(units, events, state)
    yield from _backward(units, events, made, reductions, state)


def _forward(units: Sequence[Unit], events: Sequence[Event], state: _State) -> Iterator[Moment]:
    run = 0
    for event in events:
        of = event.of
        if event.kind == "gather":
            state.flats[of] = units[of].flat
            yield Moment(run, False, True, state.held + units[of].gather)
        elif event.kind == "copy":
            if state.copied is not None:
                state.flats.pop(state.copied, None)
            state.whole[of] = units[of].whole
            state.copied = of
            yield Moment(run, False, True, state.held)
            if not units[of].lasts:
                state.flats.pop(of, None)
        elif event.kind == "run":
            yield Moment(run, False, False, state.held)
            run += 1
        elif event.kind == "leave":
            state.whole[of] = units[of].left
    if state.copied is not None:
        state.flats.pop(state.copied, None)


def _backward(units: Sequence[Unit], events: Sequence[Event], made: Sequence[dict[int, int]], reductions: int,
              state: _State) -> Iterator[Moment]:
    left = [event.of for event in events if event.kind == "leave"]
    run = sum(event.kind == "run" for event in events)
    late: list[int] = []

    def gather(of: int) -> Iterator[Moment]:
        if of not in state.flats and state.whole.get(of, 0) < units[of].whole and units[of].again:
            state.flats[of] = units[of].flat
            yield Moment(run, True, True, state.held + units[of].gather)

    def reduce(of: int) -> Iterator[Moment]:
        unit, gradients = units[of], state.made.get(of, 0)
        if unit.frees:
            state.whole.pop(of, None)
        if not gradients:
            return
        del state.reduced[:max(0, len(state.reduced) - reductions + 1)]
        state.reduced.append(unit.reduced)
        state.gradients[of] = unit.gradients
        yield Moment(run, True, True, state.held + unit.reduce)
        state.made.pop(of)

    for event in reversed(events):
        of = event.of
        if event.kind == "leave":
            left.pop()
            yield from gather(of)
            if of in state.flats:
                state.whole[of] = units[of].whole
                yield Moment(run, True, True, state.held)
                state.flats.pop(of)
            before = units[of].before
            for other in (left[-1:] if before is None else before):
                yield from gather(other)
        elif event.kind == "run":
            run -= 1
            yield Moment(run, True, False, state.held)
            for unit, size in made[run].items():
                state.made[unit] = state.made.get(unit, 0) + size
        elif event.kind == "enter" and event.late:
            late.append(of)
        elif event.kind == "enter":
            yield from reduce(of)
    for of in sorted(late):
        yield from reduce(of)
