"""Common questions, the rules for a valid question, and the forms of multiple-choice questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from engine.errors import BadInput
from engine.quoting import quoted

DEFAULT_QUESTION = "What are the key elements in this scene?"
COMMON_QUESTIONS = (
    DEFAULT_QUESTION,
    "Can you elaborate on the elements of the scene provided?",
    "What is this scene about?",
    "What is the layout of the road?",
    "What types of vehicles are present in the scene and how are they positioned?",
    "What do you think is going on in this scene?",
    "Describe in detail what happened in the scene.",
)
MAX_QUESTION_CHARS = 4000  # of a question that somebody types
MAX_ASKED_CHARS = 8000  # of a record's, with 26 options
# Shown with an answer to a question on which a demo model was not trained.
OFF_SCRIPT = (
    "This demo model was not trained on this question or on own files. Its answer means nothing."
)
# Tokens that a model family uses for pictures or for the start and end of text.
MARKERS = (
    *("<image>", "<video>", "<event>", "<ev_patch>", "<ev_start>", "<ev_end>"),
    *("<s>", "</s>", "<unk>", "<pad>"),
)


@dataclass(frozen=True)
class LetteredForm:
    """How a question and its options become one text; `first` has {question}, `option` has
    {letter} and {text}."""

    first: str
    option: str
    last: str


WORDS = "words"  # the form in which the question is asked without its options
LETTERS = "letters"
LETTERED: Mapping[str, LetteredForm] = {
    LETTERS: LetteredForm(
        "{question}",
        "{letter}. {text}",
        "Answer with the option's letter from the given choices directly.",
    ),
    # The user's turn of EvQA's own evaluation (HYLZ-2019/EvQA, event_vl/EvQA_reader.py).
    "evqa": LetteredForm(
        "Question: {question}\nOptions:", "({letter}) {text}", "\nOnly give the best option."
    ),
}
CHOICE_FORMS = (WORDS, *LETTERED)
MAX_CHOICES = len(ascii_uppercase)


def choice_question(question: str, choices: Sequence[str], form: str = LETTERS) -> str:
    """The question as it is asked: with its lettered options, or alone in the form "words"."""
    if form not in CHOICE_FORMS:
        raise BadInput(f"choice_form is {quoted(form)}: choose one of {', '.join(CHOICE_FORMS)}.")
    if not 2 <= len(choices) <= MAX_CHOICES:
        amount = "1 option" if len(choices) == 1 else f"{len(choices):,} options"
        raise BadInput(f"The question has {amount}: give 2 to {MAX_CHOICES} of them.")
    if form == WORDS:
        return question
    parts = LETTERED[form]
    pairs = zip(ascii_uppercase, choices, strict=False)
    options = [parts.option.format(letter=letter, text=text) for letter, text in pairs]
    return "\n".join([parts.first.format(question=question), *options, parts.last])


def check_question(
    question: str, most: int = MAX_QUESTION_CHARS, what: str = "The question"
) -> str:
    """The question, or another text, without outer white space; BadInput if it is invalid."""
    text = question.strip()
    if not text:
        raise BadInput(f"{what} is empty: type one, or pick one.")
    if len(text) > most:
        raise BadInput(f"{what} has {len(text):,} characters: shorten it to {most:,}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(
            f"{what} contains {text[error.start]!a}, which is not a character: use UTF-8."
        ) from error
    refuse_markers(text, what=what)
    return text


def plain_question(question: str) -> str:
    """The question without punctuation and outer white space, for comparing questions.  Case is
    kept, and all double spaces except one: the demo checkpoints often answer wrongly if these
    change."""
    kept = (" " if c.isspace() else c for c in question if c.isalnum() or c.isspace())
    return "".join(kept).strip().replace("  ", " ", 1)


def refuse_markers(question: str, more: tuple[str, ...] = (), what: str = "The question") -> None:
    """BadInput if the text contains a token that prompts use as a marker."""
    for marker in (*MARKERS, *more):
        if marker and marker in question:
            raise BadInput(
                f"{what} contains {marker}, which the models read as a marker: remove it. "
                "Pictures are added automatically."
            )
