"""Networks of public libraries, to be captured with `python -m lowtide.torch bench/networks.py:NAME`.

Each function returns (module, inputs, loss function). Needs torchvision and transformers (`tools/deps zoo`); nothing is
downloaded: weights stay what they are built with, and capture runs no kernel.
"""
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "python"))
from torch_architectures import available


def _classify(model, x, y):
    result = model(x)
    return functional.cross_entropy(getattr(result, "logits", result), y)


def _images(module, batch, size=224, classes=1000):
    return module, (torch.empty(batch, 3, size, size), torch.zeros(batch, dtype=torch.long)), _classify


def _language(model, tokens, labels):
    return model(tokens, labels=labels).loss


def _words(module, batch, length):
    tokens = torch.zeros(batch, length, dtype=torch.long)
    return module, (tokens, tokens), _language


def resnet50(batch=64):
    return _images(available("torchvision").models.resnet50(), batch)


def densenet121(batch=64):
    return _images(available("torchvision").models.densenet121(), batch)


def gpt2(batch=8, length=1024):
    transformers = available("transformers")
    config = transformers.GPT2Config(use_cache=False)
    return _words(transformers.GPT2LMHeadModel(config), batch, length)


def gptneo(batch=2, length=2048):
    transformers = available("transformers")
    config = transformers.GPTNeoConfig(use_cache=False)
    return _words(transformers.GPTNeoForCausalLM(config), batch, length)


def llama(batch=1, length=2048):
    transformers = available("transformers")
    config = transformers.LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=16,
                                      num_attention_heads=16, use_cache=False)
    return _words(transformers.LlamaForCausalLM(config), batch, length)


def whisper(batch=8):
    transformers = available("transformers")
    config = transformers.WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12,
                                        decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
                                        use_cache=False)
    sound, text = torch.empty(batch, config.num_mel_bins, 3000), torch.zeros(batch, 448, dtype=torch.long)
    return (transformers.WhisperForConditionalGeneration(config), (sound, text),
            lambda model, x, y: model(x, labels=y).loss)


class _LanguageLstm(nn.Module):
    def __init__(self, words=33278, width=650):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.recurrent = nn.ModuleList(nn.LSTM(width, width) for _ in range(2))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.recurrent:
            x = functional.dropout(layer(x)[0], 0.5, self.training)
        return self.head(x)


def lstm(batch=20, length=35):
    tokens = torch.zeros(length, batch, dtype=torch.long)
    return (_LanguageLstm(), (tokens, tokens),
            lambda model, x, y: functional.cross_entropy(model(x).flatten(0, 1), y.flatten()))


NAMES = ("resnet50", "densenet121", "gpt2", "gptneo", "llama", "whisper", "lstm")
