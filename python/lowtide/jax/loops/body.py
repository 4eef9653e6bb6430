"""The bodies of a LoopPair as one program of one round: forward, barrier, backward.

What is live at the barrier is what the rounds stack.  A limit on it is a limit of the planner, and what is missing behind the
barrier is computed again there.
"""

from __future__ import annotations

from ...frontend.errors import BudgetError
from ...frontend.planning.constraints import Constraints
from ...frontend.planning.planner import plan_program
from ...frontend.planning.schedule import Schedule
from ...frontend.planning.sharing import GraphToPlan
from ...frontend.price import Price
from ..program.program import Program, program_of_round
from ..settings import Settings
from ..tracing.equations import FlatStep, Value
from ..tracing.flatten import without_unused
from .pair import LoopPair

_ROOM = 4  # times the peak without a plan: more than any plan takes


def body_program(pair: LoopPair, price: Price) -> Program:
    """The program of one round."""
    outputs = list(dict.fromkeys(v for v in (*pair.results, *pair.made) if not v.known))
    inputs = list(dict.fromkeys([*pair.constants.values(), *pair.slices.values(), *pair.given_constants.values(),
                                 *pair.given_slices.values()]))
    known = [*inputs, *pair.carry, *pair.tangents]
    step = without_unused(FlatStep(pair.equations, known, outputs, pair.captured, [False] * len(known),
                                   [f"input {i}" for i in range(len(known))]))
    handed = list(dict.fromkeys(v for v in pair.results if not v.known))
    return program_of_round(step, price, pair.before, pair.carry, pair.tangents, handed)


def body_schedule(program: Program, settings: Settings, share: float) -> Schedule | None:
    """A schedule that saves at most this share of what the bodies save without a plan, of what a plan can choose; None if
    none is found."""
    least, most = saved_range(program)
    limit = least + int(share * (most - least))
    try:
        return plan_program(program, settings, Constraints(save_limit=limit), _ROOM * program.graph.own_peak)[0]
    except BudgetError:
        return None


def saved_range(program: Program) -> tuple[int, int]:
    """Bytes that are live between forward and backward, without what the round reads: the fewest, with its carry, and those
    without a plan."""
    fewest, most = GraphToPlan(program, 0, 0).saves
    carry = sum(program.graph.tensor(t).bytes for t in program.graph.op(0).outputs)
    return min(most, fewest + carry), most


def saved_by(program: Program, schedule: Schedule) -> list[Value]:
    """The values made before the barrier that are read behind it, before they are made there."""
    assert program.barrier is not None, "a round has one"
    at = schedule.ops.index(program.barrier)
    made = {v for op in schedule.ops[:at] for v in program.groups[op].makes}
    saved: dict[Value, None] = {}
    again: set[Value] = set()
    for op in schedule.ops[at + 1:]:
        saved |= dict.fromkeys(v for v in program.groups[op].reads if v in made and v not in again)
        again |= set(program.groups[op].makes)
    return list(saved)
