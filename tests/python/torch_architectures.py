"""Architectures of other people's packages, small and with random weights, for the long test of the zoo.

ARCHITECTURES: name -> (package, function that makes (module, inputs)); a module's result is its loss.  Names
are `package/architecture`.  Sizes are the smallest at which each still does all that it does.
"""

import importlib
import importlib.util

import torch
import torch.nn.functional as F
from torch import nn

ARCHITECTURES = {}


def available(package, untangle=True):
    """The package, ready to build its models, or None where it is not installed.  untangle: as of _untangle_masks."""
    try:
        if package in ("torchvision", "timm", "transformers"):
            _declare_vision_operators()
        module = importlib.import_module(package)
        if package == "transformers" and untangle:
            _untangle_masks()
        return module
    except ImportError:
        return None


def _declare_vision_operators(keep=[]):  # noqa: B006  (the library lives as long as the process)
    """torchvision's wheels hold kernels for another build of torch; its models need their schemas alone."""
    if not keep and importlib.util.find_spec("torchvision") and not hasattr(torch.ops.torchvision, "nms"):
        keep.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            keep[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def _untangle_masks():
    """Sequences are never packed here; asking whether they are would read numbers while tracing."""
    import transformers.masking_utils

    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None


class Loss(nn.Module):
    """The mean square of all floating-point results of `body`, called with inputs by name."""

    def __init__(self, body, names=(), **constant):
        super().__init__()
        self.body, self.names, self.constant = body, names, constant

    def forward(self, *inputs):
        if self.names:
            results = self.body(**dict(zip(self.names, inputs, strict=True)), **self.constant)
        else:
            results = self.body(*inputs, **self.constant)
        return sum(t.float().square().mean() for t in floats(results))


def floats(results):
    """The floating-point tensors in whatever a model hands out, in order."""
    if isinstance(results, torch.Tensor):
        return [results] if results.is_floating_point() else []
    if isinstance(results, dict):
        results = list(results.values())
    return [t for part in results or () for t in floats(part)] if isinstance(results, (list, tuple)) else []


def _add(package, name, make):
    ARCHITECTURES[f"{package}/{name}"] = (package, make)


def _image(size=32, batch=2, channels=3):
    return (torch.randn(batch, channels, size, size),)


def _tokens(length=16, batch=4, vocabulary=64):
    return torch.randint(3, vocabulary, (batch, length))


# ---- timm


def _timm(name, size=32, batch=2, **options):
    def make():
        import timm

        return Loss(timm.create_model(name, pretrained=False, num_classes=5, **options)), _image(size, batch)

    _add("timm", name, make)


for _name in ("byobnet", "convnext", "convnext2", "efficientnet", "efficientnet_evos", "efficientnet_gn",
              "efficientnet_ln", "mambaout", "nfnet", "resnet"):
    _timm(f"test_{_name}", 64)
for _name in ("vit", "vit2", "vit3"):
    _timm(f"test_{_name}", 64, 8, img_size=64)
for _name in ("coatnet", "maxvit"):
    _timm(f"test_{_name}", 64, img_size=64)
_timm("resnet10t", 64, drop_path_rate=0.2)
_timm("skresnet18", 64)
_timm("resnest14d", 64)
_timm("mobilenetv2_035", 64, drop_rate=0.2)
_timm("lcnet_035", 64)
_timm("densenet121", 64, block_config=(2, 2, 2, 2), drop_rate=0.1)
_timm("dla46_c", 64)
_timm("ese_vovnet19b_slim_dw", 64)
_timm("hgnetv2_b0", 64)
_timm("ghostnet_050", 64)
_timm("mobilevit_xxs", 64)
_timm("fastvit_t8", 64)
_timm("inception_next_atto", 64)
_timm("cait_xxs24_224", batch=8, img_size=32, patch_size=8, depth=2)
_timm("swin_tiny_patch4_window7_224", 64, img_size=64, window_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4))
_timm("swinv2_cr_tiny_224", 64, img_size=64, window_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4))
_timm("pvt_v2_b0", 64, depths=(1, 1, 1, 1))
_timm("mixer_s32_224", 64, 8, img_size=64)
_timm("resmlp_12_224", 64, 8, img_size=64)
_timm("xcit_nano_12_p16_224", 64, img_size=64, depth=2)
_timm("davit_tiny", 64, depths=(1, 1, 1, 1), embed_dims=(16, 32, 64, 128), num_heads=(2, 4, 8, 16))
_timm("beit_base_patch16_224", batch=8, img_size=32, patch_size=8, depth=2, embed_dim=32, num_heads=4, drop_path_rate=0.2)
_timm("eva02_tiny_patch14_224", 28, 8, img_size=28, depth=2)
_timm("starnet_s050", 64)


# ---- torchvision


def _torchvision(name, size=64, batch=2, **options):
    def make():
        import torchvision

        return Loss(torchvision.models.get_model(name, weights=None, **options)), _image(size, batch)

    _add("torchvision", name, make)


_torchvision("resnet18", num_classes=5)
_torchvision("squeezenet1_1", num_classes=5)
_torchvision("shufflenet_v2_x0_5", num_classes=5)
_torchvision("mnasnet0_5", num_classes=5)
_torchvision("googlenet", init_weights=False, num_classes=5)
_torchvision("lraspp_mobilenet_v3_large", weights_backbone=None, num_classes=4)


def _video():
    from torchvision.models.video import r3d_18

    return Loss(r3d_18(num_classes=5)), (torch.randn(1, 3, 4, 32, 32),)


_add("torchvision", "r3d_18", _video)


# ---- transformers

_DECODER = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=32, pad_token_id=0)
_ENCODER = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=64)


def _transformers(name, model, config, names=("input_ids",), inputs=lambda: (_tokens(),), constant=None):
    def make():
        import transformers

        settings = config() if callable(config) else config
        described = getattr(transformers, f"{name}Config")(**settings)
        body = getattr(transformers, model)(described)
        return Loss(body, names, return_dict=False, **(constant or {})), inputs()

    _add("transformers", name, make)


_NO_CACHE = {"use_cache": False}
_transformers("GPT2", "GPT2LMHeadModel", dict(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4),
              constant=_NO_CACHE)
for _name in ("Llama", "Mistral", "Qwen2", "Qwen3", "Phi3", "StableLm", "Cohere", "Olmo2"):
    _transformers(_name, f"{_name}ForCausalLM", _DECODER, constant=_NO_CACHE)
_transformers("Gemma2", "Gemma2ForCausalLM", dict(_DECODER, head_dim=8, sliding_window=8), constant=_NO_CACHE)
_transformers("OPT", "OPTForCausalLM", dict(vocab_size=64, hidden_size=32, ffn_dim=64, num_hidden_layers=2,
                                            num_attention_heads=4, max_position_embeddings=32,
                                            word_embed_proj_dim=32), constant=_NO_CACHE)
_transformers("Bloom", "BloomForCausalLM", dict(vocab_size=64, hidden_size=32, n_layer=2, n_head=4,
                                                hidden_dropout=0.1), constant=_NO_CACHE)
_transformers("GPTNeo", "GPTNeoForCausalLM", dict(vocab_size=64, hidden_size=32, num_layers=2, num_heads=4,
                                                  max_position_embeddings=32, window_size=4,
                                                  attention_types=[[["global", "local"], 1]]), constant=_NO_CACHE)
_transformers("GPTNeoX", "GPTNeoXForCausalLM", dict(_ENCODER), constant=_NO_CACHE)
_transformers("Mamba", "MambaForCausalLM", dict(vocab_size=64, hidden_size=32, state_size=4, num_hidden_layers=2),
              constant=_NO_CACHE)
_transformers("Mixtral", "MixtralForCausalLM", dict(_DECODER, num_local_experts=4), constant=_NO_CACHE)
_transformers("Bert", "BertForMaskedLM", _ENCODER)
_transformers("Roberta", "RobertaForMaskedLM", _ENCODER)
_transformers("Albert", "AlbertForMaskedLM", dict(_ENCODER, embedding_size=16))
_transformers("Electra", "ElectraForMaskedLM", dict(_ENCODER, embedding_size=16))
_transformers("DistilBert", "DistilBertForMaskedLM", dict(vocab_size=64, dim=32, hidden_dim=64, n_layers=2, n_heads=4,
                                                          max_position_embeddings=64))
_transformers("DebertaV2", "DebertaV2ForMaskedLM", dict(_ENCODER, relative_attention=True, position_buckets=8,
                                                        pos_att_type=["c2p", "p2c"]))
_transformers("FNet", "FNetForMaskedLM", dict(vocab_size=64, hidden_size=32, intermediate_size=64,
                                              num_hidden_layers=2, max_position_embeddings=64))
_transformers("ModernBert", "ModernBertForMaskedLM", dict(_ENCODER, local_attention=8, pad_token_id=0,
                                                          global_attn_every_n_layers=2))
_transformers("XLNet", "XLNetLMHeadModel", dict(vocab_size=64, d_model=32, n_layer=2, n_head=4, d_inner=64),
              constant={"use_mems": False})
_PAIR = ("input_ids", "decoder_input_ids")
_transformers("T5", "T5ForConditionalGeneration", dict(vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                                                       num_heads=4), _PAIR, lambda: (_tokens(), _tokens(12)), _NO_CACHE)
_SEQUENCE = dict(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                 decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, pad_token_id=0)
_transformers("Bart", "BartForConditionalGeneration", dict(_SEQUENCE, max_position_embeddings=32), _PAIR,
              lambda: (_tokens(), _tokens(12)), _NO_CACHE)
_transformers("Whisper", "WhisperForConditionalGeneration",
              dict(_SEQUENCE, num_mel_bins=8, max_source_positions=16, max_target_positions=16,
                   decoder_start_token_id=1, bos_token_id=1, eos_token_id=2),
              ("input_features", "decoder_input_ids"), lambda: (torch.randn(4, 8, 32), _tokens(12)), _NO_CACHE)
_VISION = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32,
               patch_size=8)
_transformers("ViT", "ViTForImageClassification", dict(_VISION, hidden_dropout_prob=0.1), ("pixel_values",), _image)
_transformers("Dinov2", "Dinov2Model", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                                            patch_size=8, drop_path_rate=0.1), ("pixel_values",), _image)
_transformers("Swin", "SwinForImageClassification", dict(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2],
                                                         num_heads=[2, 4], window_size=4), ("pixel_values",), _image)
_transformers("Segformer", "SegformerForSemanticSegmentation",
              dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4],
                   decoder_hidden_size=32), ("pixel_values",), lambda: _image(64))
_transformers("ConvNextV2", "ConvNextV2Model", dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
              ("pixel_values",), _image)
_transformers("VideoMAE", "VideoMAEModel", dict(_VISION, num_frames=4), ("pixel_values",),
              lambda: (torch.randn(2, 4, 3, 32, 32),))
_transformers("CLIP", "CLIPModel",
              lambda: dict(text_config=dict(_ENCODER, max_position_embeddings=16, eos_token_id=2),
                           vision_config=_VISION, projection_dim=16),
              ("input_ids", "pixel_values"), lambda: (_tokens(), *_image(batch=4)))
_transformers("Wav2Vec2", "Wav2Vec2Model",
              dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                   conv_dim=[16, 16], conv_stride=[4, 2], conv_kernel=[8, 3], num_feat_extract_layers=2,
                   num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, mask_time_prob=0.0, layerdrop=0.0),
              ("input_values",), lambda: (torch.randn(2, 400),))
_transformers("PatchTST", "PatchTSTModel", dict(num_input_channels=3, context_length=32, patch_length=8,
                                                patch_stride=8, d_model=32, num_hidden_layers=2, ffn_dim=64,
                                                num_attention_heads=4), ("past_values",),
              lambda: (torch.randn(2, 32, 3),))
_transformers("Perceiver", "PerceiverModel", dict(num_latents=8, d_latents=32, d_model=32, num_blocks=1,
                                                  num_self_attends_per_block=2, num_self_attention_heads=4,
                                                  num_cross_attention_heads=4), ("inputs",),
              lambda: (torch.randn(2, 16, 32),))


# ---- plain


class Recurrent(nn.Module):
    """A recurrent layer of torch's own, two deep, both ways."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(16, 24, num_layers=2, bidirectional=True, batch_first=True, **options)

    def forward(self, x):
        out, _ = self.layer(x)
        return out.square().mean()


class Bag(nn.Module):
    """Bags of embeddings in all three ways of adding up."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(32, 16, mode=mode) for mode in ("sum", "mean", "max"))
        self.head = nn.Linear(48, 4)

    def forward(self, tokens, offsets):
        return self.head(torch.cat([bag(tokens, offsets) for bag in self.bags], 1).tanh()).square().mean()


class Experts(nn.Module):
    """A dense mixture of experts: topk, scatter and a sort."""

    def __init__(self, d=32, experts=4):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d))
                                     for _ in range(experts))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        gates = torch.zeros(*x.shape[:-1], len(self.experts)).scatter(-1, chosen, weights)
        out = sum(gates[..., i:i + 1] * expert(x) for i, expert in enumerate(self.experts))
        order, _ = out.sort(-1)
        return (out.cumsum(0) * order).square().mean()


class Sampler(nn.Module):
    """A spatial transformer: affine_grid, grid_sample, interpolate, pixel_shuffle."""

    def __init__(self):
        super().__init__()
        self.where = nn.Linear(3 * 16 * 16, 6)
        self.up = nn.Conv2d(3, 12, 3, padding=1)

    def forward(self, x):
        theta = self.where(x.flatten(1)).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
        x = F.pixel_shuffle(self.up(x), 2)
        for mode in ("bilinear", "bicubic", "nearest", "nearest-exact"):
            x = F.interpolate(x, scale_factor=0.75, mode=mode)
        x = F.interpolate(x[:, None], size=(5, 7, 9), mode="trilinear", align_corners=True)
        return x.square().mean()


class Normed(nn.Module):
    """Weights that are computed: weight norm and spectral norm, whose vectors move with every step."""

    def __init__(self):
        super().__init__()
        parametrizations = nn.utils.parametrizations
        self.layers = nn.Sequential(
            parametrizations.weight_norm(nn.Conv2d(3, 8, 3, padding=1)), nn.LeakyReLU(0.1),
            parametrizations.spectral_norm(nn.Conv2d(8, 8, 3, padding=1)), nn.InstanceNorm2d(8, affine=True), nn.GELU(),
            parametrizations.orthogonal(nn.Conv2d(8, 4, 1)))

    def forward(self, x):
        return self.layers(x).square().mean()


class Checkpointed(nn.Module):
    """torch's own checkpoints inside, with dropout."""

    def __init__(self, d=64):
        super().__init__()
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Dropout(0.2), nn.Linear(4 * d, d))
                                   for _ in range(3))

    def forward(self, x):
        for part in self.parts:
            x = x + torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)
        return x.square().mean()


class Rotary(nn.Module):
    """Attention with rotary embeddings as complex numbers from a buffer, RMS norm, grouped heads and a mask."""

    def __init__(self, d=32, heads=4, length=16):
        super().__init__()
        self.norm, self.qkv, self.out = nn.RMSNorm(d), nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d)
        self.heads, size = heads, d // heads
        angles = torch.outer(torch.arange(length), 100 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles), persistent=False)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril())

    def forward(self, x):
        b, t, d = x.shape
        size = d // self.heads
        q, k, v = self.qkv(self.norm(x)).split([d, d // 2, d // 2], -1)
        q, k, v = (y.view(b, t, -1, size).transpose(1, 2) for y in (q, k, v))
        q, k = (torch.view_as_real(torch.view_as_complex(y.unflatten(-1, (-1, 2)).contiguous()) * self.turns).flatten(-2)
                for y in (q, k))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, enable_gqa=True)
        return self.out(a.transpose(1, 2).reshape(b, t, d)).square().mean()


class Graph(nn.Module):
    """Messages along edges: gather, index_add, scatter_reduce, index_put."""

    def __init__(self, d=16):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(3))

    def forward(self, x, source, target):
        for part in self.parts:
            messages = part(torch.cat([x[source], x.index_select(0, target)], 1)).relu()
            summed = torch.zeros_like(x).index_add(0, target, messages)
            largest = x.scatter_reduce(0, target[:, None].expand_as(messages), messages, "amax")
            x = summed.index_put((source[:4],), messages[:4], accumulate=True) + largest
        return x.square().mean()


class Highway(nn.Module):
    """One layer after another with gates, each result written into one long tensor in place."""

    def __init__(self, d=32, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, 2 * d) for _ in range(layers))

    def forward(self, x):
        kept = x.new_zeros(len(self.layers), *x.shape)
        for i, layer in enumerate(self.layers):
            both = layer(x)
            gate = both[:, x.shape[1]:].sigmoid_()
            x = x * (1 - gate) + both[:, :x.shape[1]].tanh() * gate
            kept[i] = x
        return kept.mul_(2).square().mean()


class Losses(nn.Module):
    """Heads with losses of many kinds, some of whose results nobody reads."""

    def __init__(self, d=32):
        super().__init__()
        self.body, self.classes, self.unused = nn.Linear(d, d), nn.Linear(d, 8), nn.Linear(d, d)

    def forward(self, x, y):
        h = self.body(x).tanh()
        scores = self.classes(h)
        value, index = scores.max(-1)
        losses = [F.cross_entropy(scores, y, label_smoothing=0.1), F.smooth_l1_loss(h, x), F.huber_loss(h, x),
                  F.kl_div(h.log_softmax(-1), x.softmax(-1), reduction="batchmean"),
                  F.binary_cross_entropy_with_logits(value, (index > 3).float()),
                  F.cosine_embedding_loss(h, x, torch.ones(len(x))), torch.logsumexp(scores, 0).var(),
                  h.std(0).mean(), h.norm()]
        return sum(losses)


class Transposed(nn.Module):
    """Three-dimensional convolutions, transposed and grouped, with every kind of padding and pooling."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv3d(2, 8, 3, 2, 1, groups=2, padding_mode="circular")
        self.up = nn.ConvTranspose3d(8, 4, 2, 2)
        self.flat = nn.Conv2d(4, 4, 3, dilation=2, padding=2, padding_mode="reflect")
        self.pools = nn.ModuleList([nn.AdaptiveAvgPool2d(5), nn.LPPool2d(2, 2), nn.AdaptiveMaxPool2d(3), nn.AvgPool2d(2, 1)])

    def forward(self, x):
        x = self.flat(self.up(F.elu(self.down(x))).mean(2))
        return sum(pool(x).square().mean() for pool in self.pools) + F.unfold(x, 3).square().mean()


def _plain(name, make):
    _add("plain", name, make)


_plain("lstm", lambda: (Recurrent(nn.LSTM, proj_size=8), (torch.randn(3, 7, 16),)))
_plain("gru", lambda: (Recurrent(nn.GRU), (torch.randn(3, 7, 16),)))
_plain("rnn", lambda: (Recurrent(nn.RNN), (torch.randn(3, 7, 16),)))
_plain("embedding_bag", lambda: (Bag(), (torch.randint(32, (20,)), torch.tensor([0, 3, 3, 11]))))
_plain("experts", lambda: (Experts(), (torch.randn(8, 32),)))
_plain("sampler", lambda: (Sampler(), (torch.randn(2, 3, 16, 16),)))
_plain("normed", lambda: (Normed(), (torch.randn(2, 3, 8, 8),)))
_plain("checkpointed", lambda: (Checkpointed(), (torch.randn(64, 64),)))
_plain("rotary", lambda: (Rotary(), (torch.randn(2, 16, 32),)))
_plain("graph", lambda: (Graph(), (torch.randn(10, 16), torch.randint(10, (30,)), torch.randint(10, (30,)))))
_plain("highway", lambda: (Highway(), (torch.randn(8, 32),)))
_plain("losses", lambda: (Losses(), (torch.randn(8, 32), torch.randint(8, (8,)))))
_plain("volumes", lambda: (Transposed(), (torch.randn(2, 2, 8, 8, 8),)))
_plain("transformer", lambda: (Loss(nn.Transformer(32, 4, 1, 1, 64, dropout=0.1, batch_first=True)),
                               (torch.randn(2, 6, 32), torch.randn(2, 5, 32))))
_plain("bilinear", lambda: (Loss(nn.Bilinear(16, 16, 8)), (torch.randn(8, 16), torch.randn(8, 16))))
