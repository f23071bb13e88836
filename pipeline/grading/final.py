"""The one rule that reads a final answer out of a model's text; curation, reward and evaluation all use it."""

import re

from pipeline.grading.text import visible

SHORT = 80
"""A text of one line and at most this many characters is its own answer."""

_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$\n?", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*)\]}\\])(\*{1,3}|_{1,3})(?=[^\s*_])([^\n]{1,120}?)(?<=\S)\1(?![\w*(])")
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_JOINT = re.compile(
    r"[\s$*,;/]*(?:\b(?:or|and)\b[\s$*,;/]*(?:\b(?:perhaps|maybe|possibly|else|also)\b[\s$*,;/]*)?)?", re.IGNORECASE
)
_DENIED = re.compile(r"(?:\b(?:can)?not|n't|\bnever|\\neq?|≠)(?:\s+(?:be|equal(?:\s+to)?))?\s*[\s$*(]*$", re.IGNORECASE)
_RETRACTED = re.compile(
    r"\W{0,20}(?:(?:actually|wait|hmm+|oops|sorry|correction|scratch that)\b|nope\b|no(?:\s*[-,.;:!–—]|\s+wait\b)"
    r"|(?:(?:that|this|it|which)\s+)?(?:is|was)\s+(?:wrong|incorrect|mistaken|not\s+(?:right|correct)|an?\s+(?:error|mistake)))",
    re.IGNORECASE,
)
_STATED = re.compile(
    r"(?:\banswer(?:\s+is(?=\W|n't|$)|\s*[:=])|\bfinal\s*:|####|^[# \t]*(?:final\s+)?answer[ \t]*$)\s*:?\s*"
    r"(?P<said>(?:\\\[|\$\$)\n?[^\n]*?\n?(?:\\\]|\$\$)|[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_LED = re.compile(r"^(?:the\s+)?(?:(?:final|correct)\s+)?answer(?:\s+is\b|\s*[:=])\s*:?\s*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[\w)}\]%$°\"”]{3})[.!?](?=\s|$)|(?<=[\d)}\]%$°\"”])[.!?](?=\s|$)|(?<=\s\w)[.!?]$")
_QUOTES = [pair.split() for pair in ("$$ $$", "$ $", "` `", r"\( \)", r"\[ \]", '" "', "' '", "“ ”", "‘ ’")]


def unfenced(text: str) -> str:
    """Without the lines that open and close code blocks."""
    return _FENCE.sub("", text)


def final_answer(text: str) -> str | None:
    """The answer that `text` ends on, or `None` where it commits to none.

    The last `<answer>` element; else the last balanced box; else the last "the answer is", "answer:", "final:" or "####";
    else the whole text where it is one short line. Elements or boxes joined by nothing but "or", "and" or a comma are one
    answer, so that naming two never passes for the second alone. A "not" right before an answer and a retraction right after it
    belong to it. An element that never closes is none, like a box: how to end an answer is part of what was asked for, and what
    stands in it may be cut short.
    """
    text = _EMPHASIS.sub(r"\2", unfenced(visible(text)))
    for spans in (_elements(text), _boxes(text), _statements(text)):
        answer = _committed(text, spans)
        if answer is not None:
            return _bare(_LED.sub("", _unboxed(answer)).strip()) or None
    whole = text.strip()
    return (_bare(whole) or None) if len(whole) <= SHORT and "\n" not in whole else None


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


def _statements(text: str) -> list[Span]:
    """The last statement that says something, up to the end of its sentence."""
    said = [m for m in _STATED.finditer(text) if m["said"].strip()][-1:]
    ends = [_SENTENCE_END.search(text, m.start("said"), m.end()) for m in said]
    stops = [end.start() if end else m.end() for m, end in zip(said, ends, strict=True)]
    return [(m.start(), m.start("said"), stop, stop) for m, stop in zip(said, stops, strict=True)]


def _unboxed(answer: str) -> str:
    """Inside the last box, and inside the boxes in it."""
    for _ in range(4):
        inner = _committed(answer, _boxes(answer))
        if inner is None:
            break
        answer = inner
    return answer


def _committed(text: str, spans: list[Span]) -> str | None:
    """The last span's inside, with those before it that nothing but space or a conjunction separates. Empty ones say nothing."""
    spans = [span for span in spans if text[span[1] : span[2]].strip()]
    if not spans:
        return None
    first = last = spans[-1]
    parts = [text[last[1] : last[2]].strip()]
    for before in reversed(spans[:-1]):
        between = text[before[3] : first[0]]
        if len(between) > 20 or not _JOINT.fullmatch(between):
            break
        inside = text[before[1] : before[2]].strip()
        if inside != parts[0]:
            parts[:0] = [inside, between.strip("$* \n\t") or ";"]
        first = before
    if _DENIED.search(text[max(0, first[0] - 30) : first[0]]):
        parts.insert(0, "not")
    retraction = text[last[3] : last[3] + SHORT] if _RETRACTED.match(text, last[3]) else ""
    return " ".join(parts) + retraction


def _bare(answer: str) -> str:
    """Without the math and quotation marks around it."""
    previous = None
    while answer != previous:
        previous = answer
        answer = answer.strip().rstrip(".").strip()
        for mark, close in _QUOTES:
            inner = answer[len(mark) : -len(close)]
            if answer.startswith(mark) and answer.endswith(close) and inner and close not in inner:
                answer = inner
    return answer
