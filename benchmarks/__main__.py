"""All benchmarks, one after the other, each in a process of its own: `make bench`.

`python -m benchmarks [--quick] [NAME ...]`.  What a benchmark prints goes to the screen; one that
fails does not stop the others, but the exit code is then 1.  With `--quick` each measures little
and keeps nothing.
"""

import argparse
import subprocess
import sys

from benchmarks.machine import say

NAMES = ("video", "events", "event_readers", "stages", "decoding", "drafting",
         "batches", "families", "served", "app", "growth", "scaling", "loaded",
         "planted", "intervals", "attribution", "gate")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*NAMES, []])
    parser.add_argument("--quick", action="store_true", help="measure little, keep nothing")
    options = parser.parse_args()
    failed = []
    for name in options.names or NAMES:
        say(f"benchmarks.{name}")
        command = [sys.executable, "-m", f"benchmarks.{name}", *["--quick"] * options.quick]
        if subprocess.run(command).returncode:
            failed.append(name)
    if not options.quick:
        subprocess.run([sys.executable, "-m", "benchmarks.table", "--write"], check=True)
    if failed:
        say(f"These benchmarks failed: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
