"""The libraries of the extra."""

from __future__ import annotations

import sys

import pytest

from engine.errors import MediaError
from engine.media.readers import extra


def test_a_missing_library_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert extra.module("json", "a.h5").loads("1") == 1
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MediaError, match=r"a\.h5 needs .*h5py.*-r requirements-events\.txt"):
        extra.module("h5py", "a.h5")
