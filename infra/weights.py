"""Weights as the trainer publishes them and as engines take them: a file of named tensors, known by its digest."""

import hashlib
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from infra import broadcast

WEIGHTS_FILE = "model.safetensors"
_NAMES_TOLD = 3


def digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of tensors in the order of their names: of each its name, dtype, shape and bytes, wherever it lies."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        sha.update(f"{name}\0{str(tensor.dtype).removeprefix('torch.')}\0{list(tensor.shape)}\0".encode())
        # As bytes first: numpy knows no bfloat16.
        sha.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()


class TakesWeights:
    """What vLLM's worker can do besides its own: a `--worker-extension-cls`, called over `/collective_rpc`.

    A source is a folder or the address of an `infra.broadcast.Offer`. Each method gives "" where the model then computes
    with exactly the published tensors, else what is wrong.
    """

    model_runner: Any
    reload_weights: Any
    """vLLM's, both."""

    def take_weights(self, source: str, sha256: str) -> str:
        """Replace the weights."""
        tensors = _read(source)
        if fault := _not_published(tensors, sha256):
            return fault
        self.reload_weights(weights_iterator=iter(tensors.items()))
        model = self.model_runner.get_model()
        if hasattr(model.lm_head, "cpu_linear"):
            # A head tied to the embeddings is not loaded by itself, and its packed copy would stay that of the old weights.
            # By name, so that checking the types of this module does not mean reading all of vLLM.
            layers = importlib.import_module("vllm.model_executor.layers.utils")
            layers.dispatch_cpu_unquantized_gemm(model.lm_head, remove_weight=False)
        return _not_held(model, tensors)

    def check_weights(self, source: str, sha256: str) -> str:
        """Leave the weights as they are."""
        tensors = _read(source)
        return _not_published(tensors, sha256) or _not_held(self.model_runner.get_model(), tensors)


def _read(source: str) -> dict[str, torch.Tensor]:
    return broadcast.take(source) if broadcast.is_offered(source) else load_file(Path(source) / WEIGHTS_FILE)


def _not_published(tensors: Mapping[str, torch.Tensor], sha256: str) -> str:
    found = digest(tensors)
    return "" if found == sha256 else f"the tensors have sha256 {found[:12]}, not the published {sha256[:12]}"


def _not_held(model: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> str:
    unlike = [name for name, tensor in tensors.items() if not _holds(model, name, tensor)]
    if "lm_head.weight" not in tensors and not _holds(model, "lm_head.weight", tensors["model.embed_tokens.weight"]):
        unlike.append("lm_head.weight")
    more = f" and {len(unlike) - _NAMES_TOLD} more" if len(unlike) > _NAMES_TOLD else ""
    return f"the model does not compute with {', '.join(unlike[:_NAMES_TOLD])}{more}" if unlike else ""


@torch.inference_mode()
def _holds(model: Any, name: str, published: torch.Tensor) -> bool:
    try:
        return all(
            torch.equal(held[: len(published)], published.to(held.device, held.dtype)) for held in _held(model, name)
        )
    except AttributeError:  # the model has nothing of that name
        return False


def _held(model: Any, name: str) -> Iterator[torch.Tensor]:
    """All that stands in the model for a tensor of the file. A vocabulary may be padded at its end."""
    path, _, kind = name.rpartition(".")
    parent, _, leaf = path.rpartition(".")
    rows = slice(None)
    for packed, parts in model.packed_modules_mapping.items():
        if leaf in parts:
            path, sizes = f"{parent}.{packed}", model.get_submodule(f"{parent}.{packed}").output_partition_sizes
            start = sum(sizes[: parts.index(leaf)])
            rows = slice(start, start + sizes[parts.index(leaf)])
    layer = model.get_submodule(path)
    tensor = layer.get_parameter(kind)
    if tensor.numel():
        yield tensor[rows]
    if not tensor.numel() or (leaf == "lm_head" and hasattr(layer, "cpu_linear")):
        # A CPU multiplies by a packed copy that nothing reads back; what it makes of the unit vectors is the weight itself.
        unit = torch.eye(layer.input_size, dtype=tensor.dtype)
        yield layer.cpu_linear(unit, tensor, None).T[rows]
