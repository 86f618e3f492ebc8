"""What a page says, as a person would read it: its texts, captions and own HTML; Compare's runs."""

import re
from html import unescape

from markupsafe import Markup
from streamlit.testing.v1 import AppTest

from engine.jobs import queue
from engine.jobs.run_job import RunJob, RunView


def texts(at: AppTest) -> str:
    return "\n".join(element.value for element in at.text)


def captions(at: AppTest) -> str:
    return "\n".join(element.value for element in at.caption)


def markup(at: AppTest) -> str:
    return "\n".join(element.proto.body for element in at.get("html"))


def html(at: AppTest) -> str:
    return unescape(markup(at))


def told(at: AppTest) -> list[tuple[str, str]]:
    """The name and the value of each marked figure, without its range."""
    found = re.findall(r'data-figure="([^"]+)">([^<]+)<', html(at))
    return [(name, value.removesuffix(" tokens").partition(" (")[0]) for name, value in found]


def tables(at: AppTest) -> list[list[list[str]]]:
    """The tables in HTML: rows of cells, the heads first."""
    found = re.findall(r"<table.*?</table>", html(at), re.DOTALL)
    rows = [re.findall(r"<tr.*?</tr>", one, re.DOTALL) for one in found]
    cell = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
    return [
        [[Markup(text).striptags() for text in cell.findall(row)] for row in one] for one in rows
    ]


def column(at: AppTest, name: str) -> list[str]:
    """A column of the first table that has it."""
    heads, *rows = next(rows for rows in tables(at) if name in rows[0])
    return [row[heads.index(name)] for row in rows]


def badges(at: AppTest) -> str:
    return " ".join(element.value for element in at.markdown if "badge[" in element.value)


def keys(at: AppTest) -> list[str | None]:
    return [button.key for button in at.button]


def press_run(at: AppTest) -> AppTest:
    at.button(key="compare_run").click().run()
    assert not at.exception
    return at


def results(at: AppTest) -> list[RunView]:
    found = (queue.manager().get(job_id) for job_id in at.session_state["compare_jobs"])
    return [job.view() for job in found if isinstance(job, RunJob)]
