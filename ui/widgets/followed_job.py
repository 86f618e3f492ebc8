"""One long job that a visitor looks at: started here, elsewhere, or named by a link.

Boundary: session state and the URL on one side, the engine's queue on the other.  Only the job's id
is kept, so that a page that is drawn again, or another session, finds the same one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st

from engine.jobs import queue
from engine.jobs.queue import Job
from ui.widgets import uploads

J = TypeVar("J", bound=Job)
GRACE_S = 0.5


@dataclass(frozen=True)
class Followed(Generic[J]):
    """The job of this kind under this key, in the session and in the URL."""

    key: str
    kind: type[J]

    def start(self, job: J) -> None:
        """Queue a job in place of the one shown so far, which goes on."""
        queue.manager().submit(job)
        self.show(job)

    def show(self, job: J) -> None:
        """From now on this one."""
        st.session_state[self.key] = job.id
        st.query_params[self.key] = job.id

    def cancel(self) -> None:
        """Stop the job shown, and give it a moment to do so."""
        job = self.shown()
        if job is None:
            return
        job.cancel()
        end = time.monotonic() + GRACE_S
        while time.monotonic() < end and not job.ended:
            time.sleep(0.01)

    def shown(self) -> J | None:
        """The job of the link or of this session; else one that anybody has at work."""
        found = self._job(self._id())
        if found is None and (live := self.live()):
            found = live[0]
            self.show(found)  # its end stays in view
        return found

    def live(self) -> list[J]:
        """All jobs of the kind that have not ended, whoever started them, the oldest first."""
        return [job for job in self.all() if not job.ended]

    def all(self) -> list[J]:
        every = queue.manager().all()
        return [job for job in every if isinstance(job, self.kind) and uploads.may_see(job)]

    def lost(self) -> bool:
        """Whether the link names a job that this server no longer holds."""
        return bool(self._id()) and self._job(self._id()) is None

    def _job(self, job_id: str) -> J | None:
        found = queue.manager().get(job_id)
        return found if isinstance(found, self.kind) and uploads.may_see(found) else None

    def _id(self) -> str:
        if self.key not in st.session_state:
            st.session_state[self.key] = st.query_params.get(self.key, "")
        found, linked = str(st.session_state[self.key]), st.query_params.get(self.key, "")
        if found and not linked:
            st.query_params[self.key] = found  # another page has emptied the URL meanwhile
        elif linked != found:
            st.session_state[self.key] = found = linked  # Back or Forward
        return found
