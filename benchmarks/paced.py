"""The app with models that take their time: `python -m benchmarks.paced run app.py`.

The demo models answer within a tenth of a second, in which nobody sees a page redraw.  Here every
token takes at least PACE_S, as with a model of 7 billion weights: the worker thread sleeps, as it
does while an accelerator computes.  Everything else is the app's own.

Boundary: changes the job's token call in this process and hands over to Streamlit.
"""

from __future__ import annotations

import time

PACE_S = 0.04


def slow_down() -> None:
    """From now on each token of a run is followed by a wait."""
    from engine.jobs.run_job import RunJob

    told = RunJob.token

    def paced(self: RunJob, token: int, ms: float) -> None:
        told(self, token, ms)
        time.sleep(PACE_S)

    RunJob.token = paced  # type: ignore[method-assign]


if __name__ == "__main__":
    from streamlit.web.cli import main

    slow_down()
    main()
