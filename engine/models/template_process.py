"""Renders a chat template in a process of its own, which has little time and memory.

    python -m engine.models.template_process < request.json

The request holds the template, its variables and contents of a user's message; the answer is a list
of [text, why there is none].  Windows has no such limits, and macOS none of memory: there only the
caller's time limit holds.

transformers' own function renders, so the text is the one of
tokenizer.apply_chat_template().
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Any

import psutil
from transformers.utils.chat_template_utils import render_jinja_template

from engine.models.templates import CHARACTERS, CPU_S, MEMORY


def rendered(template: str, variables: dict[str, Any], content: Any) -> tuple[str, str]:
    """(text, ""), or ("", why there is none)."""
    try:
        (text,), _ = render_jinja_template(
            [[{"role": "user", "content": content}]],
            chat_template=template,
            add_generation_prompt=True,
            **variables,
        )
    except MemoryError:
        return "", f"it takes more than {MEMORY // 2**20} MB of memory"
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        return "", f"{type(error).__name__}: {error}"[:CHARACTERS]
    if len(text) > CHARACTERS:
        return "", f"it makes {len(text):,} characters; {CHARACTERS:,} are allowed"
    return text, ""


def _limit() -> None:
    with suppress(ImportError):  # Windows
        import resource

        cpu, memory = time.process_time(), psutil.Process().memory_info().vms
        limits = {resource.RLIMIT_CPU: int(cpu) + CPU_S, resource.RLIMIT_AS: memory + MEMORY}
        for kind, most in limits.items():
            with suppress(ValueError, OSError):  # a stricter limit holds already, or macOS
                resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    _limit()
    request = json.load(sys.stdin)
    template, variables = request["template"], request["variables"]
    json.dump([rendered(template, variables, one) for one in request["contents"]], sys.stdout)
