"""The app with slowed models: `python -m benchmarks.paced run app.py`.

The demo models answer within a tenth of a second, too fast to measure redraws of the page.  Here
every token takes at least PACE_S, as with a 7B model: the worker thread sleeps, as it does while an
accelerator computes.  Everything else is unchanged.

Boundary: changes the job's token call in this process and hands over to Streamlit.
"""

import time

PACE_S = 0.04


def slow_down() -> None:
    """Adds a wait after each token of a run."""
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
