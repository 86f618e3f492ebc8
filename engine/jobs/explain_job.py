"""An explanation as a job: what chosen words of an answer rest on, with progress and Cancel.  It
keeps the figures and the map, not the pictures, so that many explanations fit into memory."""

from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from engine.attribution import explained
from engine.attribution.explained import ExplainRequest, ExplainWatcher, Explanation
from engine.errors import BadInput
from engine.jobs.queue import Job
from engine.models import registry
from engine.quoting import cut, shown
from engine.storage import explanations
from engine.storage.explanations import Cost
from engine.storage.result_rows import ResultRow


@dataclass(eq=False, kw_only=True)
class ExplainJob(Job, ExplainWatcher):
    """Explains the words of one answer; it is also the watcher of the explanation."""

    request: ExplainRequest
    kept: tuple[Path, ResultRow] | None = None  # a run and its answer: the explanation joins them
    found: Explanation | None = None
    map: bytes = b""  # a PNG, at the end
    title = "The explanation"
    progress: tuple[int, int] = (0, 0)  # encodings

    def planned(self, cost: Cost) -> None:
        self.progress = (self.progress[0], cost.encodings)
        self.tell(f"{cut(self.request.run.model)}: {cost.sentence}")

    def done(self, encodings: int, of: int) -> None:
        self.progress = (encodings, of)
        self.tell(f"{cut(self.request.run.model)}: {encodings:,} of {of:,} inputs")

    def run(self) -> None:
        from engine.attribution import explain, occlusion

        self.state = "loading"
        run = self.request.run
        entry = registry.entry(run.model)
        if reason := registry.cannot_run(entry, run.sample):
            raise BadInput(reason)
        self.tell(f"{cut(run.model)}: loading the model ...")
        adapter = registry.load(entry, run.how.decode.max_new_tokens)
        self.state = "running"
        if self.kept is not None:
            explain.refuse(adapter)
            ids = explain.answer_ids(adapter, run, self)
            explained.refuse_other(ids, self.kept[1].token_ids, run)
            self.request = replace(self.request, token_ids=ids)
        found = explain.explain(adapter, self.request, self)
        if self.kept is not None:
            folder, row = self.kept
            explained.keep(folder, found, row.repeat)
            self.tell(f"Kept in {shown(folder / explanations.EXPLANATIONS)}.")
            if problem := explanations.problem(folder):
                self.tell(problem)
        self.map = occlusion.heat_map(found)
        self.found = structs.replace(found, pictures=())
