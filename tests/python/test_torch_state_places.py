"""Memory that is held for the state of an optimizer before its first step."""

import gc
import types

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.optimizer import state_places
from lowtide.torch.optimizer.state_places import StatePlaces, TensorsInPlaces
from torch import nn
from torch_run import equal

OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p), "amsgrad": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "fused": lambda p: torch.optim.AdamW(p, fused=True), "foreach": lambda p: torch.optim.AdamW(p, foreach=True),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), "NAdam": lambda p: torch.optim.NAdam(p),
    "RMSprop": lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True), "Rprop": lambda p: torch.optim.Rprop(p)}


def parameters(seed=0):
    generator = torch.Generator().manual_seed(seed)
    made = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((70, 9), (200, 30), (310,))]
    made[1] = nn.Parameter(made[1].detach().t())  # whose strides the state has too
    for p in made:
        p.grad = torch.randn(p.shape, generator=generator)
    return made


def state_of(optimizer, some):
    return [t for p in some for t in optimizer.state[p].values() if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_state_in_its_places_is_that_of_the_optimizer_to_the_bit_and_lies_there(kind):
    mine, plain = parameters(), parameters()
    of_plain, of_mine = OPTIMIZERS[kind](plain), OPTIMIZERS[kind](mine)
    of_plain.step()
    sizes = [t.untyped_storage().nbytes() for t in state_of(of_plain, plain) if t.dim()]
    places = [torch.full((-(-size // 512) * 512,), 85, dtype=torch.uint8) for size in sizes]
    addresses = {place.data_ptr() for place in places}
    with TensorsInPlaces(places):
        of_mine.step()
    assert {t.data_ptr() for t in state_of(of_mine, mine) if t.dim()} == addresses
    for _ in range(2):
        assert equal(mine, plain)
        for a, b in zip(state_of(of_mine, mine), state_of(of_plain, plain), strict=True):
            assert torch.equal(a, b) and a.stride() == b.stride() and a.dtype == b.dtype
        of_plain.step()
        of_mine.step()


def test_tensors_of_other_sizes_or_devices_are_made_as_ever():
    place = torch.full((1024,), 85, dtype=torch.uint8)
    with TensorsInPlaces([place]):
        other, meta = torch.zeros(300), torch.zeros(256, device="meta")
        inside = torch.zeros(250)
        again = torch.zeros(250)
    assert inside.data_ptr() == place.data_ptr() and meta.device.type == "meta"
    assert place.data_ptr() not in (other.data_ptr(), again.data_ptr()) and not torch.cat([inside, other, again]).any()


class OnGpu(torch.Tensor):
    """A parameter that says that it is on a GPU."""

    is_cuda = True


@pytest.fixture
def places(monkeypatch):
    """Of parameters that say that they are on a GPU, the first of which has state."""
    monkeypatch.setattr(state_places, "_LARGE", 1000)
    made = [p.detach().as_subclass(OnGpu) for p in parameters()]
    optimizer = types.SimpleNamespace(state={made[0]: {"exp_avg": 1}})
    return StatePlaces(optimizer), made


def test_places_are_held_from_the_first_forward_to_the_update_for_large_state_that_is_missing(places):
    places, made = places
    sizes = [(made[0], [2000]), (made[1], [24000, 24064]), (made[2], [512]), (parameters()[0], [5000])]
    places.hold(sizes)
    assert places.bytes == 24000 + 24064
    held = [place.data_ptr() for _, some in places._held.items() for place in some]
    places.hold(sizes[::-1])  # another graph of the same parameters
    assert [place.data_ptr() for _, some in places._held.items() for place in some] == held
    with places.used_for(made[:1]):
        assert places.bytes == 24000 + 24064
    with places.used_for(made[:2]) as mode:
        assert isinstance(mode, TensorsInPlaces) and places.bytes == 0
    assert not isinstance(places.used_for(made[:2]), TensorsInPlaces)


def test_places_of_a_parameter_that_is_gone_are_given_up(places):
    places, made = places
    places.hold([(made[1], [24000])])
    assert places.bytes == 24000
    made.clear()
    gc.collect()
    assert places.bytes == 0
