"""Tables of text for terminals: a cell is never broken, and columns without room are left out and named."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

#: Spaces between two columns.
GAP: Final = 2
#: Number of the most important columns that are shown even without room.
_LEAST: Final = 2


def width_of(console: Console) -> int | None:
    """Return the width of a console in characters; None for a file or a pipe, where lines have any length."""
    return console.width if console.is_terminal else None


def fitting(lines: Sequence[Sequence[str]], order: Sequence[int], width: int | None) -> list[int]:
    """Return the indexes of the columns to show, ascending.

    Args:
        lines: the cells of the head and of each row.
        order: indexes of the columns, the most important first.
        width: number of characters; None: without limit.
    """
    shown: list[int] = []
    used = -GAP
    for index in order:
        used += GAP + max(cell_len(line[index]) for line in lines)
        if width is not None and used > width and len(shown) >= _LEAST:
            break
        shown.append(index)
    return sorted(shown)


def table_text(
    lines: Sequence[Sequence[str]], order: Sequence[int], numbers: Collection[int], width: int | None
) -> Text:  # fmt: skip
    """Return a table, one line per row. Its last line names the columns that were left out.

    Args:
        lines: the cells of the head and of each row.
        order: indexes of the columns, the most important first.
        numbers: indexes of the columns that are aligned to the right.
        width: number of characters; None: without limit.
    """
    shown = fitting(lines, order, width)
    widths = [max(cell_len(line[index]) for line in lines) for index in shown]
    text = Text(no_wrap=True, overflow="ignore")
    for number, line in enumerate(lines):
        cells = [
            " " * (size - cell_len(line[index])) + line[index]
            if index in numbers
            else line[index] + " " * (size - cell_len(line[index]))
            for index, size in zip(shown, widths, strict=True)
        ]
        text.append((" " * GAP).join(cells).rstrip() + "\n", "" if number else "bold")
    if left_out := [lines[0][index] for index in order if index not in shown]:
        text.append(f"{not_shown(left_out)}\n", "dim")
    text.right_crop(1)
    return text


def not_shown(headers: Sequence[str]) -> str:
    """Return the sentence that names the columns that were left out."""
    return f"no room for: {', '.join(headers)}"
