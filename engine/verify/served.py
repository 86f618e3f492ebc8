"""Verifies a served model: is it the model it says, what does it do otherwise, are its times true?
Servers are not trusted: what can be computed here, with the checkpoint that `weights` names, is
compared.  Without weights only what shows in the answers themselves is judged."""

import base64
import math
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from PIL import Image as Pillow
from PIL import ImageDraw

from engine import media
from engine.analysis.statistics import median_interval
from engine.errors import BadInput, Cancelled, ServerFailed, StageScopeError
from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.quoting import count, quoted
from engine.served import capabilities, column, protocol
from engine.served.relay import Relay
from engine.types import DecodeConfig, Media, RunOptions, RunRequest, RunResult, Sample
from engine.verify import checks, hypotheses
from engine.verify.answer_paths import Subject, rounding, watching
from engine.verify.hypotheses import Case, Images, Tried
from engine.verify.verdict import (
    SERVED,
    CheckFinding,
    Verdict,
    VerifyRequest,
    VerifyWatcher,
    judged,
)

NO_WEIGHTS = (
    "models.toml does not name the same checkpoint on this machine (weights): nothing to compare "
    "with."
)
GREY = 127
MOST_CHARACTERS = 64  # of a token: a longer answer is not compared
TIMES = 3  # the same request, or the same measurement
CACHED = 0.2  # of the time of an answer that is computed: a repeated one so quick is not
LATE_MS = 20.0  # between the second clock's moment and the arrival here
FIRST_S, EACH_S = 0.2, 0.01  # delays that the second clock adds
STEADY = 0.3  # of the median: half of all times to the first text lie so near together
PIXELS = 0.05  # of a normalised picture: about three of 255 levels, as resizing rounds
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
PAIRS = 12  # of a fresh picture and the same one again
FEW = 3  # answers that differ: fewer may agree with a change by chance
MARKED = (16, 8, 4, 2)  # parts of the shorter side: sizes of a mark


class ServerChecks:
    """All checks of one server; each request is the sample's own unless a check says otherwise."""

    def __init__(self, entry: ModelEntry, request: VerifyRequest, watcher: VerifyWatcher) -> None:
        assert entry.server is not None
        self.entry, self.server = entry, entry.server
        self.request, self.watcher = request, watcher
        self.folder = tempfile.TemporaryDirectory(prefix="stagescope-verify-")
        self.samples = [replace(sample, choices=()) for sample in request.samples]
        self.known = capabilities.probe(self.server)
        self.info, self.backend = registry.card(entry), "server"
        self.environment = {  # by its own word
            "device": self.server.host,
            "server": self.server.url,
            "model": self.server.model,
            "software": self.known.software,
        }

    def verdicts(self) -> Iterator[Verdict]:
        """One of each check, up to the first that the server does not answer."""
        with self.folder:
            away = False
            for check in SERVED:
                try:
                    finding = getattr(self, check)()
                except ServerFailed as error:
                    finding, away = CheckFinding("failed", str(error)), True
                except BadInput as error:
                    finding = CheckFinding("skipped", str(error))
                yield Verdict.of(check, self.entry.name, "", finding)
                if finding.outcome == "skipped" or away:
                    return

    def doing(self, what: str) -> None:
        if self.watcher.cancelled():
            raise Cancelled("The verification was cancelled.")
        self.watcher.doing(self.entry.name, "", what)

    def ask(
        self,
        sample: Sample,
        change: Callable[[Images], Images] = lambda images: images,
        question: str = "",
        entry: ModelEntry | None = None,
    ) -> RunResult:
        """The server's greedy answer; `change` gets the sample's pictures [H, W, 3]."""
        asked = self.run_request(sample, question)
        loaded = media.load(sample, self.entry.kind, self.request)
        watcher = watching(self.watcher.cancelled, replace(loaded, images=change(loaded.images)))
        result = column.answer(entry or self.entry, asked, watcher, self.known)
        if result.generation.stop == "cancelled":
            raise Cancelled("The verification was cancelled.")
        size, asked_for = len(result.generation.text), self.request.max_new_tokens
        if size > MOST_CHARACTERS * asked_for:
            raise ServerFailed(
                f"{self.server.host} sent {size:,} characters, where {asked_for:,} tokens were "
                "asked for: its answer is not compared."
            )
        return result

    def run_request(self, sample: Sample, question: str = "") -> RunRequest:
        config = DecodeConfig(self.request.max_new_tokens)
        how = RunOptions(decode=config, **vars(self.request.media))
        return RunRequest(sample, self.entry.name, question or self.request.prompt, how)

    @cached_property
    def local(self) -> Adapter | None:
        """The same checkpoint on this machine, if the entry names it and it loads."""
        if not self.server.weights:
            return None
        self.doing(f"loading {self.server.weights}")
        try:
            entry = registry.entry(self.server.weights)
            if entry.kind != self.entry.kind:  # shown what the server is shown
                entry = registry.entry(f"{entry.name}@{self.entry.kind}")
            return registry.load(entry)
        except StageScopeError as error:
            raise BadInput(f"Its weights cannot be used: {error}") from error

    def subject(self, sample: Sample, adapter: Adapter, shown: Media | None = None) -> Subject:
        place = Path(self.folder.name)
        return Subject(adapter, sample, self.request, place, self.watcher.cancelled, shown)

    @cached_property
    def answers(self) -> list[RunResult]:
        """The server's, of each sample."""
        if self.server.clip:
            raise BadInput(
                "It is sent the clip as a file and chooses the frames itself, so nothing can be "
                "compared: leave clip out of the entry."
            )
        found = []
        for sample in self.samples:
            self.doing(f"asking {self.server.host} about sample {sample.id}")
            found.append(self.ask(sample))
        return found

    @cached_property
    def cases(self) -> list[Case]:
        """Each sample with both answers; empty without weights."""
        adapter = self.local
        if adapter is None:
            return []
        found = []
        for sample, result in zip(self.samples, self.answers, strict=True):
            self.doing(f"answering sample {sample.id} here")
            subject = self.subject(sample, adapter)
            text = result.generation.text
            tokens = len(adapter.tokenizer(text, add_special_tokens=False)["input_ids"])
            # "length" is its word: so short a text was cut by something else.
            ended = result.generation.stop == "eos" or tokens + 2 < subject.greedy.max_new_tokens
            plain = subject.plain(subject.greedy)
            case = Case(subject, text, ended, plain.ids, rounding(adapter, subject.prepared, plain))
            found.append(case if case.equal else replace(case, server_gap=self.told_gap(case)))
        return found

    def told_gap(self, case: Case) -> float | None:
        """By the server's own log-probabilities, how much likelier its first different token is
        than the local one, in nats; None if it tells none, or lists only one of the two."""
        if not self.known.takes.scores:
            return None
        row, sample = _compared(case), case.subject.sample
        place = row["position"] or 0
        body = column.body(self.server, self.known, self.run_request(sample), case.subject.media)
        body |= {"stream": False, "max_tokens": place + 1, "logprobs": True, "top_logprobs": 5}
        body.pop("stream_options", None)
        path = f"/v1{protocol.COMPLETIONS}"
        _, _, value = protocol.get(self.server, path, self.server.timeout_s, body)
        with suppress(LookupError, TypeError, ValueError):  # it may send anything
            listed = value["choices"][0]["logprobs"]["content"][place]["top_logprobs"]
            nats = {str(one["token"]).strip(): float(one["logprob"]) for one in reversed(listed)}
            there, here = (row[side]["pieces"][place].strip() for side in ("there", "here"))
            gap = nats[there] - nats[here]
            return gap if math.isfinite(gap) else None
        return None

    # The checks, by their names in SERVED, which has the question of each.

    def reached(self) -> CheckFinding:
        """A question that nobody asked before has more tokens, as many as the tokenizer says."""
        first, nonce = self.answers[0], f" Request {secrets.token_hex(8)}."
        asked = self.ask(self.samples[0], question=self.request.prompt + nonce)
        before, after = first.generation.prompt_tokens, asked.generation.prompt_tokens
        evidence: dict[str, Any] = {"nonce": nonce.strip(), "tokens": [before, after]}
        if before is None or after is None:
            sentence = "It answers, but does not tell the tokens of a prompt."
            return CheckFinding("unresolved", sentence, evidence=evidence)
        more, least = after - before, 1
        faults = []
        if self.local is not None:
            pictures = len(self.cases[0].subject.media.images)
            questions = (self.request.prompt + nonce, self.request.prompt)
            with_, without = (self.local.prompt_ids(one, pictures)[1] for one in questions)
            least = with_ - without
            if more != least:
                faults.append(
                    f"It counts {count(more, 'token')} for {quoted(nonce.strip())}, the checkpoint "
                    f"{least}: the request was not read, or by another tokenizer."
                )
            for case, result in zip(self.cases, self.answers, strict=True):
                told = result.new_tokens
                if case.equal and told is not None and not 0 <= len(case.ours) - told <= 1:
                    tokens, size = count(told, "new token"), len(case.ours)
                    faults.append(f"It counts {tokens}, where the answer has {size:,}.")
        elif more < least:
            faults.append("A longer question has no more tokens: the request was not read.")
        good = f"It counted {count(more, 'token')} for words that nobody had asked before."
        return judged(faults, good, "faults", evidence)

    def same(self) -> CheckFinding:
        if not self.cases:
            return CheckFinding("unresolved", NO_WEIGHTS)
        differ = [case for case in self.cases if not case.equal]
        ties = [case for case in differ if case.tied]
        equal, every = len(self.cases) - len(differ), len(self.cases)
        answers = [(len(case.ours), case.subject.prepared.context_tokens) for case in self.cases]
        evidence: dict[str, Any] = {
            "new_tokens": max(new for new, _ in answers),
            "positions": max(new + context for new, context in answers),
            "pictures": len(self.cases[0].subject.media.images),
            "natural_end": all(case.ended for case in self.cases),
            "rules": [self.request.frames],
            "rounding": max(case.rounding for case in self.cases),
            "samples": list(map(_compared, self.cases)),
        }
        shown = (equal + len(ties), every, "equal answers", evidence)
        sentence = f"{equal} of {every} answers are those of the checkpoint's own generate()"
        if not differ:
            return CheckFinding("passed", f"The model it says: {sentence}.", *shown)
        if len(ties) == len(differ):
            return CheckFinding("tie", f"{sentence}; the others differ within rounding.", *shown)
        worst = next(case for case in differ if case not in ties)
        row = evidence["samples"][self.cases.index(worst)]
        place = row["position"] or 0
        there, here = (_token(row[side]["pieces"], place) for side in ("there", "here"))
        sentence += f". First: token {place + 1} of sample {row['sample']} is {there}, here {here}"
        fit = worst.unchanged
        sentence += f", which is likelier here by up to {fit.gap:.2g} nats" if fit else ""
        if worst.server_gap is not None:
            sentence += f"; there by {worst.server_gap:.2g}, as it says"
        sentence += "."
        return CheckFinding("failed", sentence, *shown)

    def why(self) -> CheckFinding:
        if not self.cases:
            return CheckFinding("unresolved", NO_WEIGHTS)
        if all(case.equal or case.tied for case in self.cases):
            return CheckFinding("passed", "Nothing to explain.")
        sampled = len({result.generation.text for result in self.repeated}) > 1
        found = sorted(hypotheses.tried(self.cases, self.doing, sampled), key=_likely)
        every, equal = len(self.cases), sum(case.equal for case in self.cases)
        evidence = {"tried": [one._asdict() for one in found], "as_published": [equal, every]}
        if fits := [one for one in found if one.fits]:
            sentence = f": {every} of {every}; as published: {equal} of {every}."
            if any("draws" in one.words for one in fits):
                names = " or ".join(one.words for one in fits)
                sentence = f"Its answers are as likely as this checkpoint's own {names}{sentence}"
                sentence += " Another temperature may be as likely."
            else:
                names = " or ".join(f"with {one.words}" for one in fits)
                sentence = f"These are the answers of this checkpoint {names}{sentence}"
                if every - equal < FEW:
                    differ = "answer differs" if every - equal == 1 else "answers differ"
                    sentence += f" Only {every - equal} {differ}: another cause is possible."
        else:
            number = count(len(found), "hypothesis", "hypotheses")
            sentence = f"Not explained: none of {number} gives all its answers."
            near = found[0]
            plain = hypotheses.mean_fit([one.unchanged for one in self.cases if not one.equal])
            if near.share is not None and plain is not None and near.share > plain.share:
                sentence += (
                    f" Nearest is this checkpoint with {near.words}: {100 * near.share:.0f} % of "
                    f"the tokens, as published {100 * plain.share:.0f} %."
                )
        return CheckFinding("failed", sentence, evidence=evidence)

    def saw(self) -> CheckFinding:
        faults, left, evidence = [], [], dict[str, Any]()
        self.doing("showing a grey picture")
        blank = self.ask(self.samples[0], _grey)
        evidence["grey"] = blank.generation.text
        there = {result.generation.text for result in (*self.answers, blank)}
        here = {self._here(_grey), *(case.ours_text for case in self.cases)} if self.cases else ()
        if len(here) == 1:
            left.append("Other pictures do not change the local answer either.")
        elif len(there) == 1:
            faults.append("Another picture gets the same answer: it does not see the pictures.")
        if self.cases:
            faults += self._lengths(evidence)
            faults += self._marked(evidence) if self.cases[0].equal else ()
        good = "Other pictures change its answer" + (", as they do here" if self.cases else "")
        if self.answers[0].generation.prompt_tokens is not None and self.cases:
            good += "; its prompts are as long as the processor's"
        if self.known.kind == "vllm" and self.cases:
            told = ("ids",) * ("rendered" in evidence) + ("pixels",) * ("pixels_apart" in evidence)
            good += f"; the {' and '.join(told)} that it renders too" if told else ""
            if len(told) < 2:
                good += f"; {'pixels' if told else 'ids and pixels'} were not told"
        return judged(faults, f"{good}.", "faults", evidence, left)

    def _lengths(self, evidence: dict[str, Any]) -> Iterator[str]:
        told = self.answers[0].generation.prompt_tokens
        prepared = self.cases[0].subject.prepared
        made = prepared.context_tokens
        evidence["prompt_tokens"] = [told, made]
        if told is not None and told != made:
            tokens = count(told, "token")
            yield f"Its prompt has {tokens}, the checkpoint's processor makes {made:,}."
        if self.known.kind != "vllm":
            return
        # vLLM tells the ids of a prompt, and the numbers of its pictures after its processor.
        loaded = media.load(self.samples[0], self.entry.kind, self.request)
        body = column.body(self.server, self.known, self.run_request(self.samples[0]), loaded)
        place = self.server, f"/v1{protocol.COMPLETIONS}/render", self.server.timeout_s
        _, _, value = protocol.get(*place, body, protocol.MOST_BYTES)
        ids = value.get("token_ids") if isinstance(value, dict) else None
        if isinstance(ids, list) and all(type(one) is int for one in ids):
            marker = self.cases[0].subject.adapter.visual_id
            # One mark for each row of marks: servers write one, or one for each patch.
            theirs, wanted = (
                [one for at, one in enumerate(row) if one != marker or not at or row[at - 1] != one]
                for row in (ids, prepared.input_ids[0].tolist())
            )
            evidence["rendered"] = theirs
            at = checks.first_difference(wanted, theirs)
            if at is not None:
                yield f"Token {at + 1} of the prompt that it renders differs from the processor's."
        try:
            pictures = []
            for encoded in value["features"]["kwargs_data"]["image"]:
                # MessagePack in base64, of each field [dtype, shape, bytes]
                fields = msgspec.msgpack.decode(base64.b64decode(encoded))
                dtype, _, content = fields["pixel_values"]["data"]
                row = torch.frombuffer(bytearray(content.data), dtype=DTYPES[dtype])
                pictures.append(row.float())
            pixels = torch.cat(pictures)
        except (LookupError, AttributeError, TypeError, ValueError, RecursionError):
            return
        ours = prepared.pixels.float().cpu().flatten()
        apart = float((pixels - ours).abs().max()) if len(pixels) == len(ours) else math.nan
        evidence["pixels_apart"] = apart if math.isfinite(apart) else None
        if not apart <= PIXELS:
            yield (
                f"Its processor makes other pixels: {len(pixels):,} numbers, up to {apart:.2g} "
                f"({PIXELS} allowed) from the {len(ours):,} of the checkpoint's."
            )

    def _marked(self, evidence: dict[str, Any]) -> Iterator[str]:
        """The smallest mark that changes the local answer must change the server's."""
        for part in MARKED:
            self.doing(f"marking a {part}th of the picture")
            change = partial(_mark, part)
            changed = self._here(change)
            if changed == self.cases[0].ours_text:
                continue
            theirs = self.ask(self.samples[0], change).generation.text
            evidence["mark"] = {"part": part, "here": changed, "there": theirs}
            if theirs == self.cases[0].theirs:
                yield f"A mark of a {part}th of the picture changes the answer here, not there."
            return

    def _here(self, change: Callable[[Images], Images]) -> str:
        """The local answer about the first sample's pictures, changed."""
        subject = self.cases[0].subject
        shown = replace(subject.media, images=change(subject.media.images))
        altered = self.subject(subject.sample, subject.adapter, shown)
        return altered.adapter.text(altered.plain(altered.greedy).ids)

    def arrivals(self) -> CheckFinding:
        """The arrivals against the moments at which a relay on this machine sent them on."""
        if all(result.served and result.served.buffered for result in self.answers):
            return CheckFinding("unresolved", column.AT_ONCE)
        if not self.server.url.startswith("http://"):
            return CheckFinding("unresolved", "The second clock cannot stand between https.")
        for _ in range(TIMES):  # a busy machine is late now and then, a wrong clock always
            self.doing("timing the arrivals twice")
            finding = self._arrivals()
            if finding.outcome != "failed":
                break
        return finding

    def _arrivals(self) -> CheckFinding:
        with Relay(self.server, FIRST_S, EACH_S) as relay:
            through = replace(self.server, url=relay.url)
            try:
                result = self.ask(self.samples[0], entry=replace(self.entry, server=through))
            except ServerFailed as error:
                said = str(error).replace(through.host, self.server.host)
                raise ServerFailed(said) from error
        served, clocks = result.served, result.clocks
        if served is not None and not served.arrivals_ms:
            return CheckFinding("unresolved", "It sent no text, so there are no arrivals.")
        assert served is not None and clocks is not None
        began = 1000 * clocks[0].second_s
        lags = []  # from the last moment of sending before an arrival; infinite without one
        for arrival_ms in (began + ms for ms in served.arrivals_ms):
            before = [moment for moment in relay.sent_ms if moment <= arrival_ms + 1.0]
            lags.append(max(0.0, arrival_ms - max(before)) if before else math.inf)
        worst, late = max(lags), _ttft(result)
        faults = []
        if worst > LATE_MS:
            faults.append(
                f"An arrival lies {worst:,.0f} ms from the moment at which it was sent on."
                if math.isfinite(worst)
                else "An arrival is told that comes before anything was sent on."
            )
        if late < 1000 * FIRST_S:
            said = f"The first text is said to come after {late:,.0f} ms"
            faults.append(f"{said}, but was held back for {1000 * FIRST_S:,.0f} ms.")
        pieces = f"each of {count(len(lags), 'piece')} of text"
        good = f"A second clock saw {pieces} sent on at most {worst:.1f} ms earlier."
        evidence = {"delays_s": [FIRST_S, EACH_S], "lags_ms": lags, "first_ms": late}
        finding = judged(faults, good, "faults", evidence)
        return replace(finding, figure=worst, bound=LATE_MS, unit="ms") if not faults else finding

    @cached_property
    def repeated(self) -> list[RunResult]:
        """The same request about a picture that was never sent: it is in no cache at first."""
        change, found = _fresh(), []
        for number in range(TIMES):
            self.doing(f"asking the same, {number + 1} of {TIMES}")
            found.append(self.ask(self.samples[0], change))
        return found

    def repeats(self) -> CheckFinding:
        texts = [result.generation.text for result in self.repeated]
        # From the first text to the end; of a server that sends all at once, from the sending.
        spent, at_once = list[float](), list[bool]()
        for result in self.repeated:
            served = result.served
            assert served is not None
            at_once.append(served.buffered)
            whole = served.end_ms - served.sent_ms
            spent.append(whole - (0.0 if served.buffered else _ttft(result)))
        first, *again = at_once
        evidence = {"answers": texts, "answering_ms": spent}
        faults = []
        if len(set(texts)) > 1:
            several = f"{len(set(texts))} different answers to {TIMES} equal requests"
            faults.append(f"It samples at temperature 0: {several}.")
        elif max(spent[1:]) < CACHED * spent[0] or (all(again) and not first):
            faults.append(
                f"It answers from a cache: a repeated answer took {max(spent[1:]):,.1f} ms"
                f"{' and came all at once' * all(again)}, the first one {spent[0]:,.1f} ms."
            )
        good = f"{TIMES} equal requests got the same answer, each computed again."
        return judged(faults, good, "faults", evidence)

    def steady(self) -> CheckFinding:
        """How much its TTFT varies; and the vision time, where pairs show it."""
        self.doing("asking about fresh and known pictures")
        pairs = [self._pair(fresh=False) for _ in range(PAIRS)]
        firsts = [first for first, _ in pairs]
        quarter = np.percentile(firsts, (25, 75))
        middle = float(np.median(firsts))
        varies = float(quarter[1] - quarter[0]) / middle
        evidence: dict[str, Any] = {"ttft_ms": firsts, "varies": varies}
        share = f"{100 * varies:.0f} %"
        words = f"Half of {PAIRS} times to the first text lie within {share} of {middle:,.0f} ms"
        if varies > STEADY:
            sentence = f"{words}: its times vary too much for any verdict."
            return CheckFinding("unresolved", sentence, varies, STEADY, "of the median", evidence)
        sentence = f"{words}. {self._vision(pairs, evidence)}".strip()
        return CheckFinding("passed", sentence, varies, STEADY, "of the median", evidence)

    def _pair(self, fresh: bool) -> tuple[float, float]:
        """The TTFT of a new picture, and of the same one again, or of another new one."""
        change = _fresh()
        first = _ttft(self.ask(self.samples[0], change))
        return first, _ttft(self.ask(self.samples[0], _fresh() if fresh else change))

    def _vision(self, pairs: Sequence[tuple[float, float]], evidence: dict[str, Any]) -> str:
        """The vision time as the pairs tell it, if a known picture is not encoded again."""
        if self.known.takes.reuses:
            return ""  # the prompt may be in a cache too
        gain = median_interval([first - again for first, again in pairs])
        if gain.low <= 0:
            return ""
        others = [self._pair(fresh=True) for _ in pairs]  # the second one may be quicker anyway
        control = [first - second for first, second in others]
        both = zip(pairs, control, strict=True)
        vision = median_interval([first - again - more for (first, again), more in both])
        evidence["inferred"] = {"vision_ms": vars(vision), "control_ms": control}
        if vision.low <= 0:
            return ""
        time = f"{vision.median:,.0f} ms ({vision.low:,.0f} to {vision.high:,.0f}, inferred)"
        return f"A known picture is quicker: vision takes about {time}."


def _compared(case: Case) -> dict[str, Any]:
    """Both answers as the checkpoint's tokenizer splits them, and the first token that differs."""
    tokenizer, ours = case.subject.adapter.tokenizer, case.ours_text
    spaced = tokenizer(f" {ours}", add_special_tokens=False)["input_ids"]
    space = " " * (spaced == list(case.ours[: len(spaced)]))
    sides: dict[str, Any] = {}
    for side, text in (("here", ours), ("there", case.theirs)):
        ids = tokenizer(space + text, add_special_tokens=False)["input_ids"]
        sides[side] = {"ids": ids, "pieces": [tokenizer.decode([one]) for one in ids]}
    at = checks.first_difference(sides["here"]["ids"], sides["there"]["ids"])
    sample, gap = case.subject.sample.id, case.server_gap
    return {"sample": sample, "position": at, "server_gap": gap, **sides}


def _token(pieces: Sequence[str], place: int) -> str:
    """The piece at a place, as a sentence names it."""
    if place >= len(pieces):
        return "the end"
    return quoted(pieces[place].strip()) if pieces[place].strip() else "white space"


def _likely(tried: Tried) -> tuple[int, float]:
    """The order of hypotheses: what gives all answers, then what makes them likeliest; a change
    more must make them notably likelier."""
    likelihood = -math.inf if tried.likelihood is None else tried.likelihood
    return -int(tried.fits), -round(likelihood, 2) if math.isfinite(likelihood) else math.inf


def _grey(images: Images) -> Images:
    return tuple(np.full_like(one, GREY) for one in images)


def _mark(part: int, images: Images) -> Images:
    """Draws a square, dark with a bright frame, of a part of the shorter side into the middle."""
    found = []
    for one in images:
        picture = Pillow.fromarray(one).copy()
        wide, high = picture.size
        half = max(1, min(wide, high) // part // 2)
        place = (wide // 2 - half, high // 2 - half, wide // 2 + half, high // 2 + half)
        ImageDraw.Draw(picture).rectangle(place, fill=0, outline=(255, 255, 255))
        found.append(np.asarray(picture))
    return tuple(found)


def _fresh() -> Callable[[Images], Images]:
    """Changes one value of one pixel by one: no server has seen these pictures before."""
    place = [secrets.SystemRandom().random() for _ in range(3)]

    def changed(images: Images) -> Images:
        first = images[0].copy()
        at = tuple(int(share * size) for share, size in zip(place, first.shape, strict=True))
        first[at] ^= 1
        return (first, *images[1:])

    return changed


def _ttft(result: RunResult) -> float:
    """From the sending to the first text, in ms."""
    served = result.served
    assert served is not None
    return (served.arrivals_ms[0] if served.arrivals_ms else served.end_ms) - served.sent_ms
