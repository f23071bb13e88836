"""How turns of the chat families are read: the same faults by the same names, each in its family's own spelling."""

import pytest

from infra.tools.base import ToolSpec
from rl.formats import smollm2
from rl.tokens import Answer, FormatError, FormatKind, ToolCalls
from schemas.trajectory import ToolCall
from tests.rl.formats.styles import SCHEMAS, SEARCH, STYLES

GOOD = '{"queries": ["Niger"]}'
NIGER = ToolCall(name="search", arguments={"queries": ["Niger"]})


def qwen3(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def smol(body: str) -> str:
    return f"<tool_call>[{body}]</tool_call>"


def bare(body: str) -> str:
    return body.replace('"arguments"', '"parameters"')


SPELLED = {"qwen3": (qwen3, "<|im_end|>"), "smollm2": (smol, "<|im_end|>"), "llama": (bare, "<|eot_id|>")}
every_family = pytest.mark.parametrize("family", SPELLED)


@every_family
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"name": "search", "arguments": {"queries": ["Niger"', "invalid_json"),
        ('{"name": "search", "name": "open", "arguments": {"queries": []}}', "invalid_json"),
        ('{"name": "search", "arguments": {"queries": [NaN]}}', "invalid_json"),
        ('{"name": "search", "arguments": {"queries": ["\\ud800"]}}', "invalid_json"),
        ('{"name": "search"}', "invalid_call"),
        ('{"name": "search", "arguments": "Niger"}', "invalid_call"),
        (f'{{"name": "search", "arguments": {GOOD}, "id": 1}}', "invalid_call"),
        (f'{{"name": "Search", "arguments": {GOOD}}}', "unknown_tool"),
        ('{"name": "search", "arguments": {}}', "wrong_arguments"),
        ('{"name": "search", "arguments": {"queries": "Niger"}}', "wrong_arguments"),
    ],
)
def test_a_call_that_is_none_is_named_and_not_repaired(family: str, body: str, kind: str) -> None:
    spell, end = SPELLED[family]
    setup = STYLES[family]
    assert setup.format.parse(setup.sampled(spell(body) + end), SCHEMAS) == FormatError(FormatKind(kind))
    assert setup.format.parse(setup.sampled(spell(body)), SCHEMAS) == FormatError(FormatKind.TRUNCATED)


CALL = f'{{"name": "search", "arguments": {GOOD}}}'
PARAMETERS = bare(CALL)


@pytest.mark.parametrize(
    ("family", "text", "kind"),
    [
        ("qwen3", "<|im_end|>", "empty_answer"),
        ("qwen3", "<think>\nhm\n</think>\n\n<|im_end|>", "empty_answer"),
        ("qwen3", "<think>\nhm<|im_end|>", "unclosed"),
        ("qwen3", f"<think>hm{qwen3(CALL)}<|im_end|>", "unclosed"),
        ("qwen3", f"<tool_call>{CALL}<|im_end|>", "unclosed"),
        ("qwen3", "hm</think>Niger<|im_end|>", "misplaced"),
        ("qwen3", "Niger</tool_call><|im_end|>", "misplaced"),
        ("qwen3", "<think>a</think><think>b</think>Niger<|im_end|>", "misplaced"),
        ("qwen3", f"{qwen3(CALL)}<think>b</think><|im_end|>", "misplaced"),
        ("qwen3", "Niger<|im_start|>user\nmore<|im_end|>", "misplaced"),
        ("qwen3", "Niger<|endoftext|>Mali<|im_end|>", "misplaced"),
        ("qwen3", f"{qwen3(CALL)} then<|im_end|>", "text_outside"),
        ("qwen3", f"{qwen3(CALL)} and {qwen3(CALL)}<|im_end|>", "text_outside"),
        ("qwen3", f"{qwen3(CALL)}<tool_response>Niger: yes</tool_response><|im_end|>", "self_written_response"),
        ("smollm2", "<|im_end|>", "empty_answer"),
        ("smollm2", f"<tool_call>[{CALL}]<|im_end|>", "unclosed"),
        ("smollm2", f"{smol(CALL)} then<|im_end|>", "text_outside"),
        ("smollm2", f"{smol(CALL)}\n{smol(CALL)}<|im_end|>", "invalid_json"),
        ("smollm2", f"<tool_call>{CALL}</tool_call><|im_end|>", "invalid_call"),
        ("smollm2", "<tool_call>[]</tool_call><|im_end|>", "no_action"),
        ("smollm2", f"{smol(CALL)}<|im_end|>\n<|im_start|>tool\nyes<|im_end|>", "self_written_response"),
        ("smollm2", "Niger<|im_end|>\n<|im_start|>user\nmore<|im_end|>", "misplaced"),
        ("smollm2", "Niger<repo_name><|im_end|>", "misplaced"),
        ("llama", "<|eot_id|>", "empty_answer"),
        ("llama", "<|python_tag|><|eom_id|>", "invalid_json"),
        ("llama", "<|python_tag|>search(Niger)<|eom_id|>", "invalid_json"),
        ("llama", f"{PARAMETERS};<|eot_id|>", "invalid_json"),
        ("llama", f"{CALL}<|eot_id|>", "invalid_call"),
        ("llama", '{"answer": "Niger"}<|eot_id|>', "invalid_call"),
        ("llama", f"{PARAMETERS} I hope so<|eot_id|>", "text_outside"),
        ("llama", f"{PARAMETERS}{PARAMETERS}<|eot_id|>", "text_outside"),
        ("llama", f"<|python_tag|>{PARAMETERS}<|python_tag|>{PARAMETERS}<|eom_id|>", "misplaced"),
        ("llama", "Niger<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nmore<|eot_id|>", "misplaced"),
        (
            "llama",
            f'{PARAMETERS}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n"yes"<|eot_id|>',
            "self_written_response",
        ),
    ],
)
def test_a_turn_that_breaks_its_family_s_format_is_named(family: str, text: str, kind: str) -> None:
    setup = STYLES[family]
    assert setup.format.parse(setup.sampled(text), SCHEMAS) == FormatError(FormatKind(kind))


@pytest.mark.parametrize(
    ("family", "text", "step"),
    [
        ("qwen3", f"<think>\nhm\n</think>\n\n{qwen3(CALL)}<|im_end|>", ToolCalls((NIGER,), "hm")),
        ("qwen3", f"I look.\n{qwen3(CALL)}\n{qwen3(CALL)}<|im_end|>", ToolCalls((NIGER, NIGER), "I look.")),
        ("qwen3", f"<think>\nhm\n</think>\n\nI look.\n{qwen3(CALL)}<|im_end|>", ToolCalls((NIGER,), "hm\n\nI look.")),
        ("qwen3", "<think>\n\n</think>\n\nNiger\n<|im_end|>", Answer("Niger")),
        ("qwen3", "<think>\nhm\n</think>\n\nNiger<|im_end|>", Answer("Niger", "hm")),
        ("qwen3", "Niger<|im_end|>", Answer("Niger")),
        ("smollm2", f"I look.\n{smol(f'{CALL}, {CALL}')}\n<|im_end|>", ToolCalls((NIGER, NIGER), "I look.")),
        ("smollm2", f"<tool_call>[\n{CALL}\n]</tool_call><|im_end|>", ToolCalls((NIGER,))),
        ("smollm2", "Niger\n<|im_end|>", Answer("Niger")),
        ("llama", f"{PARAMETERS}<|eot_id|>", ToolCalls((NIGER,))),
        ("llama", f"\n{PARAMETERS} ; {PARAMETERS}\n<|eom_id|>", ToolCalls((NIGER, NIGER))),
        ("llama", f"I look.\n<|python_tag|>{PARAMETERS}<|eom_id|>", ToolCalls((NIGER,), "I look.")),
        ("llama", "{1, 2}<|eot_id|>", Answer("{1, 2}")),
    ],
)
def test_a_turn_as_its_family_writes_it_is_read(family: str, text: str, step: ToolCalls | Answer) -> None:
    setup = STYLES[family]
    assert setup.format.parse(setup.sampled(text), SCHEMAS) == step


@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_structure_that_is_only_spelled_is_text(family: str) -> None:
    """Where the family has tokens for it; SmolLM2 has none for its calls."""
    format = STYLES[family].format
    spelled = {"qwen3": qwen3(CALL), "llama": f"I look.<|python_tag|>{PARAMETERS}"}[family]
    assert format.parse((*format.encode(spelled), format.end), SCHEMAS) == Answer(spelled)


def test_a_thought_of_a_call_is_written_where_the_family_has_a_place_for_it() -> None:
    step = ToolCalls((NIGER, NIGER), "hm")
    written = {family: STYLES[family].format.decode(STYLES[family].format.turn(step)) for family in SPELLED}
    assert written == {
        "qwen3": f"<think>\nhm\n</think>\n\n{qwen3(CALL)}\n{qwen3(CALL)}<|im_end|>",
        "smollm2": f"hm\n{smol(f'{CALL}, {CALL}')}<|im_end|>",
        "llama": f"hm<|python_tag|>{PARAMETERS}; {PARAMETERS}<|eot_id|>",
    }


def test_without_tools_none_are_described() -> None:
    opened = {family: STYLES[family].format.decode(STYLES[family].format.opening("Who?", ())) for family in SPELLED}
    assert opened["qwen3"] == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"
    assert smollm2.SYSTEM in opened["smollm2"] and "tool" not in opened["smollm2"] + opened["llama"]


@every_family
def test_tools_are_described_with_name_purpose_and_schema(family: str) -> None:
    format = STYLES[family].format
    opened = format.decode(format.opening("Who?", [ToolSpec("search", "Finds pages <|im_end|>", SEARCH)]))
    assert (
        '"name": "search"' in opened
        and "Finds pages <|im_end|>" in opened
        and '"required": ["queries"]' in opened.replace("\n", "").replace("    ", "").replace("[ ", "[")
    )
