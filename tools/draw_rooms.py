"""Draws the rooms and their imports into docs/architecture.md.

Run it with `python -m tools.draw_rooms --write`; without --write the text goes to standard output.

Boundary: reads the source and the order of the rooms from tests/test_layering.py; imports nothing
that it draws.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tests.test_layering import ROOMS, ROOT, UI_ROOMS, files, imports

PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- Begin of what python -m tools.draw_rooms --write draws -->"
END = "<!-- End of the drawing -->"

Imports = Mapping[str, list[str]]  # room -> the other rooms that it imports, in their order


def room_imports(top: str, rooms: tuple[str, ...]) -> Imports:
    """What each room of the package `top` imports from the others, read from its files."""
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for path in files(top):
        room = path.relative_to(ROOT / top).parts[0].removesuffix(".py")
        named = {name.split(".")[1] for name in imports(path) if name.startswith(f"{top}.")}
        if room in found:
            found[room] |= named
    return {
        room: [other for other in rooms if other in named and other != room]
        for room, named in found.items()
    }


def reachable(start: str, edges: Imports) -> set[str]:
    return {other for room in edges[start] for other in (room, *reachable(room, edges))}


def reduced(edges: Imports) -> Imports:
    """The edges without those that a longer path implies."""
    return {
        room: [other for other in others
               if not any(other in reachable(middle, edges) for middle in others)]
        for room, others in edges.items()
    }  # fmt: skip


def diagram() -> str:
    """A Mermaid drawing of both packages; an arrow leads from a room to one that it imports."""
    lines = ["flowchart TD", '  pages["app.py, pages/"] --> ui', "  ui --> engine"]
    for top, rooms in (("ui", UI_ROOMS), ("engine", ROOMS)):
        edges = reduced(room_imports(top, rooms))
        lines.append(f"  subgraph {top}")
        lines += [f'    {top}_{room}["{room}"]' for room in rooms]
        lines += [f"    {top}_{room} --> {top}_{other}" for room in rooms for other in edges[room]]
        lines.append("  end")
    return "\n".join(lines)


def table(top: str, rooms: tuple[str, ...]) -> str:
    """Every import between rooms, also those that the drawing leaves out."""
    edges = room_imports(top, rooms)
    head = [f"| room of {top}/ | imports from |", "| --- | --- |"]
    return "\n".join(head + [f"| {room} | {', '.join(edges[room]) or 'none'} |" for room in rooms])


def drawing() -> str:
    parts = (f"```mermaid\n{diagram()}\n```", table("engine", ROOMS), table("ui", UI_ROOMS))
    return f"{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}"


def replaced(page: str) -> str:
    """The page with a new drawing in the place of the old one."""
    before, _, rest = page.partition(BEGIN)
    return before + drawing() + rest.partition(END)[2]


def main(arguments: list[str]) -> None:
    if "--write" in arguments:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(drawing())


if __name__ == "__main__":
    main(sys.argv[1:])
