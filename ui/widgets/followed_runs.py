"""Jobs that a visitor watches: started here, elsewhere, or named in a link; and Compare's runs.
Only the jobs' ids are stored, so a redrawn page or another session finds the same jobs."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import streamlit as st

from engine.analysis.compared import ComparedModel
from engine.jobs import queue, run_job
from engine.jobs.model_work import ExplainJob
from engine.jobs.queue import Job
from engine.jobs.run_job import RunJob, RunView
from engine.models.checkpoint import ModelEntry
from engine.types import RunRequest
from ui.widgets import links, uploads
from ui.widgets.text import count, queued

J = TypeVar("J", bound=Job)
GRACE_S = 0.5  # wait for the end: the page is then drawn once instead of twice
REDRAW_S = 0.1
LOOK_S = 4.0  # well below run_job.PATIENCE_S
MAX_MODELS = 6
MAX_REPEATS = 10
MAX_RUNS = MAX_MODELS * MAX_REPEATS


def stop(jobs: Sequence[Job]) -> None:
    for job in reversed(jobs):  # the queued ones first: none starts in between
        job.cancel()
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and not all(job.ended for job in jobs):
        time.sleep(0.01)


def share(progress: tuple[int, int]) -> float:
    """Of the steps that are done; 0 while their number is not known."""
    done, total = progress
    return min(1.0, done / total) if total else 0.0


def bar(job: J, every_s: float, words: Callable[[J], str]) -> None:
    """The progress of a job, to its end, and its step in words."""

    @st.fragment(run_every=every_s)
    def look() -> None:
        if job.ended:
            st.rerun()
        text = queued(job.position) if job.state == "queued" else words(job)
        st.progress(share(job.progress), text=text)

    look()


@dataclass(frozen=True)
class Followed(Generic[J]):
    """The jobs of this kind under this key, in the session and in the URL: one, or up to `most`."""

    key: str
    kind: type[J]
    most: int = 1

    def start(self, *jobs: J) -> None:
        """Queue the jobs and show as many as fit; what was shown before continues."""
        for job in jobs:
            queue.manager().submit(job)
        self.show(*jobs[: self.most])

    def show(self, *jobs: J) -> None:
        links.put(self.key, [job.id for job in jobs])

    def cancel(self) -> None:
        stop(self.jobs())

    def shown(self) -> J | None:
        """The job of the link or this session, otherwise the oldest live one of any visitor."""
        found = self.linked()
        if found is None and (live := self.live()):
            found = live[0]
            self.show(found)  # keeps showing it after its end
        return found

    def linked(self) -> J | None:
        return next(iter(self.jobs()), None)

    def jobs(self) -> list[J]:
        """The jobs of the link or this session that this server still has."""
        return self.known(self.ids())

    def known(self, ids: Iterable[str]) -> list[J]:
        found = map(queue.manager().get, ids)
        return [job for job in found if isinstance(job, self.kind) and uploads.may_see(job)]

    def live(self) -> list[J]:
        """All jobs of this kind that have not ended, of any visitor, oldest first."""
        return [job for job in self.all() if not job.ended]

    def all(self) -> list[J]:
        every = queue.manager().all()
        return [job for job in every if isinstance(job, self.kind) and uploads.may_see(job)]

    def lost(self) -> bool:
        """Whether the link names a job that this server no longer has."""
        return len(self.jobs()) < len(self.ids())

    def ids(self) -> list[str]:
        return links.ids(self.key, self.most)


RUNS = Followed("compare_jobs", RunJob, MAX_RUNS)
EXPLAINED = Followed("compare_explained", ExplainJob)


@dataclass(frozen=True)
class ModelRuns:
    """All repeats of one model's request, in the order they run; at least one."""

    views: tuple[RunView, ...]

    @cached_property
    def shown(self) -> RunView:
        """The view for the model's card: the repeat that runs or is next, otherwise the newest one
        that is done.  Until its first token, the text is that of the repeat before."""
        live = next((view for view in self.views if not view.ended), None)
        if live is None:
            shown = max(
                reversed(self.views),
                key=lambda view: (view.state == "done") + (view.result is not None),
            )
        else:
            texts = [view.text for view in self.views if view.ended or view is live]
            shown = replace(live, text=next((text for text in reversed(texts) if text), ""))
        number = [one.id for one in self.views].index(shown.id) + 1
        return replace(shown, repeat=number, repeats=len(self.views))

    def compared(self, entry: ModelEntry | None) -> ComparedModel | None:
        """The results and errors under the entry's label; None without an entry or a result."""
        results = tuple(view.result for view in self.views if view.result is not None)
        if entry is None or not results:
            return None
        without = [view for view in self.views if view.ended and view.result is None]
        errors = tuple(view.error for view in without if view.state == "failed")
        unfinished = len(without) - len(errors)
        return ComparedModel(entry.label, entry.colour, results, errors, unfinished)


def start(requests: Sequence[RunRequest], repeats: int = 1) -> None:
    """Cancel the shown runs and queue `repeats` runs per request, in turns (A B C A B C), so
    that a drift of the machine affects all alike."""
    RUNS.cancel()
    RUNS.start(
        *(
            RunJob(patience_s=run_job.PATIENCE_S, request=one, owner=uploads.owner(one.sample))
            for one in [*requests] * min(repeats, MAX_REPEATS)
        )
    )


def model_runs() -> list[ModelRuns]:
    """The shown runs, grouped by model; reading them keeps them alive."""
    return grouped([job.view() for job in RUNS.jobs()])


def grouped(views: Sequence[RunView]) -> list[ModelRuns]:
    """Runs by model, in the order of each model's first run.  A link may name any runs: those with
    another sample or question than the first run, or with other settings than the first run of
    their model, are left out."""
    by_model: dict[str, dict[str, RunView]] = {}
    for view in views:
        known = by_model.setdefault(view.model, {})
        request, first = view.request, views[0].request
        example = next(iter(known.values()), view).request
        asked = (request.sample, request.prompt) == (first.sample, first.prompt)
        if request == example and asked:
            known.setdefault(view.id, view)
    return [ModelRuns(tuple(known.values())) for known in by_model.values() if known]


def progress() -> str:
    ended = [view.ended for runs in model_runs() for view in runs.views]
    return f"Running: {sum(ended):,} of {count(len(ended), 'run')} done."


def views() -> list[RunView]:
    return [runs.shown for runs in model_runs()]


def compared(by_name: Mapping[str, ModelEntry]) -> list[ComparedModel]:
    """The shown models that have a result, in the order of their cards."""
    found = (runs.compared(by_name.get(runs.shown.model)) for runs in model_runs())
    return [model for model in found if model is not None]


def live() -> bool:
    """Whether a run is queued or running and not cancelled.  A new run may be queued behind a
    cancelled one, whose compiling or loading cannot be interrupted."""
    views = (job.view() for job in RUNS.jobs())
    return any(not view.ended and not view.stopping for view in views)


def explains(job: ExplainJob, view: RunView) -> bool:
    """Whether the job explains the answer of this card: the same request and token ids."""
    asked, result = job.request, view.result
    same = asked.run == view.request
    return same and result is not None and asked.token_ids == result.generation.token_ids


def follow(draw: Callable[[list[RunView]], object]) -> None:
    """Redraw ten times a second until all runs have ended.  Streamlit may end this loop at any call
    to draw (a click, a closed tab): the runs continue."""
    now = views()
    draw(now)
    while not all(view.ended for view in now):
        time.sleep(REDRAW_S)
        now = views()
        draw(now)


def keep_alive() -> None:
    """On a page that does not show the runs: keep them alive until they end."""
    if any(not view.ended for view in _in_session()):
        st.fragment(_in_session, run_every=LOOK_S)()


def _in_session() -> list[RunView]:
    """Reading a view keeps its run alive."""
    return [job.view() for job in RUNS.known(st.session_state.get(RUNS.key, []))]
