"""Architectures of transformers, timm and torchvision as people first try them: small (2 layers, width 64), called with a
batch by names, with labels where the model makes its loss itself.

SUITE: name -> (package, function that makes (module, batch)).
"""

import torch
from torch import nn
from torch_architectures import floats

_VOCABULARY = 128
_COMMON = dict(vocab_size=_VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
_DECODER = dict(_COMMON, num_key_value_heads=2, pad_token_id=0)
_VISION = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32,
               patch_size=8, num_labels=5)
_PAIR = dict(vocab_size=_VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
             decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, pad_token_id=0)


def _tokens(length=32, low=3):
    return torch.randint(low, _VOCABULARY, (2, length))


def _text():
    tokens = _tokens()
    return dict(input_ids=tokens, labels=tokens.clone())


def _image(size=32, **more):
    return lambda: dict(pixel_values=torch.randn(2, 3, size, size), labels=torch.randint(5, (2,)), **more)


def _images():
    return {"images": torch.randn(2, 3, 64, 64)}


def _transformers(config, model, settings, batch=_text):
    def make():
        import transformers

        described = getattr(transformers, f"{config}Config")(**settings)
        return getattr(transformers, model)(described), batch()

    return "transformers", make


def _decoder(name, settings=_DECODER, config=None, **more):
    return _transformers(config or name, f"{name}ForCausalLM", dict(settings, **more))


def _encoder(name, **more):
    return _transformers(name, f"{name}ForMaskedLM", dict(_COMMON, **more))


def _timm(name, **options):
    def make():
        import timm

        return MeanSquare(timm.create_model(name, pretrained=False, num_classes=5, **options)), _images()

    return "timm", make


def _torchvision(name):
    def make():
        import torchvision

        return MeanSquare(torchvision.models.get_model(name, weights=None, num_classes=5)), _images()

    return "torchvision", make


SUITE = {
    "GPT-2": _transformers("GPT2", "GPT2LMHeadModel",
                           dict(vocab_size=_VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=64)),
    "Llama": _decoder("Llama"),
    "Mistral": _decoder("Mistral"),
    "Qwen 2": _decoder("Qwen2"),
    "Qwen 3": _decoder("Qwen3", head_dim=16),
    "Phi-3": _decoder("Phi3"),
    "Gemma 2": _decoder("Gemma2", head_dim=16),
    "OLMo 2": _decoder("Olmo2"),
    "GPT-NeoX": _decoder("GPTNeoX", _COMMON),
    "OPT": _decoder("OPT", dict(vocab_size=_VOCABULARY, hidden_size=64, ffn_dim=128, num_hidden_layers=2, pad_token_id=0,
                                num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=64)),
    "Mixtral": _decoder("Mixtral", num_local_experts=4),
    "Mamba": _decoder("Mamba", dict(vocab_size=_VOCABULARY, hidden_size=64, num_hidden_layers=2, state_size=8)),
    "BERT": _encoder("Bert"),
    "RoBERTa": _encoder("Roberta", max_position_embeddings=64),
    "DeBERTa v2": _encoder("DebertaV2", relative_attention=True, position_buckets=8, pos_att_type=["c2p", "p2c"]),
    "ModernBERT": _encoder("ModernBert", local_attention=8, pad_token_id=0, global_attn_every_n_layers=2),
    "T5": _transformers("T5", "T5ForConditionalGeneration",
                        dict(vocab_size=_VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                             decoder_start_token_id=0)),
    "BART": _transformers("Bart", "BartForConditionalGeneration", dict(_PAIR, max_position_embeddings=64)),
    "Whisper": _transformers(
        "Whisper", "WhisperForConditionalGeneration",
        dict(_PAIR, num_mel_bins=8, max_source_positions=16, max_target_positions=16, decoder_start_token_id=1,
             bos_token_id=1, eos_token_id=2),
        lambda: dict(input_features=torch.randn(2, 8, 32), labels=_tokens(12))),
    "ViT": _transformers("ViT", "ViTForImageClassification", _VISION, _image()),
    "DINOv2": _transformers("Dinov2", "Dinov2ForImageClassification", _VISION, _image()),
    "Swin": _transformers("Swin", "SwinForImageClassification",
                          dict(image_size=32, patch_size=4, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4,
                               num_labels=5), _image()),
    "CLIP": _transformers("CLIP", "CLIPModel",
                          dict(text_config=dict(_COMMON, max_position_embeddings=32, eos_token_id=2),
                               vision_config={k: v for k, v in _VISION.items() if k != "num_labels"}, projection_dim=32),
                          lambda: dict(input_ids=_tokens(), pixel_values=torch.randn(2, 3, 32, 32), return_loss=True)),
    "SegFormer": _transformers("Segformer", "SegformerForSemanticSegmentation",
                               dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4],
                                    decoder_hidden_size=32, num_labels=5),
                               lambda: dict(pixel_values=torch.randn(2, 3, 64, 64), labels=torch.randint(5, (2, 64, 64)))),
    "wav2vec 2.0": _transformers(
        "Wav2Vec2", "Wav2Vec2ForCTC",
        dict(vocab_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
             conv_dim=[16, 16], conv_stride=[4, 2], conv_kernel=[8, 3], num_feat_extract_layers=2,
             num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4),
        lambda: dict(input_values=torch.randn(2, 2000), labels=torch.randint(1, 32, (2, 8)))),
    "ConvNeXt (timm)": _timm("test_convnext"),
    "ViT (timm)": _timm("test_vit", img_size=64),
    "EfficientNet (timm)": _timm("test_efficientnet"),
    "ResNet-18 (torchvision)": _torchvision("resnet18"),
}


class MeanSquare(nn.Module):
    """The mean square of all that a model makes of its images."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, images):
        return sum(t.square().mean() for t in floats(self.body(images)))


class Only(nn.Module):
    """The loss of a model, whatever else it hands out."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, **batch):
        result = self.body(**batch)
        return result if isinstance(result, torch.Tensor) else result.loss
