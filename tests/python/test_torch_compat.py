"""What differs between versions of PyTorch: each branch, whichever version is here."""

import subprocess
import sys
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.compat import counting, cpp_kernels, dynamo, optimizers, versions
from lowtide.torch.compat.inductor import all_at_once
from torch import nn
from torch._inductor import async_compile, config


@pytest.mark.parametrize("text, version", [("2.13.0+cpu", (2, 13)), ("2.14.0a0+git12", (2, 14)), ("3.0", (3, 0)), ("git", (0, 0))])
def test_versions_are_read(text, version):
    assert versions.version_of(text) == version


@pytest.mark.parametrize("version, warns", [("2.11.0+cu130", False), ("2.14.1", False), ("2.15.0", True), ("git", True)])
def test_a_version_that_nobody_has_tried_is_one_warning(version, warns):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        versions.check_version(version)
    assert [f"this is torch {version}" in str(w.message) and versions.INSTALL in str(w.message) for w in said] == [True] * warns


@pytest.mark.parametrize("version", ["1.13.1", "2.10.1+cpu"])
def test_an_old_version_is_refused_by_its_name(version):
    with pytest.raises(ImportError) as refused:
        versions.check_version(version)
    assert f"this is torch {version}" in str(refused.value) and "pip install 'torch>=2.11,<2.15'" in str(refused.value)


def imported(before):
    """What an import of lowtide.torch ends in, in a process in which that has run before: exit status, its last line."""
    run = subprocess.run([sys.executable, "-W", "always", "-c", f"import sys\n{before}\nimport lowtide.torch\nprint('imported')"],
                         capture_output=True, text=True)
    return run.returncode, (run.stderr if run.returncode else run.stdout + run.stderr)


def hidden(*names):
    """Code that makes modules as if they were not there."""
    return "".join(f"sys.modules[{name!r}] = None\n" for name in names)


def test_without_torch_one_sentence_says_what_to_install():
    status, said = imported(hidden("torch"))
    assert status == 1 and said.splitlines()[-1].endswith("needs PyTorch, and none is installed here; it runs with torch 2.11 to 2.14: "
                                                          "pip install 'torch>=2.11,<2.15'")


def test_an_old_torch_is_refused_before_anything_is_looked_for():
    status, said = imported("import torch\ntorch.__version__ = '2.9.1'")
    assert status == 1 and "this is torch 2.9.1" in said.splitlines()[-1]


def test_a_missing_part_of_torch_that_is_needed_is_named():
    status, said = imported("import torch\n" + hidden("torch._prims_common"))
    last = said.splitlines()[-1]
    assert status == 1 and f"of torch {torch.__version__} " in last and "torch._prims_common" in last and "pip install" in last


def test_a_missing_part_of_torch_that_is_optional_is_a_warning():
    """numpy is one such, of which nothing needs to be said."""
    status, said = imported(hidden("numpy") + "import torch._dynamo.variables.misc as m\ndel m.LoggingLoggerVariable")
    assert status == 0 and "imported" in said, said
    assert said.count("goes without calls that log behind a graph") == 1 and "LoggingLoggerVariable" in said


@pytest.mark.parametrize("in_compile", [True, False])
def test_a_function_may_have_many_variants(monkeypatch, in_compile):
    if in_compile and versions.before(2, 12):
        pytest.skip(f"torch {torch.__version__} lacks torch.compile(recompile_limit=)")
    monkeypatch.setattr(dynamo, "before", lambda *_: not in_compile)
    torch._dynamo.reset()
    module, seen = nn.Linear(2, 2), []

    def backend(gm, _):
        seen.append(gm)
        return gm.forward

    with torch._dynamo.config.patch(recompile_limit=2, automatic_dynamic_shapes=False, fail_on_recompile_limit_hit=True):
        run = dynamo.compiled(module, backend, 6)
        for rows in range(2, 7):
            run(torch.ones(rows, 2))
    assert len(seen) == 5
    torch._dynamo.reset()


@pytest.mark.parametrize("make", [torch.optim.Adagrad, torch.optim.AdamW, torch.optim.SGD])
def test_an_optimizer_steps_from_its_initial_state(make):
    parameter, twin = (nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizer, other = make([parameter], lr=0.1), make([twin], lr=0.1)
    optimizer.state.clear()
    optimizer.state[parameter] = optimizers.initial_state(optimizer, parameter, optimizer.param_groups[0])
    for p, o in ((parameter, optimizer), (twin, other)):
        p.grad = torch.ones(3)
        o.step()
    assert torch.equal(parameter, twin)


def test_adagrad_as_it_was_before_2_12(monkeypatch):
    monkeypatch.setattr(versions, "VERSION", (2, 11))
    parameter = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adagrad([parameter], initial_accumulator_value=2.0)
    found = optimizers.initial_state(optimizer, parameter, optimizer.param_groups[0])
    assert torch.equal(found["sum"], torch.full((3,), 2.0)) and found["step"] == 0
    adamw = torch.optim.AdamW([parameter])
    assert optimizers.initial_state(adamw, parameter, adamw.param_groups[0]) == {}


@pytest.mark.parametrize("version", [(2, 11), (2, 14)])
def test_heads_that_share_a_key_cost_as_much_as_others(monkeypatch, version):
    """The formulas of some versions refuse what the kernel computes."""
    if version > (2, 11) and versions.before(2, 12):
        pytest.skip(f"torch {torch.__version__} lacks a formula for heads that share a key")
    monkeypatch.setattr(versions, "VERSION", version)
    aten = torch.ops.aten
    counts = []
    for heads in (8, 2):
        query, key = torch.empty(1, 8, 16, 4), torch.empty(1, heads, 16, 4)
        counts.append(counting.operations_of(aten._scaled_dot_product_flash_attention,
                                             aten._scaled_dot_product_flash_attention_for_cpu.default, (query, key, key), {}, query))
    assert counts[0] == counts[1] == 2 * 2 * 8 * 16 * 16 * 4


def test_threads_that_compile_at_once_leave_inductor_as_it_was():
    """The second one enters while the first is within, and leaves after it, if nothing has it wait."""
    methods = async_compile.AsyncCompile.wait, async_compile.AsyncCompile.cpp_pybinding
    entered, left = threading.Event(), threading.Event()

    def second():
        with all_at_once():
            entered.set()
            left.wait()

    other = threading.Thread(target=second)
    with all_at_once():
        other.start()
        entered.wait(0.2)
    left.set()
    other.join()
    assert (async_compile.AsyncCompile.wait, async_compile.AsyncCompile.cpp_pybinding) == methods


@pytest.mark.parametrize(("count", "threads", "expected"), [(1, 8, []), (2, 8, [2]), (7, 8, [7]), (9, 8, [5, 4]), (9, 1, [9]), (40, 3, [14, 13, 13])])
def test_a_source_has_at_least_four_kernels_where_there_are_as_many(count, threads, expected, monkeypatch):
    sources = []
    monkeypatch.setattr(async_compile, "get_compile_threads", lambda: threads)
    monkeypatch.setattr(cpp_kernels, "_begun", lambda kernels, submit: sources.append(kernels) or (lambda: None))
    cpp_kernels.load_together([cpp_kernels.CppKernel(["float*"], f"kernel {i % count}") for i in range(2 * count)])
    assert list(map(len, sources)) == expected


def test_a_kernel_that_was_loaded_serves_for_the_options_that_it_was_compiled_with(monkeypatch):
    monkeypatch.setattr(cpp_kernels, "_loaded", {cpp_kernels.CppKernel(["float*"], "a kernel").name: print})
    assert cpp_kernels.CppKernel(["float*"], "a kernel").function is print
    with config.patch({"cpp.enable_floating_point_contract_flag": "fast"}):
        assert cpp_kernels.CppKernel(["float*"], "a kernel").function is None
