"""LIKE patterns, compiled once to a test of a string whose time is linear in the text for each ``%``.

``%`` matches any run of characters and ``_`` exactly one (a Unicode code point); the escape character makes a following
``%``, ``_`` or escape character literal and is an ordinary character anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: One element of a pattern: a literal character, or one of these two.
RUN, ONE = 0, 1


def elements(pattern: str, escape: str | None) -> list[str | int]:
    """Split a pattern into characters and wildcards; escaped wildcards are characters."""
    parts: list[str | int] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        following = pattern[place + 1 : place + 2]
        if character == escape and following and following in ("%", "_", escape):
            parts.append(following)
            place += 1
        elif character == "%":
            parts.append(RUN)
        else:
            parts.append(ONE if character == "_" else character)
        place += 1
    return parts


def matcher(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """Return a function that checks whether a whole text matches ``pattern``; ``escape`` is one character, or None."""
    pieces = _pieces(elements(pattern, escape))
    if len(pieces) == 1:
        return _exactly(pieces[0])
    if all(ONE not in piece for piece in pieces):
        simple = _ends(*map(_text, pieces)) if len(pieces) <= 3 else None
        if simple is not None:
            return simple
    # Between two runs the leftmost match of a piece is as good as any later one, so a match is never given up (an
    # atomic group) and there is no backtracking except for the last piece, which has one possible position.
    middle = "".join(f"(?>.*?{_regex(piece)})" for piece in pieces[1:-1] if piece)
    search = re.compile(rf"{_regex(pieces[0])}{middle}", re.DOTALL).match
    last = re.compile(_regex(pieces[-1]), re.DOTALL).fullmatch
    width = len(pieces[-1])

    def matches(text: str) -> bool:
        found = search(text)
        if found is None:
            return False
        start = len(text) - width
        return start >= found.end() and last(text, start) is not None

    return matches


def _pieces(parts: list[str | int]) -> list[list[str | int]]:
    pieces: list[list[str | int]] = [[]]
    for part in parts:
        if part == RUN:
            pieces.append([])
        else:
            pieces[-1].append(part)
    return pieces


def _text(piece: list[str | int]) -> str:
    return "".join(str(part) for part in piece)


def _regex(piece: list[str | int]) -> str:
    return "".join("." if isinstance(part, int) else re.escape(part) for part in piece)


def _exactly(piece: list[str | int]) -> Callable[[str], bool]:
    """Compile a pattern without a run: the text has as many characters as the pattern."""
    if ONE not in piece:
        return _text(piece).__eq__
    whole = re.compile(_regex(piece), re.DOTALL).fullmatch
    return lambda text: whole(text) is not None


def _ends(head: str, middle: str, tail: str | None = None) -> Callable[[str], bool] | None:
    """Compile one or two runs without ``_`` to methods of str alone; None if that is impossible."""
    if tail is None:
        middle, tail = "", middle
    if middle:
        return None if head or tail else (lambda text: middle in text)
    if not tail:
        return lambda text: text.startswith(head)
    if not head:
        return lambda text: text.endswith(tail)
    least = len(head) + len(tail)
    return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)
