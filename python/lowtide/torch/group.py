"""The regions of one model: what stands beside each, and when they are planned together.

With `optimize` and inputs all regions are found before the first step (`share_budget`).  Otherwise each is planned when
it is first called, beside what stands then, and the record of its calls (calls.py) tells what else stands beside it.
Where that breaks the budget the step says so, and before the next one all regions of that step, and of those that
share a region with it, are planned together (`_plan_together`): each is compiled anew when it is called next.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from . import calls as record
from .beside import Said
from .calls import Calls, Region
from .errors import OverBudgetWarning, size_text
from .program import Program
from .meter import bytes_held
from .settings import Settings
from .sharing import Beside, Event, Found, Share, input_bytes, one_after_another, share
from .storages import Sizes, gradients_by_leaf, is_trained, storages

_PLANS = 8  # of one region, with others; a model that calls its regions in ever new orders has to end somewhere


@dataclass
class Group:
    """The regions of one model.

    trained: storages of parameters that the optimizer keeps a state for, with their bytes.  held: bytes of the
    model and of its inputs, where a region's own do not tell (on a CPU).  options: kept because its id says which
    model a region is of.

    found: regions that were compiled to be planned later, by number.  order: the numbers in the order of one
    forward's calls; a region may run more than once.  shares: by the hash of a region's graph.  budget: in
    bytes, once it is shared.  calls: what has run.
    """

    trained: dict[int, int] = field(default_factory=dict)
    held: int = 0
    options: Any = None
    found: dict[int, Found] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    shares: dict[str, Share] = field(default_factory=dict)
    budget: int | None = None
    calls: Calls = field(default_factory=Calls)
    regions: list[Region] = field(default_factory=list)
    said: Said = field(default_factory=Said)
    lock: Any = field(default_factory=threading.RLock)  # never held while kernels run
    modules: list[weakref.ref[torch.nn.Module]] = field(default_factory=list)
    _first: Region | None = None  # of the burst that begins
    _is_share: bool = False  # the budget, of one region's peak
    _said: bool = False  # that this burst breaks the budget

    def train(self, tensors: Iterable[Any]) -> None:
        """Note which of these tensors the optimizer keeps a state for."""
        self.trained |= storages(t for t in tensors if is_trained(t))

    def share_budget(self, budget: int | str, order: str) -> None:
        """Share the budget among the regions found, for each of their calls.  Raises BudgetError."""
        calls = [self.found[number] for number in self.order if number in self.found] or list(self.found.values())
        self.shares = share(one_after_another(calls, self.held), budget, order, self.held)
        self.budget = next(iter(self.shares.values())).budget

    # ---- when a region is planned

    def enter(self, settings: Settings, program: Program, device: torch.device, inputs: list[Any],
              gradients: int, find: bool) -> Found:
        """A region that is compiled now; find: to be planned with all others before anything runs."""
        self._is_share = self.budget is None and "%" in str(settings.budget)
        given, state = bytes_held(_tensors(inputs)), settings.state(device, self.trained)
        if find:
            return Found(program, settings.standing(given, device) + state, gradients)
        standing = settings.standing(given + self._seen(inputs, True), device)
        # who gives a reserve has counted what is seen to stand; beside regions that were found together it is more
        covers = standing if settings.reserve is not None and not self.shares else 0
        return Found(program, standing + state, gradients, covers)

    def beside(self, found: Found, inputs: list[Any], with_gradients: bool) -> Beside:
        """What stands beside it."""
        more = max(self.held - input_bytes(found.program) - self.calls.beside(inputs), 0)
        return Beside(found.room(more + self._seen(inputs, with_gradients)), before=self.calls.waiting_bytes())

    def _seen(self, inputs: list[Any], with_gradients: bool) -> int:
        """Bytes that are known to stand beside a region with these inputs."""
        gradients = self.calls.gradients() | gradients_by_leaf(inputs) if with_gradients else {}
        return self.calls.waiting_bytes() + self.calls.beside(inputs) + sum(gradients.values())

    def bytes_of(self, trains: bool) -> int | None:
        """The budget in bytes, if it is known before the region's own graph is; a forward alone has that of the
        training steps."""
        if self.budget is not None or trains:
            return self.budget
        return max((r.report.budget for r in self.regions if r.report and r.trains), default=None)

    def same(self, region: Region, program: Program, beside: Beside) -> Region | None:
        """A region of the same code that was planned alone, with the same kernels and sizes and the same beside it."""
        return next((r for r in self.regions if r is not region and r.report and not r.plans and r.beside == beside
                     and r.trains == region.trains and _signature(r.found.program) == _signature(program)), None)

    # ---- while regions run (a model may run in several threads)

    def belongs_to(self, module: torch.nn.Module) -> None:
        """The code of the model's regions is that module's; it is looked at when the first step is over."""
        if not any(ref() is module for ref in self.modules):
            self.modules.append(weakref.ref(module))

    def _know_modules(self) -> None:
        for ref in self.modules:
            module = ref()
            if module is not None:
                tensors = [*module.parameters(), *module.buffers()]
                self.calls.know(tensors, tensors)
        self.modules.clear()

    def begin(self, region: Region, settings: Settings, args: tuple[Any, ...]) -> None:
        """A forward of it is about to run.  Raises BudgetError if its burst can be planned in no way."""
        with self.lock:
            if self.calls.begins(region):
                self._begin_burst(region, settings, args)

    def _begin_burst(self, region: Region, settings: Settings, args: tuple[Any, ...]) -> None:
        self._first = region
        if self.calls.bursts_begun:
            self._know_modules()
        self.said.held.clear()
        self.said.counted = len(self.calls.trained) > 1
        if self.calls.news:
            self._plan_together(settings, args)
            self.calls.planned()
        self._said = False

    def forward(self, region: Region, args: Iterable[Any]) -> None:
        """It runs now."""
        with self.lock:
            self._look(region, self.calls.forward(region, args))

    def backward(self, region: Region, args: list[Any]) -> None:
        """Its backward runs now."""
        with self.lock:
            self._look(region, self.calls.backward(region, args))

    def _look(self, region: Region, event: record.Event | None) -> None:
        """Say so, once a burst, if a new event breaks the budget."""
        report = region.report
        if event is None or self._said or report is None or region.share:
            return
        burst = [*self.calls.burst]
        others = self._others(event, burst, self._staying(), {}) + _saved(event)
        if not self._fits(event, others):
            self._say(event, others)

    def _say(self, event: record.Event, others: int) -> None:
        if self._said:
            return
        report, peak = event.region.report, self._peak(event, others)
        self._said = True
        more = event.region.plans < _PLANS
        warnings.warn(
            f"lowtide: the budget is not kept: {size_text(others)} ({others} bytes) of others stand beside the "
            f"{'backward' if event.backward else 'forward'} of {report.name}, of which its plan counts "
            f"{size_text(_counted(event))}: this step can take {size_text(peak)} of {size_text(report.budget)}. "
            + ("From the next step on its regions are planned together. " if more else
               f"Its regions were planned together {_PLANS} times, for as many orders of calls, and are not again. ")
            + "lowtide.torch.optimize with example_inputs plans all regions together before the first step; for several "
            f"forwards before one backward set reserve={others}", OverBudgetWarning, stacklevel=4)

    # ---- planning together

    def _plan_together(self, settings: Settings, args: tuple[Any, ...]) -> None:
        """Plan the regions of all bursts that break the budget, and of those that share a region with them."""
        staying, now = self._staying(), self.calls.gradients()
        bursts = list(self.calls.bursts()) if self.calls.fresh is None else self.calls.fresh
        if not any(not self._fits(event, self._others(event, burst, staying, now) + _saved(event))
                   for burst in bursts for event in burst if event.region.found and event.region.plans < _PLANS):
            return  # so that new orders of calls that fit cost no more than themselves
        fixed = bytes_held(_tensors(args)) + sum(staying.values())
        for bursts in _connected(list(self.calls.bursts())):
            events = [(event, self._others(event, burst, staying, now)) for burst in bursts for event in burst
                      if event.region.found]
            broken = [(event, others + _saved(event)) for event, others in events
                      if not self._fits(event, others + _saved(event))]
            if not broken:
                continue
            regions = {event.region for event, _ in events}
            most = max(broken, key=lambda pair: self._peak(*pair))
            if max(region.plans for region in regions) >= _PLANS:
                self._say(*most)
                continue
            self._refresh(regions, settings, args)
            wanted = settings.budget if self.budget is None else self.budget
            shares = share([Event(event.region.found, event.backward, others,
                                  tuple(w.found for w in event.waiting if w.found)) for event, others in events],
                           wanted, settings.order, fixed)
            self._say(*most)
            for region in regions:
                region.plans += 1
                agreed = shares[region.found.key]
                if agreed.beside != region.beside or agreed.budget != region.report.budget:
                    region.share = agreed

    def _refresh(self, regions: set[Region], settings: Settings, args: tuple[Any, ...]) -> None:
        """What stands beside all of them now, in the place of what did when each was compiled."""
        present = _tensors([*args, *self.calls.present()])
        for region in regions:
            found = region.found
            device = next((t.device for t in present if t.device.type != "cpu"), torch.device("cpu"))
            standing, state = settings.standing(bytes_held(present), device), settings.state(device, self.trained)
            covers = standing if settings.reserve is not None and not self.budget else 0
            region.found = Found(found.program, standing + state, found.gradients, covers)

    def _fits(self, event: record.Event, others: int) -> bool:
        """Is the budget kept at an event with so many bytes of others?"""
        region = event.region
        if region.share:  # planned, and not called since
            beside = region.share.beside
            return region.found.room(others) <= beside.resident + (beside.gradients if event.backward else 0)
        return self._peak(event, others) <= self._limit(event)

    def _limit(self, event: record.Event) -> int:
        """Bytes that the step may take at an event.  A share was one of the region's own peak, without parameters
        that it was not given."""
        region = event.region
        unseen = self._is_share and not region.plans
        more = sum(size for key, size in self.calls.staying(False).items() if key not in region.own) if unseen else 0
        return region.report.budget + more

    def _others(self, event: record.Event, burst: list[record.Event], staying: Sizes,
                now: Sizes) -> int:
        """Bytes beside an event of a burst, what forwards with a plan have saved apart.  now: gradients that stand
        before the next burst."""
        own = event.region.own
        given = {key: size for other in burst for key, size in other.given.items()} | staying
        stands = sum(size for key, size in given.items() if key not in own)
        made = {key for other in burst if other.backward for key in other.region.leaves}
        made = set() if burst[0].region is self._first else made
        old = {key: size for key, size in now.items() if key not in made} | event.old
        if old and event.region.trains:  # gradients that add up are the user's own, and said elsewhere
            adding = self._one_model()
            old = {key: size for key, size in old.items() if key not in adding}
        return stands + event.made + sum(old.values()) + event.new + event.unplanned - event.twice

    def _staying(self) -> Sizes:
        """What stands beside all regions; what one kind of step is given may stand while another runs."""
        left = self.calls.left()
        return {key: size for key, size in self.calls.staying(not self._one_model()).items() if key not in left}

    def _one_model(self) -> set[int]:
        """What steps train, inputs that get a gradient among it, if all steps train the same parameters; empty if
        parts of them are trained in turn."""
        if len(self.calls.trained) > 1:
            return set()
        return {key for region in self.regions if region.trains for key in (*region.leaves, *region.own)}

    def _peak(self, event: record.Event, others: int) -> int:
        """What the plan of a region takes with so many bytes of others beside it."""
        region = event.region
        report = region.report
        own = report.late_peak if event.backward else report.early_peak if region.trains else report.peak
        return own - _counted(event) + region.found.room(others)


def _signature(program: Program) -> Any:
    """What a program's plan has to do with, but for times: two measurements differ."""
    ops = [(op["kind"], op["inputs"], op["outputs"], op["workspace"], op["recomputable"], op["after"], op["mutates"],
            op.get("origin"), op.get("attributes", {}).get("source")) for op in program.graph["ops"]]
    return ops, [(t["bytes"], t.get("role")) for t in program.graph["tensors"]], program.graph["outputs"]


def _counted(event: record.Event) -> int:
    """Bytes that the plan of an event's region leaves room for."""
    region = event.region
    return region.beside.resident + (region.beside.gradients if event.backward else 0)


def _saved(event: record.Event) -> int:
    """Bytes that waiting forwards hold by their plans."""
    return sum(w.share.beside.saved if w.share and w.share.beside.saved is not None else w.report.saved
               for w in event.waiting if w.report)


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    return [t for t in values if isinstance(t, torch.Tensor)]


def _connected(bursts: list[list[record.Event]]) -> Iterator[list[list[record.Event]]]:
    """The bursts, those together that have a region in common."""
    sets: list[tuple[set[Region], list[list[record.Event]]]] = []
    for burst in bursts:
        regions, together = {event.region for event in burst}, [burst]
        apart = []
        for others, theirs in sets:
            if regions & others:
                regions, together = regions | others, [*theirs, *together]
            else:
                apart.append((others, theirs))
        sets = [*apart, (regions, together)]
    return (together for _, together in sets)
