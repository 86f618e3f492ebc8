"""Published result files in one common form, whatever script wrote them.

`read(paths)` and `read_bytes(name, data)` give ResultFiles: recorded and corrected records, the
claimed models and the evidence for them, and the stated figures beside those of the rows.
file_summary has the JSON form, own_rows converts the project's own result rows, imported_sets keeps
files on disk.
"""

from engine.published.read.read_files import RecordsError, read, read_bytes
from engine.published.read.record_types import (
    AnswerRecord,
    Claim,
    FailedSample,
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
    "Identity",
    "Problem",
    "RecordsError",
    "ResultFile",
    "SampleFigure",
    "milliseconds",
    "read",
    "read_bytes",
]
