"""Adapters of PEFT: what is trained beside frozen weights, under a budget, is what eager execution trains."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch import measure_peak
from torch_run import alone

peft = pytest.importorskip("peft", reason="no peft (tools/deps frameworks)")
transformers = pytest.importorskip("transformers", reason="no transformers (tools/deps frameworks)")

QUICK = {"work": 10_000, "time": None}
TOKENS = torch.randint(64, (4, 64), generator=torch.Generator().manual_seed(1))
BATCH = {"input_ids": TOKENS, "labels": TOKENS}


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


def lora(rank=4):
    return peft.LoraConfig(r=rank, target_modules=["q_proj", "v_proj"], lora_dropout=0.1, task_type="CAUSAL_LM")


def llama():
    """A small model whose adapters change its results from the start."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=64, max_position_embeddings=64)
    model = peft.get_peft_model(transformers.LlamaForCausalLM(config), lora())
    model.add_adapter("second", lora(rank=2))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    return model.train()


def train(model, call, steps=2):
    """Losses and peaks of some steps."""
    torch.manual_seed(3)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    losses, peaks = [], []

    def step():
        loss = call(**BATCH).loss
        loss.backward()
        losses.append(loss.detach().clone())

    for _ in range(steps):
        peaks.append(measure_peak(step, held=[*model.state_dict().values(), TOKENS]))
        optimizer.step()
        optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    return losses, peaks


def same(model, eager):
    return all(map(torch.equal, model.parameters(), eager.parameters()))


def test_adapters_are_trained_and_switched_under_a_budget(tmp_path):
    eager, model = llama(), llama()
    planned = lowtide.torch.optimize(model, BATCH, budget="act:60%", **QUICK)
    report = lowtide.torch.reports()[-1]
    losses, peaks = train(eager, eager)
    own_losses, own_peaks = train(model, planned)
    assert own_losses == losses and same(model, eager)
    assert max(own_peaks) <= report.budget < max(peaks)

    with torch.no_grad():
        model.eval(), eager.eval()
        with model.disable_adapter(), eager.disable_adapter():
            without = planned(**BATCH).logits
            assert torch.equal(without, eager(**BATCH).logits)
        assert torch.equal(planned(**BATCH).logits, eager(**BATCH).logits) and not torch.equal(planned(**BATCH).logits, without)
    for each in (model, eager):
        each.train().set_adapter("second")
    assert train(model, planned)[0] == train(eager, eager)[0] and same(model, eager)

    model.save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(llama().unload(), tmp_path / "second")
    merged, of_eager = model.merge_and_unload().eval(), eager.merge_and_unload().eval()
    with torch.no_grad():
        expected = of_eager(**BATCH).logits
        assert torch.equal(merged(**BATCH).logits, expected)
        assert torch.equal(again.merge_and_unload().eval()(**BATCH).logits, expected)


@pytest.mark.filterwarnings("ignore")
def test_checkpoints_over_a_frozen_embedding_break_no_graph():
    """Turning them on hooks the embedding: its output is to require gradients.  Traced checkpoints sum in an order of their own."""
    traced, model = llama(), llama()
    for each in (traced, model):
        each.gradient_checkpointing_enable()
    before = len(lowtide.torch.reports())
    with pytest.warns(lowtide.torch.LowtideWarning, match="marks of torch.utils.checkpoint"):
        losses, _ = train(model, torch.compile(model, backend="lowtide", options={"budget": "act:60%", **QUICK}))
    (report,) = lowtide.torch.reports()[before:]
    assert report.peak <= report.budget < report.own_peak
    assert losses == train(traced, torch.compile(traced, backend="aot_eager"))[0] and same(model, traced)
