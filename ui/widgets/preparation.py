"""Background work of a fresh server: demo models, then chart libraries, then demo scenes.  They run
one after another, because each keeps the CPU busy; pages only check whether they are done."""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.errors import StageScopeError
from engine.jobs import queue

T = TypeVar("T")
APP, PAGE = "through_app", "open_page"  # in the session: app.py has run; the page that is open
HEAD_START_S = 0.3  # the browser draws the first page before imports use the CPU
SCENES_NOW = threading.Event()  # a page waits for the demo scenes: nothing else comes before them
LOOK_S = 0.2


def through_app(draw: Callable[[], None]) -> None:
    """Draws a page, through app.py if it has not run in this session: until it has called
    st.navigation, Streamlit takes "pages" for an old-style app and runs a linked page without it,
    in each of the sessions that begin meanwhile.  Reruns also after Back from another page, whose
    address lacks the choice: Streamlit would reset it."""
    run = get_script_run_ctx()
    main = Path(run.pages_manager.main_script_path).name if run else ""
    if main == "app.py" and APP not in st.session_state:
        PagesManager.uses_pages_directory = False  # st.navigation does the same
        st.rerun()
    page, before = run.page_script_hash if run else "", st.session_state.get(PAGE)
    st.session_state[PAGE] = page
    if run and run.is_history_navigation and not st.query_params and before != page:
        st.rerun()
    draw()


@st.cache_resource(show_spinner=False)
def demo_scenes(root: Path) -> Future[Path]:
    """The whole demo dataset; the first call starts making it, after the models are loaded and
    while no job runs, whose times it would lengthen, or at once when SCENES_NOW is set."""

    def make() -> Path:
        from engine.demo.demo_dataset import ensure_dataset  # the page does not wait for it

        while not (warm_up().done() or SCENES_NOW.wait(LOOK_S)):
            pass
        return ensure_dataset(root, before_each=let_jobs_go_first)

    def let_jobs_go_first() -> None:
        while not (SCENES_NOW.is_set() or queue.manager().wait_until_idle(LOOK_S)):
            pass

    return _in_background("demo-scenes", make)


@st.cache_resource(show_spinner=False)
def warm_up() -> Future[None]:
    def prepare() -> None:
        time.sleep(HEAD_START_S)
        with contextlib.suppress(StageScopeError):  # the page shows the same message
            queue.manager().warm_up()
        queue.manager().wait_until_idle()
        from engine.report import charts, drawers  # noqa: F401 - the pages find them imported

    return _in_background("warm-up", prepare)


def _in_background(name: str, work: Callable[[], T]) -> Future[T]:
    """The result of work() or its error, from a thread that does not delay the server's end."""
    doing: Future[T] = Future()

    def run() -> None:
        try:
            doing.set_result(work())
        except Exception as error:  # noqa: BLE001 - who reads the result gets any error
            doing.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return doing
