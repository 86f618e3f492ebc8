"""Reports of runs: Markdown, one self-contained HTML file, CSV, JSON, a trace for Perfetto.

Boundary: runs on disk in, text out; nothing is measured here.  report_figures computes, document
makes blocks of sentences and tables, markdown, html and export write them.
"""

from engine.report.document import as_text
from engine.report.export import FORMATS, write
from engine.report.report_figures import Findings, figures, gather

__all__ = ["FORMATS", "Findings", "as_text", "figures", "gather", "write"]
