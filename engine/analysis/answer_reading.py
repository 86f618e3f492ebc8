"""Reads what answers state: attributes of a demo scene, and options of multiple-choice questions.
Attributes are looked for by key words only, so that slightly different wordings are read too.  The
rules for options are in docs/results.md (Accuracy)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase

MOTION_ASKED = "motion, asked"  # from the answer to the question about it
Claims = dict[str, str]
Score = dict[str, float]
_CURVES = re.compile(r"\b(?:curves?|bends?|turns?)\b[^.]*\bto the (left|right)\b")
_MOTIONS = (
    ("approaching", re.compile(r"\b(?:coming|getting|comes|gets) closer\b")),
    ("steady", re.compile(r"\bsteady distance\b")),
    ("pulling away", re.compile(r"\b(?:pulling|moving|pulls|moves) away\b")),
)
_HOURS = (("day", re.compile(r"\b(?:day|daytime|daylight)\b")), ("night", re.compile(r"\bnight\b")))
_PLACES = (
    ("trees", re.compile(r"\btrees\b")),
    ("buildings", re.compile(r"\bbuildings\b")),
    ("guardrail", re.compile(r"\bguardrail\b")),
    ("open field", re.compile(r"\bopen fields?\b")),
)
_SIDE = re.compile(r"\bon the (left|right)\b|\bthe (left|right) side\b")


def read_statements(text: str) -> dict[str, tuple[str, ...]]:
    """attribute -> its stated values, each once; two or more contradict each other."""
    found: dict[str, dict[str, None]] = {}
    for sentence in re.split(r"(?<=[.!?])\s+", text.strip().lower()):
        for attribute, value in _claims(sentence):
            found.setdefault(attribute, {})[value] = None
    return {attribute: tuple(values) for attribute, values in found.items()}


def read_attributes(text: str) -> dict[str, str]:
    """The claims of an answer, attribute -> value, without those that contradict each other."""
    statements = read_statements(text)
    return {name: values[0] for name, values in statements.items() if len(values) == 1}


def score(
    truths: Sequence[Mapping[str, str]], claims: Sequence[Claims], names: Iterable[str]
) -> dict[str, Score]:
    """Claims about each scene against its content, per attribute.  accuracy: right answers / n;
    claimed: the share of answers that state the attribute; n: the scenes that have it; majority:
    the accuracy of always naming the most frequent value."""
    table: dict[str, Score] = {}
    for name in names:
        attribute = "motion" if name == MOTION_ASKED else name
        applies = [row for row, truth in enumerate(truths) if attribute in truth]
        if not applies:
            continue
        wanted = [truths[row][attribute] for row in applies]
        given = [claims[row].get(name) for row in applies]
        right = sum(claim == value for claim, value in zip(given, wanted, strict=True))
        common = Counter(wanted).most_common(1)[0][1]
        table[name] = {
            "accuracy": right / len(applies),
            "majority": common / len(applies),
            "n": len(applies),
            "claimed": sum(claim is not None for claim in given) / len(applies),
        }
    return table


def _claims(sentence: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    turn = _CURVES.search(sentence)
    if "road" in sentence and turn:
        found.append(("curve", turn[1]))
    elif re.search(r"\broad\b[^.]*\bstraight\b", sentence):
        found.append(("curve", "straight"))
    if re.search(r"\bno (?:other )?vehicle|\bfree of (?:other )?vehicles", sentence):
        found.append(("lead vehicle", "none"))
    elif lead := re.search(r"\ba (car|truck)\b[^.]*\bahead\b", sentence):
        found.append(("lead vehicle", lead[1]))
    found += [("motion", value) for value, words in _MOTIONS if words.search(sentence)]
    found += [("roadside", value) for value, words in _PLACES if words.search(sentence)]
    side = _SIDE.search(sentence)
    if side and "guardrail" in sentence:
        found.append(("guardrail side", side[1] or side[2]))
    if "pedestrian" in sentence:
        none = "no pedestrian" in sentence
        if none or side:
            found.append(("pedestrian", "none" if none else (side[1] or side[2]) if side else ""))
    if "cannot be told" not in sentence and "not show" not in sentence:
        found += [("time of day", value) for value, words in _HOURS if words.search(sentence)]
    return found


ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "curve": ("left", "straight", "right"),
    "lead vehicle": ("none", "car", "truck"),
    "motion": ("approaching", "steady", "pulling away"),
    "roadside": ("trees", "buildings", "guardrail", "open field"),
    "guardrail side": ("left", "right"),
    "pedestrian": ("none", "left", "right"),
    "time of day": ("day", "night"),
}


def asked_content(truth: Mapping[str, str], task: str) -> dict[str, str]:
    """The content that a question asks for: the attribute that is its task, else everything."""
    return {name: value for name, value in truth.items() if task not in ATTRIBUTES or name == task}


def is_scene(truth: object) -> bool:
    """Whether this is the ground truth of a demo scene."""
    return isinstance(truth, dict) and bool(truth) and set(truth) <= set(ATTRIBUTES)


# Which option of a multiple-choice question an answer names.
UNREADABLE = ""
_MARKS = re.compile(r"[*_`\"“”]+")
_ALONE = re.compile(r"[(\[{]?\s*([A-Za-z])\s*[)\]}]?\s*[.:,;!]?")
# "D.C." is an abbreviation, and "A-frame" is a word.
_START = re.compile(
    r"[(\[{]?([A-Z])(?:\s*[)\]}:]|[.,;](?!\w\.)|\s*$|\s*\n|\s+[-–—]\s)", re.MULTILINE
)
_LETTER = r"[(\[{]?([A-Z])(?![\w'’])(?!\s+[A-Z]{2})[)\]}]?"
_CALLED = (
    re.compile(r"[(\[{]([A-Z])[)\]}]"),
    re.compile(rf"\b(?:[Aa]nswer|ANSWER)\s+(?:is|IS|would be|should be|must be)\s*:?\s*{_LETTER}"),
    re.compile(r"\b(?i:answer|option|choice)\s*(?i:is)?\s*[:=]\s*[(\[{]?([A-Z])(?:[)\]}.,;]|\s*$|\s*\n)"),
    re.compile(rf"\b(?i:option|choice|letter)\s+{_LETTER}"),
    re.compile(r"\b([A-Z])[)\]}]?\s+is\s+(?:the\s+)?(?:correct|right|best)\b"),
)  # fmt: skip
_LIST = re.compile(
    r"(?<![\w'’])\(?([A-Z])\)?\s*(?:,|/|&|\bor\b|\band\b)\s*\(?([A-HJ-Z])\)?(?![\w'’])"
)
_NEGATED = re.compile(
    r"(?:\bnot|\bno|n['’]t|\bnever|\bwithout)\s+(?:an?\s+|the\s+)?$", re.IGNORECASE
)


def read_choice(text: str, choices: Sequence[str], form: str = "letters", task: str = "") -> str:
    """The letter of the option that the answer names, or UNREADABLE."""
    plain = _MARKS.sub("", text.rpartition("</think>")[2])
    # Single spaces: the patterns would need quadratic time for a long run of them.
    lines = (" ".join(line.split()) for line in plain.splitlines())
    answer = "\n".join(filter(None, lines)).strip(" \n'‘’")
    if form == "words":
        return _by_words(answer, choices, task)
    named = _named(answer)
    if named:
        letter, *others = named
        known = not others and letter in ascii_uppercase[: len(choices)]
        return letter if known else UNREADABLE
    return _by_text(answer, choices)


def likeliest(logprobs: Mapping[str, float] | None, count: int) -> str:
    """The letter with the highest log-probability; "" if a letter has none, or two share it."""
    known = {letter: (logprobs or {}).get(letter) for letter in ascii_uppercase[:count]}
    values = {letter: value for letter, value in known.items() if value is not None}
    if not values or len(values) < count:
        return ""
    best = [letter for letter, value in values.items() if value == max(values.values())]
    return best[0] if len(best) == 1 else ""


def _named(answer: str) -> set[str]:
    if alone := _ALONE.fullmatch(answer):
        return {alone[1].upper()}
    start = _START.match(answer)
    found = {start[1]} if start else set()
    for pattern in _CALLED:
        found |= {one[1] for one in pattern.finditer(answer) if not _negated(answer, one.start())}
    return found | {letter for one in _LIST.finditer(answer) for letter in one.groups()}


def _negated(answer: str, start: int) -> bool:
    return bool(_NEGATED.search(answer, max(0, start - 16), start))


def _by_words(answer: str, choices: Sequence[str], task: str) -> str:
    known = [_plain(choice) for choice in choices]
    if not set(known) <= set(ATTRIBUTES.get(task, ())):
        return _by_text(answer, choices)
    # "The time of day cannot be told" names no value, so the words are not searched.
    values = read_statements(answer).get(task, ()) or (_plain(answer),)
    if len(values) != 1 or known.count(_plain(values[0])) != 1:
        return UNREADABLE
    return ascii_uppercase[known.index(_plain(values[0]))]


def _by_text(answer: str, choices: Sequence[str]) -> str:
    """The only option whose text occurs; longer texts are looked for first."""
    rest, found = _plain(answer), set()
    known = [_plain(choice) for choice in choices]
    for place in sorted(range(len(known)), key=lambda place: -len(known[place])):
        if not known[place]:
            continue
        # The text as whole words; "3" is no part of "3.5", "13" or "-3".
        sign = r"(?<![-−])" if known[place][0].isdigit() else ""
        text = re.escape(known[place])
        pattern = re.compile(rf"(?<!\w)(?<!\d[.,]){sign}{text}(?!\w|[.,]\d)")
        if any(not _negated(rest, one.start()) for one in pattern.finditer(rest)):
            found |= {other for other, name in enumerate(known) if name == known[place]}
        rest = pattern.sub(lambda one: "\0" * len(one[0]), rest)
    return ascii_uppercase[found.pop()] if len(found) == 1 else UNREADABLE


def _plain(text: str) -> str:
    """Small letters, single spaces, no punctuation at the ends."""
    return " ".join(text.casefold().split()).strip(" .,;:!?\"'")
