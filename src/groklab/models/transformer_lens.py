"""A decoder as a HookedTransformer of TransformerLens, with equal logits.

A pre-norm decoder is one natively. Post-norm is not among TransformerLens's kinds: there the model has no norm of its
own (`normalization_type=None`), and hooks that stay put the norms where they belong: what they return is what the next
layer reads, so that logits and `run_with_cache` are those of the decoder. The last block's `hook_resid_post` is after
the final norm too. TransformerLens itself is imported only to build one.

Legend: H heads, D d_model, K d_k, F d_ff.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from groklab.blocks import NORMS
from groklab.blocks.norm import EPS
from groklab.errors import ModelFileError, UsageError
from groklab.models.decoder import Decoder, DecoderBlock
from groklab.models.model_folder import CONFIG, read_model_folder, write_model_folder

HOOKED = "HookedTransformer"
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "silu": "silu"}  # groklab's name and TransformerLens's; both exact
NATIVE_NORMS = {"layer_norm": "LN", "rms_norm": "RMS"}
POST_NORMS = "post_norms."
_DTYPES = ("float32", "float64")
_SIZES = ("n_layers", "d_model", "n_heads", "d_head", "d_mlp", "n_ctx", "d_vocab", "d_vocab_out")
_KINDS = ("act_fn", "normalization_type", "attention_dir", "positional_embedding_type")
# No other reaches TransformerLens from a file: some of its settings would download.
_FIELDS = frozenset({*_SIZES, *_KINDS, "eps", "default_prepend_bos", "init_weights", "dtype"})
_COMPUTED = (".mask", ".IGNORE")  # buffers that TransformerLens makes itself


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedParts:
    """What a HookedTransformer is made of: the fields of its configuration (`dtype` by name), its state dict, and
    for a post-norm decoder the kind of norm that hooks apply; those norms' weights are `post_norms.…` in the state.
    """

    config: dict[str, Any]
    post_norm: str | None
    state: dict[str, Tensor]


def hooked_parts(model: nn.Module) -> HookedParts:
    """A decoder's parts by TransformerLens's names; what it cannot express is refused in a sentence."""
    if not isinstance(model, Decoder):
        said = f"TransformerLens takes groklab's decoder; a {type(model).__name__} has no place for its hooks"
        raise UsageError(said)
    config = model.config
    if config.activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UsageError(f"TransformerLens has no {config.activation}; it can take a decoder with one of {known}")
    native = config.norm_place == "pre"
    fields = {
        "n_layers": config.layers,
        "d_model": config.d_model,
        "n_heads": config.num_heads,
        "d_head": config.d_model // config.num_heads,
        "d_mlp": config.d_ff or 4 * config.d_model,
        "n_ctx": config.max_positions,
        "d_vocab": model.vocabulary.tokens,
        "d_vocab_out": model.readout.weight.shape[0],
        "act_fn": ACTIVATIONS[config.activation],
        "normalization_type": NATIVE_NORMS[config.norm] if native else None,
        "eps": EPS,
        "attention_dir": "causal",
        "positional_embedding_type": "standard",
        "default_prepend_bos": False,
        "init_weights": False,
        "dtype": str(model.readout.weight.dtype).removeprefix("torch."),
    }
    state = {
        "embed.W_E": model.embedding.weight,
        "pos_embed.W_pos": model.positions(config.max_positions),
        "unembed.W_U": model.readout.weight.T,
        "unembed.b_U": model.readout.bias,
    }
    norms: dict[str, nn.Module] = {"ln_final" if native else f"{POST_NORMS}final": model.norm}
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, DecoderBlock)
        state |= {f"blocks.{layer}.{name}": tensor for name, tensor in _block(block, config.num_heads).items()}
        places = (f"blocks.{layer}.ln1", f"blocks.{layer}.ln2") if native else _post_norm_names(layer)
        norms |= zip(places, (block.attention_residual.norm, block.ffn_residual.norm), strict=True)
    for place, norm in norms.items():
        state |= {f"{place}.{_short(name) if native else name}": tensor for name, tensor in norm.named_parameters()}
    kept = {name: tensor.detach().clone() for name, tensor in state.items()}
    return HookedParts(config=fields, post_norm=None if native else config.norm, state=kept)


def hooked_transformer(model: nn.Module | HookedParts) -> Any:
    """The decoder as a HookedTransformer that is ready to use, on the CPU."""
    parts = model if isinstance(model, HookedParts) else hooked_parts(model)
    lens = _transformer_lens()
    fields = {**parts.config, "dtype": getattr(torch, parts.config["dtype"]), "device": "cpu"}
    hooked = lens.HookedTransformer(lens.HookedTransformerConfig(**fields))
    if parts.post_norm is not None:
        _add_post_norms(hooked, parts.post_norm, parts.config)
    state = {name: tensor.contiguous() for name, tensor in parts.state.items()}
    missing, unexpected = hooked.load_state_dict(state, strict=False)
    odd = [*unexpected, *(name for name in missing if not name.endswith(_COMPUTED))]
    if odd:
        told = ", ".join(odd)
        raise UsageError(f"this TransformerLens has other parameters than groklab knows: {told}; use version 3")
    return hooked


def save_hooked(model: nn.Module, folder: str | PathLike[str], *, run: Mapping[str, Any] | None = None) -> None:
    """Write a decoder's parts to a folder that `load_hooked` reads; TransformerLens need not be installed."""
    parts = hooked_parts(model)
    body = {"config": parts.config, "post_norm": parts.post_norm, "run": run and dict(run)}
    write_model_folder(Path(folder), HOOKED, parts.state, body)


def load_hooked(folder: str | PathLike[str]) -> Any:
    """The HookedTransformer that was saved in a folder."""
    body, state = read_model_folder(Path(folder), HOOKED, ("config", "post_norm", "run"))
    config, norm = body["config"], body["post_norm"]
    if not isinstance(config, dict) or set(config) != _FIELDS or config["dtype"] not in _DTYPES:
        raise ModelFileError(f"{Path(folder) / CONFIG} has another configuration than groklab writes")
    if norm not in (None, *NORMS):
        raise ModelFileError(f"{Path(folder) / CONFIG} asks for the norm {norm!r}; known: {', '.join(NORMS)}")
    return hooked_transformer(HookedParts(config=config, post_norm=norm, state=state))


def _block(block: DecoderBlock, heads: int) -> dict[str, Tensor]:
    """W_Q, W_K, W_V [H, D, K] and W_O [H, K, D] from the packed maps [3·H·K, D] and [D, H·K]."""
    packed, expand, contract = block.attention.input, block.ffn.expand, block.ffn.contract
    parts = {
        "attn.W_O": block.attention.output.weight.T.unflatten(0, (heads, -1)),
        "attn.b_O": block.attention.output.bias,
        "mlp.W_in": expand.weight.T,
        "mlp.b_in": expand.bias,
        "mlp.W_out": contract.weight.T,
        "mlp.b_out": contract.bias,
    }
    for name, weight, bias in zip("QKV", packed.weight.chunk(3), packed.bias.chunk(3), strict=True):
        parts[f"attn.W_{name}"] = weight.unflatten(0, (heads, -1)).mT
        parts[f"attn.b_{name}"] = bias.unflatten(0, (heads, -1))
    return parts


def _short(name: str) -> str:
    return {"weight": "w", "bias": "b"}[name]


def _post_norm_names(layer: int) -> tuple[str, str]:
    return f"{POST_NORMS}{layer}_mid", f"{POST_NORMS}{layer}_post"


def _add_post_norms(hooked: Any, norm: str, config: Mapping[str, Any]) -> None:
    """Norms as modules of the model, so that they move, train and are saved with it, and hooks that apply them."""
    names = ["final", *(name for layer in range(config["n_layers"]) for name in _post_norm_names(layer))]
    made = {name.removeprefix(POST_NORMS): NORMS[norm](config["d_model"]) for name in names}
    hooked.post_norms = nn.ModuleDict(made).to(getattr(torch, config["dtype"]))
    for layer in range(config["n_layers"]):
        last = ("final",) if layer == config["n_layers"] - 1 else ()
        for point, applied in (("mid", ()), ("post", last)):
            hook = _Apply([hooked.post_norms[name] for name in (f"{layer}_{point}", *applied)])
            hooked.add_perma_hook(f"blocks.{layer}.hook_resid_{point}", hook)


class _Apply:
    """A hook whose return value takes the activation's place."""

    def __init__(self, norms: list[nn.Module]) -> None:
        self.norms = norms

    def __call__(self, activation: Tensor, hook: object) -> Tensor:
        for norm in self.norms:
            activation = norm(activation)
        return activation


def _transformer_lens() -> Any:
    try:
        lens = importlib.import_module("transformer_lens")
        return lens if lens.HookedTransformer else None
    except ImportError as error:  # version 4 raises it for a name that is gone
        said = "a HookedTransformer needs TransformerLens 3: pip install 'transformer-lens>=3,<4'"
        raise UsageError(said) from error
