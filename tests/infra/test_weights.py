"""The digest that trainer and engines compare."""

import hashlib

import torch

from infra.weights import digest


def test_the_digest_is_over_name_dtype_shape_and_bytes_in_the_order_of_names() -> None:
    by_hand = b"a\0float32\0[2]\0" + b"\0\0\x80\x3f\0\0\0\x40" + b"b\0bfloat16\0[]\0" + b"\x80\x3f"
    tensors = {"b": torch.tensor(1.0, dtype=torch.bfloat16), "a": torch.tensor([1.0, 2.0])}
    assert digest(tensors) == hashlib.sha256(by_hand).hexdigest()


def test_what_a_tensor_holds_counts_and_not_how_it_lies_in_memory() -> None:
    matrix = torch.arange(6.0).reshape(2, 3)
    assert digest({"m": matrix.t().contiguous().t()}) == digest({"m": matrix})
    assert digest({"m": matrix.reshape(3, 2)}) != digest({"m": matrix})
    assert digest({"n": matrix}) != digest({"m": matrix})
    assert digest({"m": matrix.to(torch.bfloat16)}) != digest({"m": matrix})
