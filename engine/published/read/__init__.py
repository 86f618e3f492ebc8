"""Published result files in one common form, whatever script wrote them.

`read(paths)` and `read_bytes(name, data)` give a ResultFile each: recorded and corrected records,
who is claimed to have answered and what shows it, the figures the file states beside those of its
rows.  `summary.as_dict` is its JSON, `rows.rows` the project's own result rows, `own.from_rows`
the way back, `sets` what is kept on disk.

Boundary: data alone.  Neither torch nor pandas; verdicts are engine.published.audit's.
"""

from engine.published.read.file_forms import read_bytes, read_value, unreadable
from engine.published.read.parsing import RecordsError
from engine.published.read.read_files import read
from engine.published.read.record_types import (
    AnswerRecord,
    Claim,
    FailedSample,
    Group,
    Identity,
    Problem,
    ResultFile,
    SampleFigure,
    milliseconds,
)

__all__ = [
    "AnswerRecord",
    "Claim",
    "FailedSample",
    "Group",
    "Identity",
    "Problem",
    "RecordsError",
    "ResultFile",
    "SampleFigure",
    "milliseconds",
    "read",
    "read_bytes",
    "read_value",
    "unreadable",
]
