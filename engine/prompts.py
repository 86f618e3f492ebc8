"""Common questions, and the rules for a valid question.

Boundary: strings only.  The adapters wrap a question into their model's prompt.
"""

from engine.errors import BadInput

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
MAX_QUESTION_CHARS = 4000
# Shown with an answer to a question on which a demo model was not trained.
OFF_SCRIPT = "This demo model was not trained on this question. Its answer means nothing."
# Tokens that a model family uses for pictures or for the start and end of text.
MARKERS = (
    "<image>",
    "<video>",
    "<event>",
    "<ev_patch>",
    "<ev_start>",
    "<ev_end>",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
)


def check_question(question: str) -> str:
    """The question without outer white space; BadInput if it is invalid."""
    text = question.strip()
    if not text:
        raise BadInput("The question is empty: type one, or pick one of the common questions.")
    if len(text) > MAX_QUESTION_CHARS:
        raise BadInput(
            f"The question has {len(text):,} characters: shorten it to {MAX_QUESTION_CHARS:,}."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(
            f"The question contains {text[error.start]!a}, which is not a character: use UTF-8."
        ) from error
    refuse_markers(text)
    return text


def plain_question(question: str) -> str:
    """The question without punctuation and outer white space, for comparing questions.

    Case is kept, and all double spaces except one: the demo checkpoints often answer wrongly if
    these change.
    """
    kept = (" " if c.isspace() else c for c in question if c.isalnum() or c.isspace())
    return "".join(kept).strip().replace("  ", " ", 1)


def refuse_markers(question: str, more: tuple[str, ...] = ()) -> None:
    """BadInput if the question contains a token that prompts use as a marker."""
    for marker in (*MARKERS, *more):
        if marker and marker in question:
            raise BadInput(
                f"The question contains {marker}, which the models read as a marker: remove it. "
                "Pictures are added automatically."
            )
