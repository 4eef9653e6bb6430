"""The sections in the order in which they run, the most important first."""

from __future__ import annotations

from .section import Section
from .sections import allocator, machine, offload, peers, prices, recorded, reserved, runtime, steps, suites, training, ways

SECTIONS = (
    Section("machine", 30, machine.facts),
    Section("runtime", 30, runtime.runtime),
    Section("gpt", 60, training.gpt_bf16),
    Section("copies", 50, offload.offload),
    Section("unet", 60, training.unet_f32),
    Section("resnet", 50, training.resnet_autocast),
    Section("prices", 30, prices.prices),
    Section("step", 60, steps.steps),
    Section("parts", 40, ways.parts),
    Section("expandable", 40, allocator.expandable, allocator.ENVIRONMENT),
    Section("reserved", 40, reserved.reserved, reserved.ENVIRONMENT),
    Section("reserved_expandable", 40, reserved.reserved_expandable, reserved.EXPANDABLE),
    Section("gpt_f32", 50, training.gpt_f32),
    Section("peers", 70, peers.peers),
    Section("large_gpt", 70, training.large_gpt_bf16),
    Section("large_resnet", 60, training.large_resnet_bf16),
    Section("attention", 30, training.attention_dropout),
    Section("backend", 25, ways.backend),
    Section("cuda_graphs", 45, recorded.cuda_graphs),
    Section("suites", 180, suites.suites),
    Section("inductor", 100, peers.inductor),
)
