"""One training step under one way of saving memory: its peak, its operations, its time, and what it computes."""
import copy
import gc
import statistics
import time
from dataclasses import dataclass, field

import torch
from lowtide.torch.device.meter import peak_rise
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_ATTENTION = "_scaled_dot_product_flash_attention"  # PyTorch counts its operations under this name


class _Operations(TorchDispatchMode):
    """Counts the operations of matrix products, convolutions and attention that run within."""

    def __init__(self):
        super().__init__()
        self.count = 0

    @classmethod
    def ignore_compile_internals(cls):
        return True  # compiled code is counted as it runs, instead of being left for eager execution

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        packet = function.overloadpacket
        name = packet.__name__
        if name.startswith(f"{_ATTENTION}_for_cpu"):
            packet = getattr(torch.ops.aten, name.replace("_for_cpu", ""))
        formula = flop_registry.get(packet)
        if formula:
            count = formula(*args, **kwargs, out_val=result)
            self.count += count // 2 if _is_causal(function, args, kwargs) else count
        return result


def _is_causal(function, args, kwargs):
    names = [argument.name for argument in function._schema.arguments]
    return "is_causal" in names and bool(dict(zip(names, args), **kwargs).get("is_causal"))


class Step:
    """A twin of a module with one way to run it. `how`: module -> what is called as how(module)(*inputs) -> loss."""

    def __init__(self, module, inputs, how, around):
        self.module, self.inputs = copy.deepcopy(module), inputs
        self._around = around
        with around():  # it is compiled at its first step
            self._run = how(self.module)
            self.results = self._first()

    def __call__(self):
        loss = self._run(*self.inputs)
        loss.backward()
        return loss

    def _first(self):
        torch.manual_seed(1)
        loss = self().detach()
        gradients = [p.grad.clone() for p in self.module.parameters() if p.grad is not None]
        state = torch.cuda.get_rng_state() if loss.is_cuda else torch.get_rng_state()
        return {"loss": [loss], "gradients": gradients, "buffers": [b.clone() for b in self.module.buffers()],
                "generator": [state]}

    def fresh(self):
        self.module.zero_grad(set_to_none=True)

    def peak(self):
        """Bytes above what is there before the step, gradients included."""
        self.fresh()
        gc.collect()
        if not self.inputs[0].is_cuda:
            return peak_rise(self)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    def operations(self):
        self.fresh()
        with _Operations() as counter:
            self()
        return counter.count

    def seconds(self):
        self.fresh()
        if self.inputs[0].is_cuda:
            torch.cuda.synchronize()
        began = time.perf_counter()
        self()
        if self.inputs[0].is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - began


def difference(results, expected):
    """("" or what differs, how far the gradients are off) of the first step: norms, of all parameters together."""
    differs = [what for what, tensors in expected.items()
               if not all(map(torch.equal, results[what], tensors))]
    off = sum(float((a - b).double().square().sum()) for a, b in zip(results["gradients"], expected["gradients"]))
    return " ".join(differs), (off / sum(float(b.double().square().sum()) for b in expected["gradients"])) ** 0.5


@dataclass
class Times:
    """Seconds of steps that took turns, so that what else the machine did fell on all alike."""

    of: dict = field(default_factory=dict)

    def median(self, name):
        return statistics.median(self.of[name])

    def ratio(self, name, base):
        """The median, over rounds, of the time as a multiple of that of `base` in the same round."""
        return statistics.median(a / b for a, b in zip(self.of[name], self.of[base]))


def take_turns(steps, seconds, rounds):
    """Times of steps (name -> Step): so many rounds at least, and more until the seconds are used up."""
    times = Times({name: [] for name in steps})
    began = time.perf_counter()
    done = 0
    while done < rounds or time.perf_counter() - began < seconds:
        names = list(steps)
        turn = done % len(names)
        for name in names[turn:] + names[:turn]:
            times.of[name].append(steps[name].seconds())
        done += 1
    return times
