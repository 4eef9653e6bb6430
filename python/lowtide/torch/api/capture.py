"""`capture`: the graph of one training step, without running it, a GPU, or memory for the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch

import lowtide

from ...frontend.errors import CaptureError
from ...frontend.repeated import TRACED, with_layers
from ..clusters.prepare import traced_for
from ..clusters.rewrite import NotClustered, ready_for_clusters, with_clusters
from ..compat.aot import ParamAOTInput
from ..compat.dynamo import compile_lock
from ..optimizer.given import Optimizer, StateHome, Update
from ..optimizer.rules import Rules, check_update
from ..pricing.costs import pricing
from ..program.lowering import lower
from ..program.lowerings.random_draws import STATE_BYTES
from ..program.lowerings.update import Updates
from ..program.program import Program
from ..ranks.data_parallel import units_of, with_data_parallel
from ..ranks.mesh import Ranks, Shard, keep_few, ranks_of_mesh
from ..ranks.tensor_parallel import localize
from ..settings import state_by_rule, state_tensors
from ..tensors.arguments import arguments
from ..tensors.storages import bytes_of
from ..tensors.wrapped import is_of_gradient
from ..tracing.fake_step import Built, LossFunction, Numbers, trace_step


def capture(model: torch.nn.Module | Callable[[], Built], inputs: Any = (), loss: LossFunction | None = None, *,
            kwargs: Mapping[str, Any] | None = None, costs: str = "a100", dtype: Numbers = "f32",
            optimizer: Optimizer = None, update: Update = None, state_home: StateHome = "device", name: str = "",
            fused: bool = False, in_parts: bool = False, mesh: tuple[int, int] | None = None,
            shard: Literal["fsdp", "ddp"] | Shard | None = None) -> lowtide.Graph:
    """The Lowtide graph of one training step: forward, barrier, backward, and the updates if requested.

    No kernel runs, so workspaces, and storage of results beyond their shape, count as 0.

    model, inputs, loss: the module; its arguments (a tuple, one tensor, or a mapping of keyword arguments; kwargs has further
        ones); and a function that is called as loss(module, *inputs, **kwargs) and returns the loss, or a tuple that begins with
        it.  Without a function the module's own result is the loss.  Instead of the module, a function without arguments that
        returns all three.  It is called while new tensors are fake, so a model of any size takes no memory.  Real tensors are
        replaced by fake ones in a copy; the module is not changed.
    costs: the device whose times are estimated (a key of roofline.DEVICES, or "flops").
    dtype: "f32" (as the model was built), "bf16" (the whole model) or "amp" (autocast to bf16).
    optimizer: a torch.optim optimizer, its class or name, or a list of optimizers; their state counts as resident bytes.
    update: the optimizer whose step becomes part of the graph: each parameter is updated, and its gradient freed, as soon as the
        gradient is computed.  One of torch.optim except LBFGS, its class or name, or a function that takes the module and returns
        one; or a list of optimizers and such functions that share no parameter.  Replaces `optimizer`.
    state_home: the place of the state of `update` between steps, "device" or "host".
    name: the graph's name, for people.
    fused: with clusters of ops that Inductor makes kernels of as ops (inner="fused").  None is compiled unless `costs` are measured.
    in_parts: with `fused`, for plans that split: random numbers are drawn by clusters of their own, so that those which read them may be
        split.  It takes a little more time and memory; without it each cluster draws for itself.
    mesh: (dp, tp): the step of one rank of dp times tp, of which tp divide modules and dp divide the batch.  The inputs are those of
        one rank.
    shard: what each of these ranks holds: "fsdp" (the default), "ddp", or a Shard.

    Raises CaptureError for a model that cannot be captured; ValueError or TypeError for wrong options.
    """
    state_by_rule(optimizer, 0)
    check_update(update, state_home)
    if update is not None and optimizer is not None:
        raise ValueError("give optimizer or update, not both: with update the state is in the graph")
    if in_parts and not fused:
        raise ValueError("in_parts=True is for fused=True; other ops may be split as they are")
    ranks = ranks_of_mesh(mesh, shard)
    if ranks is not None and (update is not None or isinstance(optimizer, (list, torch.optim.Optimizer))):
        raise ValueError("with a mesh give the optimizer by name, optimizer=\"adamw\": ranks hold parts of its state")
    rank = None if ranks is None else _Rank(ranks)
    program = capture_program(as_builder(model, inputs, loss, kwargs), costs=costs, dtype=dtype,
                              name=name or name_of(model), update=update, state_home=state_home, fused=fused, in_parts=in_parts,
                              localize=rank)
    if rank is None:
        return with_optimizer(program, optimizer)
    graph = program.graph
    if rank.ranks.shard.repeat is not None and rank.layers > TRACED:
        graph = with_layers(graph, rank.ranks.shard.repeat, rank.layers)
    return with_data_parallel(graph, rank.units, rank.ranks, costs, state_tensors(optimizer))


class _Rank:
    """Makes a module that of one rank, and remembers what FSDP gathers together."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.units, self.layers = ranks, list[str](), 0

    def __call__(self, module: torch.nn.Module) -> None:
        self.units = units_of(module, self.ranks)
        if self.ranks.shard.repeat is not None:
            self.layers = keep_few(module, self.ranks.shard.repeat, TRACED)
        localize(module, self.ranks)


def capture_program(build: Callable[[], Built], *, costs: str = "a100", dtype: str = "f32", name: str = "",
                    real: bool = False, update: Update = None, state_home: str = "device", fused: bool = False,
                    in_parts: bool = False, localize: Callable[[torch.nn.Module], None] | None = None) -> Program:
    """The lowered program of a step; arguments as of `capture`.  real: may "auto" costs run kernels here?"""
    price = pricing(costs, torch.device("cpu"), real)
    rules = Rules(home=state_home)
    with compile_lock:  # PyTorch traces in one thread at a time
        joint = trace_step(build if update is None else _reading(build, rules, update), dtype, localize=localize, **traced_for(fused))
        if fused:
            try:
                joint = with_clusters(ready_for_clusters(joint, (), price.real), price.real, in_parts)
            except NotClustered as error:
                raise CaptureError(f"{error}; fused=False captures the kernels of eager execution") from error
        (output,) = joint.graph.find_nodes(op="output")
        forward = sum(desc is not None and not is_of_gradient(desc) for desc in output.meta["desc"])
        here = costs in ("cpu", "measured") or (costs == "auto" and real)
        return lower(joint, forward, price, name, STATE_BYTES["cpu" if here else "cuda"],
                     updates=Updates(rules, on_gpu=not here) if rules.of else None, gathers_again=True)


def _reading(build: Callable[[], Built], rules: Rules, update: Update) -> Callable[[], Built]:
    """The builder, which enters the rules of what it builds."""
    def built() -> Built:
        made = build()
        if isinstance(made, tuple) and made and isinstance(made[0], torch.nn.Module):
            rules.read(made[0], update)
        return made

    return built


def with_optimizer(program: Program, optimizer: Any) -> lowtide.Graph:
    """The program's graph, the optimizer's state of the trained parameters resident."""
    return program.graph.edited(resident_bytes=state_by_rule(optimizer, _trained(program)))


def _trained(program: Program) -> int:
    """Bytes of the parameters that get a gradient."""
    trained = {getattr(desc, "grad_of", None) for node, desc in zip(program.backward_outputs, program.backward_descriptors, strict=True)
               if isinstance(node, torch.fx.Node)}
    inputs = program.joint.graph.find_nodes(op="placeholder")
    return sum(bytes_of(n.meta["val"]) for n in inputs
               if isinstance(n.meta["desc"], ParamAOTInput) and n.meta["desc"] in trained)


def as_builder(model: torch.nn.Module | Callable[[], Built], inputs: Any, loss: LossFunction | None,
               kwargs: Mapping[str, Any] | None = None) -> Callable[[], Built]:
    """The argument of trace_step for a module with its inputs and loss, or for a builder."""
    if not isinstance(model, torch.nn.Module):
        return model
    given, named = arguments(inputs, kwargs)
    if not named:
        return lambda: (model, given, loss)
    # a builder's inputs are a tuple; the last of these are the keyword arguments
    call = loss or (lambda module, *positional, **keywords: module(*positional, **keywords))
    return lambda: (model, (*given, named), lambda module, *all_: call(module, *all_[:-1], **all_[-1]))


def name_of(model: Any) -> str:
    """A graph's name, of what is captured."""
    word = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "model")
    return f"{word} training"
