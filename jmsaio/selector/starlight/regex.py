"""Regular expressions of the functions REGEX, SPLIT and REPLACE: RE2 runs what it and Java mean alike.

Accepted are characters and their escapes, ``.``, classes with ranges and ``\\d \\w \\s`` (ASCII), groups, ``|``,
``* + ? {n} {n,} {n,m}`` greedy or lazy, ``^ \\A``, and ``$`` where nothing follows. Refused is the rest: look-around,
back references, flags, named groups, possessive forms, ``\\b``, class operations, and repetition of what can match
nothing. Where ``.``, ``$`` and ``\\s`` differ, they follow Java. RE2 searches in linear time and limited memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from jmsaio.errors import SelectorRuntimeError

#: Maximum bytes of a pattern in RE2.
MOST_MEMORY: Final = 1 << 20
#: Work of the matches in one text together, about nanoseconds; beyond it the evaluation is an error.
MOST_WORK: Final = 2_000_000_000
_WORK_OF_A_MATCH: Final = 10_000
_MOST_DEPTH: Final = 20

_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
#: Sets as members of a class in RE2, whose own ``\\s`` lacks the vertical tab.
_SETS: Final = {"s": "[:space:]", "S": "[:^space:]", "d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W"}
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a"}
_ESCAPE: Final = r"\\(?:[tnrfa]|x[0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[^0-9A-Za-z\x80-\U0010ffff])"
_SET: Final = r"\\[dDwWsS]"
_IN_CLASS: Final = rf"(?:(?!&&)[^\\\[\]\-\ud800-\udfff]|{_ESCAPE})"
_NUMBER: Final = "(?:0|[1-9][0-9]*)"  # RE2 does not take {01} for a quantifier
_TOKEN: Final = re.compile(
    rf"(?P<character>[^\\\[()|*+?{{^$.\ud800-\udfff]|{_ESCAPE}|{_SET})"
    rf"|(?P<set>\[\^?+(?![\]^])-?(?:{_SET}|{_IN_CLASS}(?:-{_IN_CLASS})?)*-?\])"
    r"|(?P<dot>\.)|(?P<start>\^|\\A)|(?P<end>\$)|(?P<open>\((?:\?:|(?!\?)))|(?P<close>\))|(?P<bar>\|)"
    rf"|(?P<quantifier>(?:[*+?]|\{{{_NUMBER}(?:,{_NUMBER}?)?\}})\??)",
    re.DOTALL,
)
_MEMBER: Final = re.compile(rf"{_ESCAPE}|{_SET}|[^\\^\-]", re.DOTALL)
#: Why a text that begins so is no token; the first that fits.
_REASONS: Final = {
    "(?": "of the groups that begin with (? only (?: is supported",
    "{": "this '{' does not begin a repetition; write \\{ for the character",
    "[": "this class has no ']', is empty, or has [, && or in its middle - or ^ in it: write a backslash before them",
    "\\x": "\\x needs 2 hexadecimal digits",
    "\\u": "\\u needs 4 hexadecimal digits, not those of half a surrogate pair",
    "\\": "Java and RE2 do not both know this escape with one meaning",
    "": "half a surrogate pair is not a character",
}

#: Where the whole match and each group lie, in bytes; (-1, -1) is a group that took no part.
Match = tuple[tuple[int, int], ...]


@attrs.frozen
class Pattern:
    """An expression ready to run.

    Attributes:
        nullable: whether it can match the empty string.
        repeated: numbers of the groups that a quantifier repeats. What they hold after a match is not always Java's.
    """

    nullable: bool
    repeated: frozenset[int]
    _program: Any
    _before_crlf: Any  # for a text that ends in CR LF: $ matches before both, not between them
    _own: tuple[int, ...]  # RE2's numbers of the whole and of the expression's groups
    _ends: tuple[int, ...]  # RE2's numbers of the groups that stand for a $
    _endless: bool  # a search can continue after a match until the text ends

    @property
    def groups(self) -> int:
        """How many groups the expression has."""
        return len(self._own) - 1

    def found(self, text: str) -> bool:
        """Whether the pattern matches anywhere in ``text``.

        Raises:
            SelectorRuntimeError: as `matches` and `encoded`.
        """
        return next(self.matches(encoded(text)), None) is not None

    def matches(self, text: bytes) -> Iterator[Match]:
        """Return the matches in a text in UTF-8, from left to right. Of a nullable pattern only the first is meant.

        Raises:
            SelectorRuntimeError: they take more than MOST_WORK.
        """
        program = self._before_crlf if text.endswith(b"\r\n") else self._program
        size = program.programsize
        place, work = 0, len(text) * size
        while work <= MOST_WORK:
            found = program.search(text, place)
            if found is None:
                return
            # The line end that a $ took is not part of the match.
            end = next((found.start(number) for number in self._ends if found.start(number) >= 0), found.end())
            yield tuple((found.start(number), min(found.end(number), end)) for number in self._own)
            reach = len(text) if self._endless else end + size  # a program without loops takes no more bytes than this
            work += (reach - place) * size + _WORK_OF_A_MATCH
            place = end
        raise SelectorRuntimeError(f"a regular expression takes too many steps on a text of {len(text)} bytes")


def encoded(text: str) -> bytes:
    """``text`` as RE2 reads it.

    Raises:
        SelectorRuntimeError: it has half a surrogate pair, which UTF-8 can't express.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise SelectorRuntimeError("a regular expression can't search half a surrogate pair") from None


def compile_pattern(text: str) -> Pattern:
    """Compile ``text``.

    Raises:
        ValueError: it is not a pattern, or Java and RE2 read it differently; the text says what and where.
        ModuleNotFoundError: RE2 is not installed.
    """
    translation = _Translation(text)
    program = _program(translation.text.replace("$", rf"([{_LINE_ENDS}])?\z"))
    before_crlf = _program(translation.text.replace("$", r"(\r\n)?\z"))
    nullable = program.fullmatch(b"") is not None
    own, ends = tuple(translation.own), tuple(translation.ends)
    repeated = frozenset(translation.repeated)
    return Pattern(nullable, repeated, program, before_crlf, own, ends, translation.endless)


def _program(text: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem, options.log_errors = MOST_MEMORY, False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode()) from None


class _Translation:
    """A pattern of Java in RE2's syntax, except ``$``.

    Attributes:
        own: numbers of the whole and of the pattern's groups, each ``$`` counted as a group, too.
        ends: numbers that ``$`` receives.
        repeated: as in `Pattern`.
        endless: whether there is a repetition without an upper bound.
    """

    def __init__(self, source: str) -> None:
        self.own, self.ends, self.repeated, self.endless = [0], list[int](), set[int](), False
        self._parts: list[str] = []
        self._opened = [(0, False)]  # of each open group: its first part, and whether a branch before has a $
        self._ended = False  # this branch has a $
        self._last = (0, "")  # the first part of the last atom or group, and its kind
        place = 0
        while place < len(source):
            token = _TOKEN.match(source, place)
            try:
                if token is None:
                    raise ValueError(next(why for start, why in _REASONS.items() if source.startswith(start, place)))
                self._take(str(token.lastgroup), token[0])
            except ValueError as error:
                raise ValueError(f"{error} (character {place + 1} of the pattern)") from None
            place = token.end()
        self.text = "".join(self._parts)

    def _take(self, kind: str, written: str) -> None:
        first = len(self._parts)
        if self._ended and kind not in ("bar", "close"):
            raise ValueError("nothing can follow a $; write \\$ for the character")
        match kind:
            case "character":
                written = f"[{_spelled(written)}]"
            case "set":
                written = _MEMBER.sub(lambda member: _spelled(member[0]), written[1:-1]).join("[]")
            case "dot":
                written = f"[^{_LINE_ENDS}]"
            case "start":
                written = "^"
            case "end":
                self.ends.append(len(self.own) + len(self.ends))
                self._ended = True
            case "open":
                self._open(written)
            case "bar":
                self._opened[-1] = (self._opened[-1][0], self._opened[-1][1] or self._ended)
                self._ended = False
            case "close":
                first = self._close()
            case "quantifier":
                self._repeat(written)
        self._parts.append(written)
        self._last = (first, kind)

    def _open(self, written: str) -> None:
        if len(self._opened) > _MOST_DEPTH:
            raise ValueError("groups are nested too deeply")
        if written == "(":
            self.own.append(len(self.own) + len(self.ends))
        self._opened.append((len(self._parts), False))

    def _close(self) -> int:
        if len(self._opened) == 1:
            raise ValueError("this ')' has no '('")
        first, ended = self._opened.pop()
        self._ended = self._ended or ended
        return first

    def _repeat(self, quantifier: str) -> None:
        first, kind = self._last
        greedy = quantifier[:-1] if len(quantifier) > 1 and quantifier[-1] == "?" else quantifier
        if kind == "start":
            raise ValueError("an anchor can't be repeated")
        if kind == "close" and greedy != "?":
            if _program("".join(self._parts[first:])).fullmatch(b""):
                raise ValueError("a part that can match the empty string can't be repeated")
            self.repeated.update(range(self._parts[:first].count("(") + 1, len(self.own)))
        self.endless = self.endless or greedy in ("*", "+") or greedy.endswith(",}")


def _spelled(written: str) -> str:
    """Return a character, an escape or a set as a member of a class in RE2."""
    if written.isascii() and written.isalnum():
        return written
    kind, digits = written[1:2], written[2:]
    if written[0] != "\\":
        code = ord(written)
    elif kind in _SETS:
        return _SETS[kind]
    else:
        code = int(digits, 16) if digits else ord(_ESCAPES.get(kind, kind))
    return f"\\x{{{code:x}}}"
