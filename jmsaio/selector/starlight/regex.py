"""Regular expressions of the functions REGEX, SPLIT and REPLACE: text to a small program, or a refusal.

Accepted is what Java and Python both have and both mean alike: characters and their escapes, ``.``, classes with
ranges and ``\\d \\w \\s`` (ASCII), groups, ``|``, ``* + ? {n} {n,} {n,m}`` greedy or lazy, ``^ $ \\A``. Refused is the
rest: look-around, back references, flags, named groups, possessive forms, ``\\b``, class operations, and repetition of
what can match nothing. The details in which ``.`` and ``$`` differ follow Java. `machine` runs the program in linear
time, so that no pattern can hang a consumer.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

#: Most instructions of one pattern, counted with repetitions written out.
MOST_INSTRUCTIONS = 2_000
MOST_REPEATS = 255
#: What ends a line for ``.`` and ``$`` in Java.
LINE_ENDS: Final = frozenset("\n\r\u0085\u2028\u2029")

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a"}
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_SPACE: Final = frozenset(" \t\n\r\f\v")
_REPEAT = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")


@attrs.frozen
class Characters:
    """A set of characters: listed ones, ranges, other sets; or everything but these."""

    singles: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    others: tuple[Characters, ...] = ()
    negated: bool = False

    def has(self, character: str) -> bool:
        """Whether the set contains ``character``."""
        inside = (
            character in self.singles
            or any(low <= character <= high for low, high in self.ranges)
            or any(other.has(character) for other in self.others)
        )
        return inside is not self.negated


_SETS: Final = {
    "d": Characters(_DIGITS), "D": Characters(_DIGITS, negated=True), "w": Characters(_WORD),
    "W": Characters(_WORD, negated=True), "s": Characters(_SPACE), "S": Characters(_SPACE, negated=True),
}  # fmt: skip
_DOT: Final = Characters(LINE_ENDS, negated=True)


@attrs.frozen
class Take:
    """Consume one character of a set."""

    characters: Characters


@attrs.frozen
class Split:
    """Go on at both places (offsets from here), the first one preferred."""

    first: int
    second: int


@attrs.frozen
class Jump:
    """Go on elsewhere (offset from here)."""

    to: int


@attrs.frozen
class Save:
    """Remember the position in a slot: 2n opens group n, 2n+1 closes it."""

    slot: int


@attrs.frozen
class Assert:
    """Go on only at the start (``^``) or the end (``$``)."""

    end: bool


Instruction = Take | Split | Jump | Save | Assert
Code = tuple[Instruction, ...]


@attrs.frozen
class Part:
    """A compiled piece.

    Attributes:
        code: its instructions, position independent.
        nullable: whether it can match without consuming.
        repeatable: whether a quantifier may follow it.
    """

    code: Code
    nullable: bool
    repeatable: bool = True


@attrs.frozen
class Pattern:
    """A compiled expression: `code` ends where it matches; ``groups`` counts capturing groups."""

    code: Code
    groups: int
    nullable: bool


def compile_pattern(text: str) -> Pattern:
    """Compile ``text``.

    Raises:
        ValueError: it is not a pattern, or the two languages read it differently; the text says what and where.
    """
    reader = _Reader(text)
    part = reader.alternatives(0)
    if reader.place < len(text):
        raise reader.error("this ')' has no '('")
    return Pattern(part.code, reader.groups, part.nullable)


class _Reader:
    """Recursive descent over the pattern's text; the depth of groups is limited."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.groups = 0

    def error(self, reason: str) -> ValueError:
        return ValueError(f"{reason} (character {self.place + 1} of the pattern)")

    def peek(self) -> str:
        return self.text[self.place : self.place + 1]

    def alternatives(self, depth: int) -> Part:
        """Branches between ``|``."""
        if depth > 20:
            raise self.error("groups are nested too deeply")
        branches = [self.sequence(depth)]
        while self.peek() == "|":
            self.place += 1
            branches.append(self.sequence(depth))
        code = branches[-1].code
        for branch in reversed(branches[:-1]):
            code = self.sized((Split(1, len(branch.code) + 2), *branch.code, Jump(len(code) + 1), *code))
        return Part(code, any(branch.nullable for branch in branches))

    def sequence(self, depth: int) -> Part:
        """Pieces one after the other."""
        code: Code = ()
        nullable = True
        while self.peek() not in ("", "|", ")"):
            part = self.repeated(self.atom(depth))
            code = self.sized((*code, *part.code))
            nullable = nullable and part.nullable
        return Part(code, nullable)

    def sized(self, code: Code) -> Code:
        if len(code) > MOST_INSTRUCTIONS:
            raise self.error("the pattern is too large")
        return code

    def repeated(self, part: Part) -> Part:
        """``part`` with the quantifier that follows it."""
        bounds = self.quantifier()
        if bounds is None:
            return part
        least, most = bounds
        lazy = self.peek() == "?"
        self.place += lazy
        if self.peek() in ("*", "+", "?", "{"):
            raise self.error("a quantifier after a quantifier is not supported")
        if not part.repeatable:
            raise self.error("an anchor can't be repeated")
        if part.nullable and (most is None or most > 1):
            raise self.error("a part that can match the empty string can't be repeated")
        if len(part.code) * (least if most is None else most) > MOST_INSTRUCTIONS:
            raise self.error("the pattern is too large")
        code = part.code * least
        if most is None:
            code = (*code, *_loop(part.code, lazy))
        else:
            rest: Code = ()
            for _ in range(most - least):
                rest = (_branch(1, len(part.code) + len(rest) + 1, lazy), *part.code, *rest)
            code = (*code, *rest)
        return Part(self.sized(code), part.nullable or least == 0)

    def quantifier(self) -> tuple[int, int | None] | None:
        """Least and most repetitions, or None when no quantifier follows."""
        mark = self.peek()
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if mark in simple:
            self.place += 1
            return simple[mark]
        if mark != "{":
            return None
        found = _REPEAT.match(self.text, self.place)
        if found is None:
            raise self.error("this '{' does not begin a repetition; write \\{ for the character")
        least = int(found[1])
        most = least if found[2] is None else None if found[3] is None else int(found[3])
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise self.error(f"repetitions go up to {MOST_REPEATS}, the smaller number first")
        self.place = found.end()
        return least, most

    def atom(self, depth: int) -> Part:
        """One character, class, group or anchor."""
        character = self.peek()
        if character in ("*", "+", "?", "{"):
            raise self.error(f"nothing to repeat before {character!r}")
        self.place += 1
        match character:
            case "(":
                return self.group(depth)
            case "[":
                return Part((Take(self.character_class()),), False)
            case ".":
                return Part((Take(_DOT),), False)
            case "^" | "$":
                return Part((Assert(character == "$"),), True, repeatable=False)
            case "\\":
                if self.peek() == "A":
                    self.place += 1
                    return Part((Assert(False),), True, repeatable=False)
                escaped = self.escape()
                taken = escaped if isinstance(escaped, Characters) else Characters(frozenset(escaped))
                return Part((Take(taken),), False)
        return Part((Take(Characters(frozenset(character))),), False)

    def group(self, depth: int) -> Part:
        """After ``(``."""
        slot = None
        if self.peek() == "?":
            if self.text[self.place : self.place + 2] != "?:":
                raise self.error("of the groups that begin with (? only (?: is supported")
            self.place += 2
        else:
            self.groups += 1
            slot = self.groups
        inner = self.alternatives(depth + 1)
        if self.peek() != ")":
            raise self.error("a group has no ')'")
        self.place += 1
        if slot is None:
            return inner
        return Part(self.sized((Save(2 * slot), *inner.code, Save(2 * slot + 1))), inner.nullable)

    def escape(self) -> str | Characters:
        """After a backslash: the character or set that is meant."""
        character = self.peek()
        self.place += 1
        if character in _SETS:
            return _SETS[character]
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character in ("x", "u"):
            count = 2 if character == "x" else 4
            digits = self.text[self.place : self.place + count]
            if re.fullmatch(r"[0-9a-fA-F]{2}|[0-9a-fA-F]{4}", digits) is None or 0xD800 <= int(digits, 16) < 0xE000:
                raise self.error(f"\\{character} needs {count} hexadecimal digits of a character")
            self.place += len(digits)
            return chr(int(digits, 16))
        if character == "" or not character.isascii() or character.isalnum():
            self.place -= 1
            raise self.error(f"Java and Python do not both know \\{character} with one meaning")
        return character

    def character_class(self) -> Characters:
        """After ``[``."""
        negated = self.peek() == "^"
        self.place += negated
        singles: set[str] = set()
        ranges: list[tuple[str, str]] = []
        others: list[Characters] = []
        start = self.place
        while self.peek() != "]":
            low = self.member(first=self.place == start)
            if isinstance(low, Characters):
                others.append(low)
            elif self.peek() == "-" and self.text[self.place + 1 : self.place + 2] not in ("]", ""):
                self.place += 1
                high = self.member(first=False)
                if isinstance(high, Characters) or high < low:
                    raise self.error("this is not a range of characters")
                ranges.append((low, high))
            else:
                singles.add(low)
        if self.place == start:
            raise self.error("a class can't be empty; write \\] for the character")
        self.place += 1
        return Characters(frozenset(singles), tuple(ranges), tuple(others), negated)

    def member(self, *, first: bool) -> str | Characters:
        """One member of a class."""
        character = self.peek()
        if character == "":
            raise self.error("a class has no ']'")
        following = self.text[self.place + 1 : self.place + 2]
        if character == "[" or (character in "&~|-" and following == character):
            raise self.error("nested classes and operations on classes are not supported; write a backslash before it")
        if character == "-" and not first and following != "]":
            raise self.error("write \\- for this character")
        if character == "^" and first:
            raise self.error("write \\^ for this character")
        self.place += 1
        return self.escape() if character == "\\" else character


def _branch(near: int, far: int, lazy: bool) -> Split:
    return Split(far, near) if lazy else Split(near, far)


def _loop(code: Code, lazy: bool) -> Code:
    """Any number of repetitions of ``code``, which consumes something each time."""
    return (_branch(1, len(code) + 2, lazy), *code, Jump(-len(code) - 1))
