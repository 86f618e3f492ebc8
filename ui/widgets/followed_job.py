"""One long job that a visitor watches: started here, elsewhere, or named in a link.

Only the job's id is stored, so a redrawn page or another session finds the same job.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st

from engine.jobs import queue
from engine.jobs.queue import Job
from ui.widgets import uploads

J = TypeVar("J", bound=Job)
GRACE_S = 0.5  # wait for the end: the page is then drawn once instead of twice


def stop(jobs: Sequence[Job]) -> None:
    """Cancel these jobs and wait briefly for their end."""
    for job in reversed(jobs):  # the queued ones first: none starts in between
        job.cancel()
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and not all(job.ended for job in jobs):
        time.sleep(0.01)


@dataclass(frozen=True)
class Followed(Generic[J]):
    """The job of this kind under this key, in the session and in the URL."""

    key: str
    kind: type[J]

    def start(self, job: J) -> None:
        """Queue a job and show it; the job shown before continues."""
        queue.manager().submit(job)
        self.show(job)

    def show(self, job: J) -> None:
        """Show this job from now on."""
        st.session_state[self.key] = st.query_params[self.key] = job.id

    def cancel(self) -> None:
        """Cancel the shown job and wait briefly for its end."""
        if (job := self.shown()) is not None:
            stop([job])

    def shown(self) -> J | None:
        """The job of the link or this session, otherwise the oldest live one of any visitor."""
        found = self.linked()
        if found is None and (live := self.live()):
            found = live[0]
            self.show(found)  # keeps showing it after its end
        return found

    def linked(self) -> J | None:
        """The job of the link or this session."""
        return self._job(self._id())

    def live(self) -> list[J]:
        """All jobs of this kind that have not ended, of any visitor, oldest first."""
        return [job for job in self.all() if not job.ended]

    def all(self) -> list[J]:
        every = queue.manager().all()
        return [job for job in every if isinstance(job, self.kind) and uploads.may_see(job)]

    def lost(self) -> bool:
        """Whether the link names a job that this server no longer has."""
        return bool(self._id()) and self._job(self._id()) is None

    def _job(self, job_id: str) -> J | None:
        found = queue.manager().get(job_id)
        return found if isinstance(found, self.kind) and uploads.may_see(found) else None

    def _id(self) -> str:
        if self.key not in st.session_state:
            st.session_state[self.key] = st.query_params.get(self.key, "")
        found, linked = str(st.session_state[self.key]), st.query_params.get(self.key, "")
        if found and not linked:
            st.query_params[self.key] = found  # another page has cleared the URL
        elif linked != found:
            st.session_state[self.key] = found = linked  # Back or Forward
        return found
