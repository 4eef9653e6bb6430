"""A captured graph priced anew on the device that it was captured for keeps its times."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import lowtide


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)
        self.drop, self.last = nn.Dropout(0.1), nn.Linear(16 * 30 * 30, 10)

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))).flatten(1))


@pytest.mark.parametrize("device", ["a100", "h200", "cpu"])
@pytest.mark.parametrize("dtype", ["f32", "amp"])
def test_prices_are_those_of_the_capture(device, dtype):
    graph = lowtide.torch.capture(Net(), (torch.randn(64, 3, 32, 32), torch.randint(10, (64,))),
                                  lambda model, x, y: nn.functional.cross_entropy(model(x), y), costs=device,
                                  dtype=dtype)
    again = lowtide.priced_on(graph, device)
    other = [(a.name, a.kind, a.time, b.time) for a, b in zip(graph.ops, again.ops) if a.time != b.time]
    assert not other


def test_a_measured_device_prices_a_capture(monkeypatch):
    from lowtide.torch.device import rates

    monkeypatch.setattr(rates, "_SECONDS", 0.0)
    monkeypatch.setattr(rates, "_LONG", 100_000)
    device = lowtide.torch.measure_device("cpu", "here")
    assert device.measured and device.name == "here" and device.launch_ns > 0
    assert {"f32", "tf32", "bf16"} <= device.operations_per_second.keys()
    assert lowtide.Device.from_json(device.to_json()) == device
    graph = lowtide.torch.capture(nn.Linear(256, 256), (torch.rand(512, 256),), lambda m, x: m(x).sum())
    product = next(op for op in lowtide.priced_on(graph, device).ops if op.kind == "aten.addmm")
    flops = 2 * 512 * 256 * 256
    assert product.time >= 1e9 * flops / device.operations_per_second["f32"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"there is no cuda to measure: torch .*; 'cpu' measures the processor"):
        lowtide.torch.measure_device("cuda")
