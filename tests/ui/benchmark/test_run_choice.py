from __future__ import annotations

import pytest

from ui.benchmark import run_choice


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("local", None, 1, None), "Ray on this machine: one worker per device"),
        (("auto", 1, 1, None), "Ray on this machine: 1 worker"),
        (("h:1", 2, 8, 1.0), "Ray at h:1: 2 workers, each with 8 cores and 1 GPU"),
        (("h:1", 2, 1, 0.0), "Ray at h:1: 2 workers, each with 1 core and no GPU"),
        (
            ("h:1", None, 2, 0.5),
            "Ray at h:1: one worker per device, each with 2 cores and 0.5 GPUs",
        ),
        (("h:1", 2, 2, None), "Ray at h:1: 2 workers, each with 2 cores"),
    ],
)
def test_what_a_run_takes_in_words(
    asked: tuple[str, int | None, int, float | None], words: str
) -> None:
    assert run_choice.cluster_words(*asked) == words
