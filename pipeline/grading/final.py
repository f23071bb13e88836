"""The one rule that reads a final answer out of a model's text; curation, reward and evaluation all use it."""

import re

SHORT = 80
"""A text of one line and at most this many characters is its own answer."""

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_JOINT = re.compile(r"[\s$*,;/]*(?:\b(?:or|and)\b[\s$*,;/]*)?", re.IGNORECASE)
_DENIED = re.compile(r"(?:\bnot|n't|\bnever)\s*[\s$*(]*$", re.IGNORECASE)
_RETRACTED = re.compile(r"\b(?:actually|wait|no|not|sorry|instead|rather|correction|mistake|wrong)\b", re.IGNORECASE)
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]")
_STATED = re.compile(
    r"(?:\banswer\b(?:\s+is|\s*[:=]|\s+is\s*:)|\bfinal\s*:|####)[ \t]*:?\s*(?P<said>[^\n]*)", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[\w)}\]%$°]{3})[.!?](?=\s|$)|(?<=[\d)}\]%$°])[.!?](?=\s|$)|(?<=\s\w)[.!?]$")


def final_answer(text: str) -> str | None:
    """The answer that `text` ends on, or `None` where it commits to none.

    The last `<answer>` element; else the last balanced box; else the last "the answer is", "answer:", "final:" or "####";
    else the whole text where it is one short line. Elements or boxes joined by nothing but "or", "and" or a comma are one
    answer, so that naming two never passes for the second alone; so is an answer with the "not" before it, and a stated one
    with a retraction after it.
    """
    text = _INVISIBLE.sub("", text)
    tagged = _joined(text, _elements(text))
    if tagged is not None:
        return _bare(_unboxed(tagged) or tagged)
    boxed = _unboxed(text)
    if boxed is not None:
        return _bare(boxed)
    statements = [m["said"] for m in _STATED.finditer(text.replace("**", ""))]
    if statements:
        said, *rest = _SENTENCE_END.split(statements[-1], maxsplit=1)
        said = _bare(statements[-1] if rest and _RETRACTED.search(rest[0]) else said)
        if said:
            return said
    whole = text.strip()
    return _bare(whole) if whole and len(whole) <= SHORT and "\n" not in whole else None


Span = tuple[int, int, int, int]
"""Outer start, inner start, inner end, outer end."""


def _elements(text: str) -> list[Span]:
    found: list[Span] = []
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened = tag
        elif opened is not None:
            found.append((opened.start(), opened.end(), tag.start(), tag.end()))
            opened = None
    return found


def _boxes(text: str) -> list[Span]:
    """Outermost balanced boxes, in one pass: a box that never closes hides neither those before nor inside it."""
    stack: list[tuple[int, int] | None] = []
    found: list[Span] = []
    for token in _BOX.finditer(text):
        if token[0].startswith(("\\boxed", "\\fbox")):
            stack.append((token.start(), token.end()))
        elif token[0] == "{":
            stack.append(None)
        elif token[0] == "}" and stack:
            opened = stack.pop()
            if opened is not None:
                while found and found[-1][0] > opened[0]:
                    found.pop()
                found.append((*opened, token.start(), token.end()))
    return found


def _unboxed(text: str) -> str | None:
    """Inside the last box, and inside the boxes in it."""
    found = None
    for _ in range(4):
        inner = _joined(text, _boxes(text))
        if inner is None:
            break
        found = text = inner
    return found


def _joined(text: str, spans: list[Span]) -> str | None:
    """The last span's inside, with those before it that nothing but space or a conjunction separates, and a "not" before all."""
    if not spans:
        return None
    parts = [text[spans[-1][1] : spans[-1][2]].strip()]
    first = spans[-1]
    for before in reversed(spans[:-1]):
        between = text[before[3] : first[0]]
        if len(between) > 20 or not _JOINT.fullmatch(between):
            break
        inside = text[before[1] : before[2]].strip()
        if inside != parts[0]:
            parts[:0] = [inside, between.strip() or " "]
        first = before
    denied = _DENIED.search(text[max(0, first[0] - 20) : first[0]])
    return " ".join(["not", *parts] if denied else parts)


def _bare(answer: str) -> str:
    """Without the emphasis and math marks around it."""
    previous = None
    while answer != previous:
        previous = answer
        answer = answer.strip().rstrip(".").strip()
        for mark in ("**", "$$", "$", "`", "\\(", "\\["):
            close = {"\\(": "\\)", "\\[": "\\]"}.get(mark, mark)
            inner = answer[len(mark) : -len(close)]
            if (
                answer.startswith(mark)
                and answer.endswith(close)
                and len(answer) > 2 * len(mark)
                and close not in inner
            ):
                answer = inner
    return answer
