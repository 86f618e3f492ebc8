"""A checkpoint's chat template, and the prompts that it makes for pictures and one question.

A template is a program of strangers, so it is rendered in a process of its own with little time and
memory (`python -m engine.models.templates < request.json`), once, when a model loads.  Only the
text around the question is kept, so no template runs while an answer is timed.  Windows has no such
limits, and macOS none of memory: there only the caller's time limit holds.

transformers' own function renders, so the text is that of tokenizer.apply_chat_template().
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import ModelUnavailable
from engine.models import checkpoint_files
from engine.quoting import cut, printable, shown

TEMPLATE_BYTES = 2**20
# Of the process that renders it: seconds of CPU time, bytes of memory, characters of one prompt.
CPU_S, MEMORY, CHARACTERS = 5, 2**28, 100_000
_WALL_S = 60  # on Windows the only limit, and on a very busy machine
_MARKS = ("QUESTION-ONE", "question-two?")
FILE = "chat_template.jinja"
JSON_FILES = ("chat_template.json", "processor_config.json", "tokenizer_config.json")
Content = Callable[[str], Any]  # a message's content, with this question


class Template(NamedTuple):
    text: str
    file: Path
    name: str  # of the model

    def refused(self, why: str) -> ModelUnavailable:
        plain = " ".join(printable(why).split()).rstrip(".")
        return ModelUnavailable(
            f"{self.name}: its chat template cannot be used ({cut(plain)}): correct "
            f"{shown(self.file)}, or copy this file again."
        )


def find(folder: Path, name: str) -> Template | None:
    """The folder's chat template (the processor's, else the tokenizer's), or None."""
    file = folder / FILE
    if file.exists():
        data = checkpoint_files.read_bytes(file, TEMPLATE_BYTES, name)
        return Template(data.decode("utf-8", errors="replace"), file, name)
    for file in map(folder.joinpath, JSON_FILES):
        found = checkpoint_files.read_if_there(file, name).get("chat_template")
        if isinstance(found, list):  # several, of which the one named default counts
            found = {one.get("name"): one.get("template") for one in found}
        text = found.get("default") if isinstance(found, dict) else found
        if isinstance(text, str) and text:
            return Template(text, file, name)
    return None


def parts(kind: str, count: int) -> Content:
    """So many pictures ("image") or clips ("video"), then the question."""
    return lambda question: [{"type": kind}] * count + [{"type": "text", "text": question}]


def prompts(
    tokenizer: Any, template: Template, contents: Sequence[Content], placeholder: str = ""
) -> list[str | ModelUnavailable]:
    """For each form of content the prompt with {question} once, or the error if there is none.  A
    placeholder must stand once before the question.  ModelUnavailable if it passes a limit."""
    request = {
        "template": template.text,
        "variables": tokenizer.special_tokens_map,
        "contents": [content(mark) for content in contents for mark in _MARKS],
    }
    try:
        texts = _rendered(json.dumps(request))
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        why = f"it takes more than {CPU_S} seconds or {MEMORY // 2**20} MB of memory"
        if getattr(error, "returncode", -1) > 0:  # not killed
            why = str(error.stderr).strip().rpartition("\n")[2]
        raise template.refused(why) from error
    found: list[str | ModelUnavailable] = []
    for (text, why), (other, _) in zip(texts[::2], texts[1::2], strict=True):
        before, _, after = text.partition(_MARKS[0])
        if why:
            found.append(template.refused(why))
        elif _MARKS[0] in after or other != f"{before}{_MARKS[1]}{after}":
            found.append(template.refused("it does not write the question once"))
        elif placeholder and (text.count(placeholder), before.count(placeholder)) != (1, 1):
            why = f"it does not write {placeholder} once before the question"
            found.append(template.refused(why))
        else:
            around = (part.replace("{", "{{").replace("}", "}}") for part in (before, after))
            found.append("{question}".join(around))
    return found


@lru_cache(maxsize=32)
def _rendered(request: str) -> list[tuple[str, str]]:
    """(text, why there is none) of each content; an error of subprocess if it is killed."""
    done = subprocess.run(
        [sys.executable, "-m", "engine.models.templates"],
        input=request,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_WALL_S,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    found: list[tuple[str, str]] = json.loads(done.stdout)
    return found


def rendered(template: str, variables: dict[str, Any], content: Any) -> tuple[str, str]:
    """(text, ""), or ("", why there is none)."""
    from transformers.utils.chat_template_utils import render_jinja_template

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


def _main() -> None:
    import psutil
    from transformers.utils import chat_template_utils  # noqa: F401 - before the limits

    with suppress(ImportError):  # Windows
        import resource

        cpu, memory = time.process_time(), psutil.Process().memory_info().vms
        limits = {resource.RLIMIT_CPU: int(cpu) + CPU_S, resource.RLIMIT_AS: memory + MEMORY}
        for kind, most in limits.items():
            with suppress(ValueError, OSError):  # a stricter limit holds already, or macOS
                resource.setrlimit(kind, (most, most))
    request = json.load(sys.stdin)
    template, variables = request["template"], request["variables"]
    json.dump([rendered(template, variables, one) for one in request["contents"]], sys.stdout)


if __name__ == "__main__":
    _main()
