"""A scan and the scan of its backward, which reads what the first one has stacked for it.

JAX makes both of a differentiated `lax.scan`.  What the forward stacks, once for each round, is often most of a step's memory.
A `LoopPair` has the bodies of both as one flat list of equations, of one round: what one body stacks and the other one reads
is one value there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ..compat import has_marks
from ..tracing.equations import Equation, FlatStep, Value
from ..tracing.flatten import Flattening


@dataclass(eq=False)
class LoopPair:
    """forward, backward: the two scans.  stacked: values of the step that only pass from one to the other.

    Of one round, as values of `equations`: constants, carry, slices: what the forward's body reads.  results: what it hands out
    beside the stacked values: the carry, then slices of results.  tangents, given: what only the backward's body reads, its carry,
    then its constants and slices by value of the step.  made: what it hands out.
    before: the equations of the forward's body.  captured: arrays that the bodies have captured.
    """

    forward: Equation
    backward: Equation
    stacked: list[Value]
    equations: list[Equation]
    constants: dict[Value, Value]
    carry: list[Value]
    slices: dict[Value, Value]
    results: list[Value]
    tangents: list[Value]
    given_constants: dict[Value, Value]
    given_slices: dict[Value, Value]
    made: list[Value]
    captured: dict[Value, object]
    before: frozenset[Equation]

    @property
    def bytes(self) -> int:
        """Of what is stacked."""
        return sum(value.bytes for value in self.stacked)

    @property
    def marked(self) -> bool:
        """Has the caller marked what is in it with jax.checkpoint?"""
        return has_marks(self.backward.params["jaxpr"].jaxpr)

    @property
    def rounds(self) -> int:
        return int(self.forward.params["length"])

    @property
    def kept_results(self) -> list[Value]:
        """The forward's results that others read, too: the carry, then stacked ones."""
        passed = set(self.stacked)
        return [value for value in self.forward.outputs if value not in passed]


def loop_pairs(step: FlatStep) -> Iterator[LoopPair]:
    """The scans of a step with their backwards."""
    readers: dict[Value, list[Equation]] = defaultdict(list)
    for equation in step.equations:
        for value in set(equation.inputs):
            readers[value].append(equation)
    outputs, taken = set(step.outputs), set()
    for forward in step.equations:
        if forward.name != "scan" or forward.effects or forward in taken:
            continue
        carries = forward.params["num_carry"]
        passed = [v for v in forward.outputs[carries:] if v not in outputs and len(readers[v]) == 1]
        for backward in dict.fromkeys(readers[v][0] for v in passed):
            if not _fits(forward, backward) or backward in taken:
                continue
            slices = set(slices_of(backward))
            stacked = [v for v in passed if readers[v] == [backward] and v in slices]
            if stacked:
                taken |= {forward, backward}
                yield _paired(forward, backward, stacked)
                break


def _fits(forward: Equation, backward: Equation) -> bool:
    if backward.name != "scan" or backward.effects:
        return False
    a, b = forward.params, backward.params
    return bool(a["length"] == b["length"] > 1 and a["reverse"] != b["reverse"])


def slices_of(scan: Equation) -> list[Value]:
    """The values of which each round reads a slice."""
    return scan.inputs[scan.params["num_consts"] + scan.params["num_carry"]:]


def _paired(forward: Equation, backward: Equation, stacked: list[Value]) -> LoopPair:
    flat, passed = Flattening(), set(stacked)
    constants, carry, slices = _ends(forward)
    results = _inlined(flat, forward, constants, carry, slices)
    of_round = {v: r for v, r in zip(forward.outputs, results, strict=True) if v in passed}
    before = frozenset(flat.equations)
    its_constants, tangents, its_slices = _ends(backward)
    made = _inlined(flat, backward, its_constants | constants, tangents, its_slices | slices | of_round)
    return LoopPair(forward, backward, stacked, flat.equations, constants, carry, slices,
                    [r for v, r in zip(forward.outputs, results, strict=True) if v not in passed], tangents,
                    {v: mine for v, mine in its_constants.items() if v not in constants},
                    {v: mine for v, mine in its_slices.items() if v not in of_round and v not in slices}, made, flat.constants, before)


def _ends(scan: Equation) -> tuple[dict[Value, Value], list[Value], dict[Value, Value]]:
    """New values of one round: for constants and slices by the values of the step; of the carry."""
    inside = [Value(v.aval) for v in scan.params["jaxpr"].jaxpr.invars]
    first, then = scan.params["num_consts"], scan.params["num_consts"] + scan.params["num_carry"]
    return (dict(zip(scan.inputs[:first], inside[:first], strict=True)), inside[first:then],
            dict(zip(scan.inputs[then:], inside[then:], strict=True)))


def _inlined(flat: Flattening, scan: Equation, constants: dict[Value, Value], carry: list[Value],
             slices: dict[Value, Value]) -> list[Value]:
    closed, first = scan.params["jaxpr"], scan.params["num_consts"]
    arguments = [*(constants[v] for v in scan.inputs[:first]), *carry, *(slices[v] for v in slices_of(scan))]
    return flat.inline(closed.jaxpr, [flat.constant(array) for array in closed.consts], arguments, scan.scope)
