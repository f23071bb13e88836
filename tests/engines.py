"""A tiny random model behind a real vLLM server, started once for the session by the first test that asks for it."""

from collections.abc import Iterator

import pytest

from infra.endpoint import Endpoint
from infra.engine import EngineOptions, serve
from infra.models import LocalModel, resolve

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    """A Llama of 0.1 M random parameters over bytes and control tokens, peaked enough to have favourites.

    Its tokenizer adds a BOS of its own accord and its chat template writes one too, as those of many models do.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from tests.rl.tiny import byte_tokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_tokenizer(), bos_token="<|bos|>", eos_token="<|end|>", chat_template=CHAT_TEMPLATE
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.1,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return resolve(str(folder), folder)


@pytest.fixture(scope="session")
def tiny_endpoint(tiny_model: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """`tiny_model`, served by vLLM."""
    with serve(tiny_model, cache=tmp_path_factory.mktemp("serving"), options=EngineOptions(threads=1)) as endpoint:
        yield endpoint
