"""Write the demo scenes that ship ready-made: `python -m tools.first_scenes`."""

import tempfile
import zipfile
from pathlib import Path

from engine.demo import demo_dataset
from engine.demo.demo_dataset import FIRST, SEEDS, SHIPPED

DAY = (1980, 1, 1, 0, 0, 0)  # the archive is the same each time


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(FIRST, "w") as archive:
        root = demo_dataset.write_dataset(Path(folder), SEEDS[:SHIPPED])
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(str(path.relative_to(root)), DAY)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
