"""Weights as the trainer publishes them and engines load them."""

import hashlib
from collections.abc import Mapping

import torch


def digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of tensors in the order of their names: of each its name, dtype, shape and bytes, wherever it lies."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        sha.update(f"{name}\0{str(tensor.dtype).removeprefix('torch.')}\0{list(tensor.shape)}\0".encode())
        # As bytes first: numpy knows no bfloat16.
        sha.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return sha.hexdigest()
