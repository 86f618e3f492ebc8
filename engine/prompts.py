"""Questions worth offering, and the question text that no family may be given.

Boundary: strings only.  The adapter puts a question into its family's prompt.
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
# For an answer to a question that a model of few questions does not know.
OFF_SCRIPT = "This demo model was not trained on this question. Its answer means nothing."
# Tokens that stand for pictures or for the ends of a text in one of the families.
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
    """The question without outer white space, or BadInput."""
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
            f"The question holds {text[error.start]!a}, which is no character: type it in UTF-8."
        ) from error
    refuse_markers(text)
    return text


def plain_question(question: str) -> str:
    """The question without punctuation and outer white space, for comparing questions.

    Case stays, and so do all doubled spaces but one: the demo checkpoints often answer wrongly
    when these change.
    """
    kept = (" " if c.isspace() else c for c in question if c.isalnum() or c.isspace())
    return "".join(kept).strip().replace("  ", " ", 1)


def refuse_markers(question: str, more: tuple[str, ...] = ()) -> None:
    """BadInput if the question holds a token that the prompt itself uses."""
    for marker in (*MARKERS, *more):
        if marker and marker in question:
            raise BadInput(
                f"The question contains {marker}, which the models read as a marker of their own: "
                "remove it; the pictures are added by themselves."
            )
