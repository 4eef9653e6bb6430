"""Results for people: a line for each result, a table of the plans, and the failures with their explanations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .meanings import FAULTS, NOTES
from .section import Result

_PLAN_COLUMNS = ("peak", "plan", "budget", "equal", "predicted", "measured", "least")
_NAME = 36


def line(result: Result, seconds: float, width: int) -> str:
    """One result in one line of at most so many characters."""
    mark = "!" if result["faults"] else " "
    text = f"[{seconds:5.0f} s] {mark} {result['section']}: {result['what']}: {_facts(result)}"
    return text if len(text) <= width else text[: width - 3] + "..."


def _facts(result: Result) -> str:
    words = [_fault(fault) for fault in result["faults"]]
    if is_plan(result):
        cells = dict(zip(_PLAN_COLUMNS, _row(result)))
        return ", ".join([*words, f"peak {cells['peak']} of {cells['budget']} MiB", "equal" if result["equal"] else "not equal",
                          f"time {cells['predicted']} % predicted, {cells['least']} % at least"])
    left = ("section", "what", "faults", "notes", "trace", "output", "failed")
    return ", ".join(words + [f"{key} {value}" for key, value in result.items() if key not in left])


def _fault(fault: str) -> str:
    return {"left out": "no time was left", "time": "stopped at its time limit", "died": "its process ended"}.get(fault, fault)


def is_plan(result: Result) -> bool:
    return {"peak_mib", "plan_mib", "budget_mib", "predicted"} <= result.keys()


def _row(result: Result) -> list[str]:
    def signed(key: str) -> str:
        return f"{result[key]:+.1f}" if result.get(key) is not None else "-"

    return [*(f"{result[key]:.1f}" for key in ("peak_mib", "plan_mib", "budget_mib")), "yes" if result["equal"] else "no",
            signed("predicted"), signed("measured"), signed("measured_least")]


def table(results: Iterable[Result]) -> str:
    """The plans: MiB, whether all bits are eager's, and the extra time in per cent; empty if there are none."""
    rows = [(result["what"], _row(result)) for result in results if is_plan(result)]
    if not rows:
        return ""
    widths = [max(len(head), *(len(row[i]) for _, row in rows)) for i, head in enumerate(_PLAN_COLUMNS)]

    def text(name: str, cells: Sequence[str]) -> str:
        return " ".join([f"{name[:_NAME]:{_NAME}}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths))])

    return "\n".join([text("MiB, and extra time in %", _PLAN_COLUMNS), *(text(name, row) for name, row in rows)])


def verdict(results: Sequence[Result]) -> str:
    """The faults, each with the results that have it and its explanation; then the notes."""
    wrong = sum(bool(result["faults"]) for result in results)
    lines = [f"{wrong} of {len(results)} results are not as they should be{':' if wrong else '.'}"]
    lines += _kinds(results, "faults", FAULTS)
    notes = _kinds(results, "notes", NOTES)
    return "\n".join(lines + (["To know:", *notes] if notes else []))


def _kinds(results: Sequence[Result], of: str, meanings: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for kind, meaning in meanings.items():
        places = [_place(result, kind) for result in results if kind in result[of]]
        if places:
            shown = "; ".join(places[:6]) + (f"; and {len(places) - 6} more" if len(places) > 6 else "")
            lines += [f"  {kind}: {meaning}", f"      {shown}"]
    return lines


def _place(result: Result, kind: str) -> str:
    more: Any = {"budget": _above, "rounding": _above, "plan": _above, "error": lambda r: f" ({r['error']}: {r['text'][:80]})"}
    return f"{result['section']}, {result['what']}" + (more[kind](result) if kind in more else "")


def _above(result: Result) -> str:
    if not is_plan(result):
        return ""
    return (f" (peak {result['peak_mib']:.1f}, requested {result['requested_mib']:.1f}, plan {result['plan_mib']:.1f}, "
            f"budget {result['budget_mib']:.1f} MiB)")
