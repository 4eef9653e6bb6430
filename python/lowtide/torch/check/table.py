"""The sections in the order in which they run, the most important first."""

from __future__ import annotations

from .section import Section
from .sections import allocator, machine, offload, peers, prices, recorded, reserved, runtime, steps, suites, training, ways

SECTIONS = (
    Section("machine", 30, machine.facts),
    Section("runtime", 30, runtime.runtime),
    Section("gpt", 60, training.gpt_bf16),
    Section("resnet", 50, training.resnet_autocast),
    Section("unet", 60, training.unet_f32),
    Section("step", 60, steps.steps),
    Section("copies", 50, offload.offload),
    Section("cuda_graphs", 45, recorded.cuda_graphs),
    Section("large_gpt", 70, training.large_gpt_bf16),
    Section("peers", 70, peers.peers),
    Section("attention", 30, training.attention_dropout),
    Section("parts", 40, ways.parts),
    Section("prices", 30, prices.prices),
    Section("gpt_f32", 50, training.gpt_f32),
    Section("backend", 25, ways.backend),
    Section("large_resnet", 60, training.large_resnet_bf16),
    Section("expandable", 40, allocator.expandable, allocator.ENVIRONMENT),
    Section("reserved", 40, reserved.reserved, reserved.ENVIRONMENT),
    Section("reserved_expandable", 40, reserved.reserved_expandable, reserved.EXPANDABLE),
    Section("suites", 180, suites.suites),
    Section("inductor", 100, peers.inductor),
)
