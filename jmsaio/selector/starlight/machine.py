"""Runs compiled patterns in time linear in the text: a set of states for a search, ordered threads for matches.

The answers are those of Java's ``Matcher.find``: leftmost, and of these the one that backtracking would find first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from jmsaio.errors import SelectorRuntimeError
from jmsaio.selector.starlight.regex import LINE_ENDS, Assert, Instruction, Jump, Pattern, Save, Split, Take

#: Steps that all matches in one text may take together; beyond it the evaluation is an error.
MOST_STEPS: Final = 2_000_000
#: Transitions of a search that are kept.
_KEPT: Final = 4_096

Slots = tuple[int, ...]
_Set = tuple[int, ...]


@attrs.frozen
class Match:
    """One match: `start`, `end`, and `groups` as (start, end) pairs, (-1, -1) for a group that took no part."""

    start: int
    end: int
    groups: tuple[tuple[int, int], ...]


def _near_end(text: str) -> int:
    """First position at which ``$`` holds besides the end: before the last line terminator."""
    if text.endswith("\r\n"):
        return len(text) - 2
    return len(text) - 1 if text and text[-1] in LINE_ENDS else len(text)


class Machine:
    """A pattern ready to run.

    Args:
        pattern: what `compile_pattern` gave.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.groups = pattern.groups
        self._code = pattern.code
        self._finish = len(pattern.code)
        self._steps: dict[tuple[_Set, str, bool], _Set] = {}

    def found(self, text: str) -> bool:
        """Whether the pattern matches anywhere in ``text``."""
        last, near = len(text), _near_end(text)
        states = self._closure([0], at_start=True, at_end=near == 0 or last == 0)
        for place, character in enumerate(text, 1):
            if self._finish in states:
                return True
            at_end = place in (near, last)
            key = (states, character, at_end)
            following = self._steps.get(key)
            if following is None:
                following = self._following(states, character, at_end)
                if len(self._steps) >= _KEPT:
                    self._steps.clear()
                self._steps[key] = following
            states = following
        return self._finish in states

    def _following(self, states: _Set, character: str, at_end: bool) -> _Set:
        """The states after one character; a match may also begin behind it."""
        heads = [state + 1 for state in states if self._takes(state, character)]
        return self._closure([*heads, 0], at_start=False, at_end=at_end)

    def _takes(self, state: int, character: str) -> bool:
        instruction = self._code[state] if state < self._finish else None
        return isinstance(instruction, Take) and instruction.characters.has(character)

    def _closure(self, heads: list[int], *, at_start: bool, at_end: bool) -> _Set:
        """The states that are reached without consuming: those that take a character, and the finish."""
        seen: set[int] = set()
        kept: set[int] = set()
        while heads:
            state = heads.pop()
            if state in seen:
                continue
            seen.add(state)
            if state == self._finish:
                kept.add(state)
                continue
            match self._code[state]:
                case Take():
                    kept.add(state)
                case Jump(to=to):
                    heads.append(state + to)
                case Split(first=first, second=second):
                    heads += (state + first, state + second)
                case Save():
                    heads.append(state + 1)
                case Assert(end=end):
                    if at_end if end else at_start:
                        heads.append(state + 1)
        return tuple(sorted(kept))

    def matches(self, text: str) -> Iterator[Match]:
        """All matches from left to right; the pattern must not be nullable.

        Raises:
            SelectorRuntimeError: after MOST_STEPS steps.
        """
        run = _Run(self._code, self.groups, text)
        place = 0
        while (match := run.first(place)) is not None:
            yield match
            place = match.end


class _Run:
    """The matches in one text, with one budget of steps."""

    def __init__(self, code: tuple[Instruction, ...], groups: int, text: str) -> None:
        self.code = code
        self.text = text
        self.near = _near_end(text)
        self.empty: Slots = (-1,) * (2 * groups + 2)
        self.steps = 0

    def first(self, place: int) -> Match | None:
        """The leftmost match that begins at or after ``place``."""
        finish = len(self.code)
        best: Slots | None = None
        threads: list[tuple[int, Slots]] = []
        while place <= len(self.text):
            if best is None:
                threads += self._reached(0, self._with(self.empty, 0, place), place, {state for state, _ in threads})
            elif not threads:
                break
            character = self.text[place : place + 1]
            following: list[tuple[int, Slots]] = []
            seen: set[int] = set()
            for state, slots in threads:
                if state == finish:
                    best = self._with(slots, 1, place)
                    break  # what comes later is less preferred
                instruction = self.code[state]
                if character and isinstance(instruction, Take) and instruction.characters.has(character):
                    following += self._reached(state + 1, slots, place + 1, seen)
            threads = following
            place += 1
        return None if best is None else self._match(best)

    @staticmethod
    def _with(slots: Slots, slot: int, place: int) -> Slots:
        return (*slots[:slot], place, *slots[slot + 1 :])

    @staticmethod
    def _match(slots: Slots) -> Match:
        return Match(slots[0], slots[1], tuple(zip(slots[::2], slots[1::2], strict=True)))

    def _reached(self, state: int, slots: Slots, place: int, seen: set[int]) -> list[tuple[int, Slots]]:
        """Threads that go on from ``state`` without consuming, the preferred ones first; ``seen`` grows."""
        reached: list[tuple[int, Slots]] = []
        stack = [(state, slots)]
        while stack:
            state, slots = stack.pop()
            if state in seen:
                continue
            seen.add(state)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise SelectorRuntimeError(f"a regular expression takes more than {MOST_STEPS} steps on this message")
            if state == len(self.code):
                reached.append((state, slots))
                continue
            match self.code[state]:
                case Take():
                    reached.append((state, slots))
                case Jump(to=to):
                    stack.append((state + to, slots))
                case Split(first=first, second=second):
                    stack += ((state + second, slots), (state + first, slots))
                case Save(slot=slot):
                    stack.append((state + 1, self._with(slots, slot, place)))
                case Assert(end=end):
                    if place in (self.near, len(self.text)) if end else place == 0:
                        stack.append((state + 1, slots))
        return reached
