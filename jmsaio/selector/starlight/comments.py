"""Comments of the Starlight dialect, blanked out before the text is parsed.

The lexer can't do it: for an unclosed comment, a regular expression would search for its end again and again.
"""

from __future__ import annotations

import re

_OPENING = re.compile(r"'|--|/\*")
_STRING = re.compile(r"'(?:''|[^'])*'")
_LINE_END = re.compile(r"[\n\r]")


def blanked(text: str) -> str:
    """Replace comments in ``text`` by spaces: ``/* */``, and ``--`` up to a line end, which must exist."""
    parts: list[str] = []
    kept = place = 0
    lines_end, blocks_end = max(text.rfind("\n"), text.rfind("\r")), text.rfind("*/")
    while (opening := _OPENING.search(text, place)) is not None:
        start, mark = opening.start(), opening[0]
        if mark == "'":
            string = _STRING.match(text, start)
            if string is None:
                break  # refused by the lexer
            place = string.end()
            continue
        if start + 2 > (lines_end if mark == "--" else blocks_end):
            place = start + 2  # not a comment: two signs, or two operators
            continue
        if mark == "--":
            end = _LINE_END.search(text, start)
            place = len(text) if end is None else end.end()
        else:
            place = text.index("*/", start + 2) + 2
        parts += (text[kept:start], " " * (place - start))
        kept = place
    return "".join((*parts, text[kept:]))
