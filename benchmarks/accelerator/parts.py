"""The parts of a measurement on an accelerator: each a command of its own, in order of importance.

Boundary: a list; runs nothing.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accelerator.prepare import NAMES, SCENES
from engine.verify.verdict import MIN_TOKENS

OUT = "{out}"  # in a command: the file that it writes its figures to
DEMO = "eventgpt-demo,video-llava-demo,llava-demo"
# Each family is verified in both 16-bit forms: as published, and in the other one.
OTHER = {"eventgpt": "float16", "video_llava": "bfloat16", "llava": "bfloat16"}
RUN_TOKENS = 32  # of each answer of a dataset run, at most: hundreds of them in minutes
PLAIN = ("together", "features", "clock", "full_memory", "one_after_another")  # of app_path
ENGINE_NEEDS = ("msgspec", "diskcache", "av")


@dataclass(frozen=True)
class Part:
    """`command` follows `python -m`.  It writes JSON to OUT, or to standard output.

    `codes`: exit codes with figures (verify ends with 1 if a check failed).  `demo`: it uses the
    models that come with the project.
    """

    name: str
    what: str
    command: tuple[str, ...]
    minutes: float
    needs: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    demo: bool = False

    @property
    def prints(self) -> bool:
        return "--json" in self.command


def parts(options: argparse.Namespace) -> list[Part]:
    """All parts, with the sizes of the options."""
    return [
        _engine("smoke", "the demo models, every check", 3, *_verify(DEMO, 1, 2), demo=True),
        *_decoding(options),
        Part("prepare", "checkpoints and scenes in files", _prepare(options), 5, ENGINE_NEEDS),
        *_verified(options, published=True),
        Part("app", "the app's own path", _app(options, *PLAIN), 6, ENGINE_NEEDS, (0, 1)),
        *_dataset_runs(options),
        Part("app-quantized", "8 and 4 bits", _app(options, "quantized"), 9, ENGINE_NEEDS, (0, 1)),
        *_verified(options, published=False),
    ]


def _engine(
    name: str, what: str, minutes: float, *command: str, needs: tuple[str, ...] = (),
    demo: bool = False,
) -> Part:  # fmt: skip
    """A command of the product itself; with exit code 1 it has figures, and something failed."""
    words = ("engine", *command, "--json")
    return Part(name, what, words, minutes, (*ENGINE_NEEDS, *needs), (0, 1), demo)


def _decoding(options: argparse.Namespace) -> Iterator[Part]:
    for family in NAMES:
        words = ("benchmarks.full_size", "--families", family, "--out", OUT, "--new-compile",
                 "--repeat", str(options.repeat), *_sizes(options))  # fmt: skip
        yield Part(f"decoding-{family}", "decoding, memory", words, 6)


def _verified(options: argparse.Namespace, published: bool) -> Iterator[Part]:
    """In the dtype that is published, or in the other one of 16 bits."""
    for family, (name, _) in NAMES.items():
        model = name if published else f"{name}@{OTHER[family]}"
        words = (*_verify(model, options.verify_samples, options.repeat), *_scenes(options))
        words += ("--max-new-tokens", str(max(options.tokens, MIN_TOKENS)))
        yield _engine(f"verify-{model}", "every check of verify", 5, *words)


def _verify(models: str, samples: int, runs: int) -> tuple[str, ...]:
    return "verify", "--models", models, "--samples", str(samples), "--runs", str(runs)


def _dataset_runs(options: argparse.Namespace) -> Iterator[Part]:
    run: tuple[str, ...] = ("bench", *_scenes(options), "--samples", str(options.samples))
    run += ("--length", f"forced:{min(options.tokens, RUN_TOKENS)}")
    everyone = ",".join(name for name, _ in NAMES.values())
    first = NAMES["eventgpt"][0]
    yield _engine("bench", "a dataset run", 6, *run, "--models", everyone)
    yield _engine("bench-batch", "in batches of 8", 4, *run, "--models", everyone, "--batch", "8")
    ray = ("--executor", "ray", "--workers", "1", "--models", first)
    yield _engine("bench-ray", "on a Ray worker", 4, *run, *ray, needs=("ray",))


def _scenes(options: argparse.Namespace) -> tuple[str, str]:
    return "--dataset", str(_work(options) / SCENES)


def _prepare(options: argparse.Namespace) -> tuple[str, ...]:
    scenes = ("--scenes", str(options.samples))
    return ("benchmarks.accelerator.prepare", str(_work(options)), *scenes, *_small(options))


def _app(options: argparse.Namespace, *sections: str) -> tuple[str, ...]:
    words = ("--repeat", str(options.repeat), "--tokens", str(options.tokens))
    place = (str(_work(options)), "--out", OUT, "--only", ",".join(sections))
    return ("benchmarks.accelerator.app_path", *place, *words)


def _sizes(options: argparse.Namespace) -> tuple[str, ...]:
    return (*_small(options), "--tokens", str(options.tokens))


def _small(options: argparse.Namespace) -> tuple[str, ...]:
    given = (("--layers", options.layers), ("--hidden", options.hidden))
    return tuple(word for flag, size in given if size for word in (flag, str(size)))


def _work(options: argparse.Namespace) -> Path:
    return Path(options.out) / "work"
