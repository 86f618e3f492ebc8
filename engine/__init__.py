"""StageScope's engine: four stages of multimodal language models, timed and compared.

Boundary: no Streamlit below this package, and no torch until a model is loaded.
"""

from engine.errors import StageScopeError
from engine.types import DecodeConfig, RunRequest, RunResult, Sample

__all__ = ["DecodeConfig", "RunRequest", "RunResult", "Sample", "StageScopeError"]
