"""Published result files in one common form, whatever script wrote them.

`read(paths)` and `read_bytes(name, data)` give ResultFiles: recorded and corrected records, the
claimed models and the evidence for them, and the stated figures beside those of the rows.
file_summary has the JSON form, as_result_rows and own_rows convert to and from the project's own
result rows, imported_sets keeps files on disk.
"""

from engine.published.read.parsing import RecordsError
from engine.published.read.read_files import read, read_bytes, read_value, unreadable
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
