"""The model that is trained, and the one that is written."""

from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rl.starter.model import ModelConfig, new_model, save_model

CONFIG = ModelConfig(hidden=32, layers=2, heads=2, inner=64, context=256)


def test_what_is_written_computes_the_same_with_a_head_of_its_own(toy_tokenizer: Path, tmp_path: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(toy_tokenizer)
    model = new_model(CONFIG, tokenizer, seed=0)
    save_model(model, tmp_path)
    again = LlamaForCausalLM.from_pretrained(tmp_path)
    ids = torch.arange(20)[None]
    assert torch.equal(model(ids).logits, again(ids).logits)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert again.lm_head.weight.data_ptr() != again.model.embed_tokens.weight.data_ptr()
    assert again.config.tie_word_embeddings is False


def test_equal_seeds_make_equal_models(toy_tokenizer: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(toy_tokenizer)
    one, two = (new_model(CONFIG, tokenizer, seed=5).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_attention_starts_by_passing_on_what_it_looks_at(toy_tokenizer: Path) -> None:
    """Values and output are near half an identity each, so their product is near a quarter of it: trace 32 / 4 = 8."""
    model = new_model(CONFIG, PreTrainedTokenizerFast.from_pretrained(toy_tokenizer), seed=0)
    for layer in model.model.layers:
        passed = layer.self_attn.o_proj.weight @ layer.self_attn.v_proj.weight
        assert abs(float(passed.trace()) - 8) < 1
