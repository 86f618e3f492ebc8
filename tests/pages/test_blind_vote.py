"""The blind vote on Compare through AppTest: what is hidden before it, and where it is kept."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.jobs import queue
from engine.models import registry
from engine.storage import annotations
from tests.pages.conftest import Open
from tests.pages.reading import html, keys, press_run, results, texts
from ui.compare import blind_vote

pytestmark = pytest.mark.loads
SHORT: dict[str, Any] = {"tokens": "5", "cache": "Off"}
TWO = ["Tiny llava", "Tiny eventgpt"]


def told(at: AppTest) -> str:
    """All words of the page's main part, of its HTML, and the keys of its elements."""
    heads = [one.value for kind in (at.main.subheader, at.main.markdown) for one in kind]
    return "\n".join([texts(at), html(at), *heads, *map(str, keys(at))])


def tells(at: AppTest) -> bool:
    """Whether something in the main part names a shown model or gives its total."""
    words = told(at)
    names = [
        name for view in results(at) for name in (view.model, registry.entry(view.model).label)
    ]
    totals = [f"{view.result.total_ms:.0f}" for view in results(at) if view.result]
    return any(name in words for name in names) or any(f"{ms} ms" in words for ms in totals)


def test_nothing_tells_a_model_before_the_vote_and_the_run_keeps_it(app: Open) -> None:
    at = press_run(app(blind="true", **SHORT))
    by_model = {view.model: view for view in results(at)}
    assert blind_vote.ASK in html(at) and not tells(at)
    assert all(view.text.strip() in told(at) for view in by_model.values())
    ballot = at.session_state[blind_vote.BALLOTS][tuple(at.session_state["compare_jobs"])]
    best = ballot.order[1]
    assert sorted(ballot.order) == sorted(by_model)
    at.button(key="compare_vote_2").click().run()
    assert tells(at) and not at.exception
    assert f"Your blind vote: {registry.entry(best).label} answered best." in texts(at)
    at.button(key="history_save").click().run()
    (folder,) = settings.load().runs_dir.iterdir()
    kept = annotations.votes(folder)
    assert len(kept) == 2 and {vote.blind for vote in kept} == {True}
    for vote in kept:
        sides = {"first": vote.answers[0].model, "second": vote.answers[1].model}
        assert sides[vote.choice] == best


def test_all_good_is_a_vote_on_each_pair_and_one_answer_is_not_voted_on(app: Open) -> None:
    at = press_run(app(blind="true", models=TWO, **SHORT))
    at.button(key="compare_vote_3").click().run()
    assert "Your blind vote: all answers are good." in texts(at)
    at.button(key="history_save").click().run()
    (folder,) = settings.load().runs_dir.iterdir()
    assert [vote.choice for vote in annotations.votes(folder)] == ["both"]
    at = press_run(app(blind="true", **SHORT))
    first = at.session_state["compare_jobs"][0]
    queue.manager()._jobs.pop(first)  # the server keeps a limited number of results
    at.run()
    assert not at.exception and "compare_vote_1" in keys(at)
    at = press_run(app(blind="true", models=TWO[:1], **SHORT))
    assert tells(at) and "blind vote" not in told(at)
