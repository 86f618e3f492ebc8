"""Reports of runs: Markdown, one self-contained HTML file, CSV, JSON, a trace for Perfetto.

Boundary: runs on disk in, text out; nothing is measured here, and no sentence stands in a report
that was not computed from its runs.  `findings` computes, `document` words, the rest writes.
"""

from engine.report.document import as_text
from engine.report.export import FORMATS, write
from engine.report.report_figures import Findings, figures, gather

__all__ = ["FORMATS", "Findings", "as_text", "figures", "gather", "write"]
