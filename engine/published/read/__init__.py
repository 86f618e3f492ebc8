"""Published result files in one common form, whatever script wrote them.  `read(find(paths))` and
`read_bytes(name, data)` give ResultFiles: recorded and corrected records, the claimed models and
the evidence for them, and the stated figures beside those of the rows."""

from engine.published.read.read_files import RecordsError, find, read, read_bytes
from engine.published.read.record_types import AnswerRecord, ResultFile, milliseconds

__all__ = ["AnswerRecord", "RecordsError", "ResultFile", "find", "milliseconds", "read",
           "read_bytes"]  # fmt: skip
