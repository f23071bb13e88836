"""What a worker says of weights it was given: they are the published ones, and the model computes with them, or what is wrong.

The model here has vLLM's shape on a CPU: packed projections that cannot be read back, a padded vocabulary, a tied head.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import Module, Parameter

from infra.weights import WEIGHTS_FILE, TakesWeights, digest

Linear = Callable[[torch.Tensor, torch.Tensor, None], torch.Tensor]
SIZE, WORDS = 4, 5


def packed(weight: torch.Tensor) -> Linear:
    copy = weight.clone()
    return lambda x, weight, bias: x @ copy.T


class Layer(Module):
    """A linear layer: its weight is kept as a packed copy alone, except where it is an embedding too."""

    def __init__(self, weight: torch.Tensor, sizes: list[int], readable: bool = False) -> None:
        super().__init__()
        self.input_size, self.output_partition_sizes = SIZE, sizes
        self.weight = Parameter(weight if readable else torch.empty(0), requires_grad=False)
        self.cpu_linear = packed(weight)


class PackedModel(Module):
    packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self.model = Module()
        self.model.qkv_proj = Layer(torch.cat([tensors[f"model.{x}_proj.weight"] for x in "qkv"]), [4, 2, 2])
        padded = torch.cat([tensors["model.embed_tokens.weight"], torch.zeros(3, SIZE)])
        self.model.embed_tokens = Layer(padded, [WORDS + 3], readable=True)
        self.lm_head = Layer(padded, [WORDS + 3], readable=True)


class Worker(TakesWeights):
    """Loads what it is given, but for what it `forgets`."""

    def __init__(self, forgets: str = "") -> None:
        self.model_runner = self
        self.model = PackedModel(tensors(0))
        self.forgets = forgets

    def get_model(self) -> Module:
        return self.model

    def reload_weights(self, weights_iterator: Iterable[tuple[str, torch.Tensor]]) -> None:
        old, self.model = self.model, PackedModel(dict(weights_iterator))
        if self.forgets == "lm_head":
            self.model.lm_head = old.lm_head
        if self.forgets == "qkv_proj":
            self.model.model.qkv_proj = old.model.qkv_proj
        del self.model.lm_head.cpu_linear  # what a head is dispatched to anew is vLLM's business


def tensors(seed: int) -> dict[str, torch.Tensor]:
    noise = torch.Generator().manual_seed(seed)
    shapes = {"q_proj": (4, SIZE), "k_proj": (2, SIZE), "v_proj": (2, SIZE), "embed_tokens": (WORDS, SIZE)}
    return {f"model.{name}.weight": torch.randn(shape, generator=noise) for name, shape in shapes.items()}


@pytest.fixture
def published(tmp_path: Path) -> tuple[str, str]:
    save_file(tensors(1), tmp_path / WEIGHTS_FILE)
    return str(tmp_path), digest(tensors(1))


def test_weights_that_arrived_in_full_are_nothing_to_speak_of(published: tuple[str, str]) -> None:
    worker = Worker()
    assert worker.check_weights(*published).startswith("the model does not compute with model.")
    assert worker.take_weights(*published) == "" == worker.check_weights(*published)


def test_a_file_that_is_not_the_published_one_is_not_loaded(published: tuple[str, str]) -> None:
    worker = Worker()
    assert worker.take_weights(published[0], "0" * 64).endswith("not the published 000000000000")
    assert torch.equal(worker.model.model.embed_tokens.weight[:WORDS], tensors(0)["model.embed_tokens.weight"])


@pytest.mark.parametrize(
    ("forgets", "told"),
    [("lm_head", "lm_head.weight"), ("qkv_proj", "model.k_proj.weight, model.q_proj.weight, model.v_proj.weight")],
)
def test_what_still_computes_with_old_weights_is_named(forgets: str, told: str, published: tuple[str, str]) -> None:
    assert Worker(forgets).take_weights(*published) == f"the model does not compute with {told}"


def test_a_packed_head_of_old_weights_is_seen_where_its_readable_ones_are_new(published: tuple[str, str]) -> None:
    worker = Worker()
    worker.take_weights(*published)
    worker.model.lm_head.cpu_linear = packed(torch.zeros(WORDS + 3, SIZE))
    assert worker.check_weights(*published) == "the model does not compute with lm_head.weight"


def test_a_tensor_that_the_model_has_no_place_for_is_named(tmp_path: Path) -> None:
    given = tensors(0) | {"model.extra.weight": torch.ones(2)}
    save_file(given, tmp_path / WEIGHTS_FILE)
    assert Worker().check_weights(str(tmp_path), digest(given)) == "the model does not compute with model.extra.weight"
