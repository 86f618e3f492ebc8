"""The colours of columns: one each, apart from each other for every eye."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from engine import palette

Matrix = npt.NDArray[np.float64]
# Linear RGB as people without one kind of cone see it (Machado and others, 2009).
EYES: tuple[Matrix, ...] = (
    np.eye(3),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
)
XYZ = np.array([[0.412, 0.358, 0.180], [0.213, 0.715, 0.072], [0.019, 0.119, 0.950]])
APART = 8.5  # in CIELAB, for the eye that sees the least difference


def _lab(colour: str, eye: Matrix) -> Matrix:
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(eye @ linear, 0, 1) / (0.950, 1.0, 1.089)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _apart(one: str, other: str) -> float:
    return min(float(np.linalg.norm(_lab(one, eye) - _lab(other, eye))) for eye in EYES)


def test_all_columns_can_be_told_apart_by_every_eye() -> None:
    assert _apart("#5A7F00", "#8A7A00") < APART  # a control: equal without red cones
    for one, other in combinations(palette.TONES, 2):
        assert _apart(palette.TONES[one], palette.TONES[other]) >= APART, (one, other)
