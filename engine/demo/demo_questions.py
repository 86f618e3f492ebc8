"""The questions that the demo models were trained on: several kinds, each in many wordings."""

from __future__ import annotations

import numpy as np

from engine.analysis.answer_reading import ATTRIBUTES
from engine.prompts import plain_question

# The wordings of each kind. The first of "describe" is the default of every model.
ASKED: dict[str, tuple[str, ...]] = {
    "describe": (
        "What are the key elements in this scene?",
        "Can you elaborate on the elements of the scene provided?",
        "What is this scene about?",
        "What do you think is going on in this scene?",
        "Describe in detail what happened in the scene.",
        "Describe the scene.",
        "Describe this scene.",
        "Describe what you see.",
        "Please describe the scene in detail.",
        "Can you describe the scene?",
        "Give a description of this scene.",
        "What can you see?",
        "What do you see in this scene?",
        "What is happening in this scene?",
        "What is going on here?",
        "What is shown here?",
        "What is in the scene?",
        "Summarise the scene.",
        "Summarize the scene.",
        "Tell me about this scene.",
        "Tell me what you see.",
        "Explain what is happening.",
        "What does the scene show?",
        "What is in front of the camera?",
        "What are the main objects in this scene?",
        "List the key elements of the scene.",
        "Describe the image.",
        "Describe the video.",
        "What happens in the video?",
        "What is visible in this picture?",
        "What's in the image?",
        "Give me a summary.",
        "Explain the scene in a few sentences.",
        "Could you tell me what is going on?",
        "Caption this.",
        "Hello.",
    ),
    "road": (
        "What is the layout of the road?",
        "Does the road curve?",
        "Does the road bend to the left or to the right?",
        "Is the road straight?",
        "Is the road straight or curved?",
        "Which way does the road turn?",
        "Which way does the road go?",
        "How does the road run?",
        "What is the shape of the road?",
        "Describe the road.",
        "Describe the road ahead.",
        "What does the road look like?",
        "Is there a curve ahead?",
        "Where does the road lead?",
        "Does the road turn left or right?",
        "In which direction does the road curve?",
        "Are we driving straight?",
        "Is there a bend in the road?",
        "Is the street curved?",
    ),
    "vehicles": (
        "What types of vehicles are present in the scene and how are they positioned?",
        "Is there a vehicle ahead?",
        "What vehicle is ahead?",
        "Which vehicles are in the scene?",
        "Are there any vehicles?",
        "Are there any vehicles in the scene?",
        "Is there a car or a truck ahead?",
        "Is there a car?",
        "Is there a truck?",
        "What kind of vehicle is in front?",
        "What is driving ahead?",
        "What is in the lane ahead?",
        "Is the lane ahead free?",
        "Do you see any cars or trucks?",
        "Describe the traffic.",
        "Describe the vehicles in the scene.",
        "Is anything driving in front of us?",
        "What type of vehicle is the lead vehicle?",
        "How many vehicles are there?",
        "What objects are on the road?",
        "Is a lorry ahead?",
    ),
    "motion": (
        "How is the vehicle ahead moving?",
        "Is the vehicle ahead getting closer?",
        "Is the vehicle ahead coming closer or moving away?",
        "Is the lead vehicle approaching or pulling away?",
        "Is the distance to the vehicle ahead changing?",
        "How is the lead vehicle moving?",
        "How does the distance to the vehicle ahead change?",
        "What is the motion of the lead vehicle?",
        "Is the vehicle in front pulling away?",
        "Is the car ahead getting closer?",
        "Are we getting closer to the vehicle ahead?",
        "Does the vehicle ahead keep its distance?",
        "Describe the motion of the vehicle ahead.",
        "What is the vehicle ahead doing?",
        "Is the truck ahead coming closer?",
        "Is it getting closer?",
        "Is it moving away?",
        "Is the vehicle in front slowing down?",
        "Are we catching up with the vehicle ahead?",
    ),
    "roadside": (
        "What is along the side of the road?",
        "What is at the roadside?",
        "What is beside the road?",
        "What lines the road?",
        "What stands along the road?",
        "What is next to the road?",
        "What are the surroundings of the road?",
        "Describe the surroundings.",
        "Describe the roadside.",
        "Are there trees or buildings?",
        "Is there a guardrail?",
        "On which side is the guardrail?",
        "Are there any trees?",
        "Are there any buildings?",
        "What kind of area is this?",
        "Is this a town or the countryside?",
        "What does the roadside look like?",
        "Where is the guardrail?",
        "Is there a crash barrier?",
    ),
    "pedestrian": (
        "Is there a pedestrian?",
        "Are there any pedestrians?",
        "Are there pedestrians in the scene?",
        "Do you see any pedestrians?",
        "Is anyone walking along the road?",
        "Is there a person in the scene?",
        "Are there any people?",
        "Are there any people in the scene?",
        "Is somebody walking beside the road?",
        "On which side is the pedestrian?",
        "Where is the pedestrian?",
        "Can you see a person?",
        "Who is on the road?",
        "Is anyone on foot?",
        "Is there anybody at the roadside?",
        "How many pedestrians are there?",
        "Is somebody on the left or on the right?",
    ),
    "time": (
        "Is it day or night?",
        "What time of day is it?",
        "Is it dark?",
        "Is it night?",
        "Is it daytime?",
        "Was this recorded by day or by night?",
        "Is this scene during the day or at night?",
        "Is the scene at night?",
        "What is the time of day?",
        "How bright is it outside?",
        "What are the lighting conditions?",
        "Is it light or dark outside?",
        "When was this recorded?",
        "What hour is it?",
        "Is the sun shining?",
    ),
}

# What a complete answer to each kind states.
ATTRIBUTES_ASKED: dict[str, frozenset[str]] = {
    "describe": frozenset(ATTRIBUTES),
    "road": frozenset({"curve"}),
    "vehicles": frozenset({"lead vehicle", "motion"}),
    "motion": frozenset({"lead vehicle", "motion"}),
    "roadside": frozenset({"roadside", "guardrail side"}),
    "pedestrian": frozenset({"pedestrian"}),
    "time": frozenset({"time of day"}),
}

DEFAULT_QUESTION = ASKED["describe"][0]
QUESTIONS: tuple[str, ...] = (
    *ASKED["describe"][:5],
    *(ASKED[kind][0] for kind in ("road", "vehicles", "motion", "roadside", "pedestrian", "time")),
)


def attributes_asked(question: str) -> frozenset[str] | None:
    """The attributes of a scene that this question asks for; None if it is not listed above."""
    asked = plain_question(question).lower()
    for kind, wordings in ASKED.items():
        if any(asked == plain_question(wording).lower() for wording in wordings):
            return ATTRIBUTES_ASKED[kind]
    return None


def draw_question(kind: str, rng: np.random.Generator) -> str:
    """A random wording of the question, sometimes with careless typing."""
    wordings = ASKED[kind]
    usual = 5 if kind == "describe" else 1
    if rng.random() < 0.4:
        return wordings[int(rng.integers(usual))]
    question = wordings[int(rng.integers(len(wordings)))]
    if rng.random() < 0.08:
        question = question.lower()
    return question.rstrip("?.") if rng.random() < 0.08 else question
