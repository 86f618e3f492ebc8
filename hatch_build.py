"""What a wheel has beside the folders: files of the top, under the one name of the package.

`pip install -e .` has none of them: there the checkout is on the path as it is.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = {
    "stagescope.py": "stagescope/__init__.py",
    "app.py": "stagescope/app.py",
    "models.toml": "stagescope/models.toml",
    ".streamlit/config.toml": "stagescope/.streamlit/config.toml",
}


class TopFiles(BuildHookInterface[Any]):
    """Maps them to their places."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= FILES
