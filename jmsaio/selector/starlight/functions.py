"""The functions of the Starlight dialect: REGEX, INLIST, MAKELIST, SPLIT, REPLACE, with Java's answers.

Each maker takes the evaluators of the arguments and gives the evaluator of the call. A regular expression must be a
string literal, so that it can be checked when the selector is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from jmsaio.errors import SelectorRuntimeError
from jmsaio.selector.nodes import Call, Literal, plain
from jmsaio.selector.refusal import Refused
from jmsaio.selector.starlight.machine import Machine, Match
from jmsaio.selector.starlight.regex import compile_pattern
from jmsaio.selector.starlight.values import Value, same, text_of

Look = Callable[[str], Value]
Evaluator = Callable[[Look], Value]

#: Least and most arguments of each function, by its name as it must be written.
ARGUMENTS: Final[dict[str, tuple[int, int | None]]] = {
    "REGEX": (2, 2), "INLIST": (2, 2), "MAKELIST": (1, None), "SPLIT": (2, 3), "REPLACE": (3, 3),
}  # fmt: skip
#: Functions whose result is a condition.
CONDITIONS: Final = frozenset({"REGEX", "INLIST"})


def make(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    """The evaluator of a call.

    Raises:
        Refused: no such function, a wrong number of arguments, or a regular expression that is not taken.
    """
    least, most = ARGUMENTS.get(call.function, (0, -1))
    if most == -1:
        raise Refused(f"unknown function {call.function}; the functions are {', '.join(ARGUMENTS)}", call.at)
    if len(arguments) < least or (most is not None and len(arguments) > most):
        counts = f"{least}" if least == most else f"{least} or {most}"
        raise Refused(f"{call.function} takes {counts} arguments, not {len(arguments)}", call.at)
    return _MAKERS[call.function](call, arguments)


def _machine(call: Call, place: int, *, consumes: bool) -> Machine:
    """The regular expression at one place of the arguments."""
    node = plain(call.arguments[place])
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        raise Refused(f"the regular expression of {call.function} must be a string literal", node.at)
    try:
        pattern = compile_pattern(node.value)
    except ValueError as error:
        raise Refused(f"unsupported regular expression: {error}", node.at) from None
    if consumes and pattern.nullable:
        raise Refused(f"unsupported regular expression: in {call.function} it must not match the empty string", node.at)
    return Machine(pattern)


def _text(value: Value, function: str) -> str:
    if isinstance(value, str):
        return value
    raise SelectorRuntimeError(f"{function} needs a string, not {text_of(value)[:40]}")


def _regex(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    machine, candidate = _machine(call, 0, consumes=False), arguments[1]

    def evaluate(look: Look) -> Value:
        value = candidate(look)
        return value is not None and machine.found(text_of(value))

    return evaluate


def _in_list(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    members, candidate = arguments

    def evaluate(look: Look) -> Value:
        items, value = members(look), candidate(look)
        if not isinstance(items, tuple):
            raise SelectorRuntimeError("the first argument of INLIST is not a list")
        for item in items:
            if item is None:
                raise SelectorRuntimeError("the list of INLIST contains NULL")
            if same(item, value):
                return True
        return False

    return evaluate


def _make_list(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    return lambda look: tuple(argument(look) for argument in arguments)


def _split(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    source, machine = arguments[0], _machine(call, 1, consumes=True)
    limit = arguments[2] if len(arguments) == 3 else lambda look: 0

    def evaluate(look: Look) -> Value:
        text, most = _text(source(look), "SPLIT"), limit(look)
        if type(most) is not int:
            raise SelectorRuntimeError("the limit of SPLIT must be an int")
        return _pieces(text, machine.matches(text), most)

    return evaluate


def _pieces(text: str, matches: Iterator[Match], most: int) -> tuple[str, ...]:
    """``String.split``: at most ``most`` pieces if positive; without empty ones at the end if it is zero."""
    pieces: list[str] = []
    place = 0
    for match in matches:
        if most > 0 and len(pieces) == most - 1:
            break
        pieces.append(text[place : match.start])
        place = match.end
    pieces.append(text[place:])
    while most == 0 and len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return () if pieces == [""] and text else tuple(pieces)


def _replace(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    source, replacement = arguments[0], arguments[2]
    machine = _machine(call, 1, consumes=True)
    literal = plain(call.arguments[2])
    if isinstance(literal, Literal) and isinstance(literal.value, str):
        try:
            _template(literal.value, machine.groups)
        except SelectorRuntimeError as error:
            raise Refused(error.reason, literal.at) from None

    def evaluate(look: Look) -> Value:
        text, by = _text(source(look), "REPLACE"), replacement(look)
        if by is not None:
            _text(by, "REPLACE")
        pieces: list[str] = []
        template: list[str | int] | None = None
        place = 0
        for match in machine.matches(text):
            if template is None:
                template = _template(_text(by, "REPLACE"), machine.groups)  # Java reads it at the first match
            pieces.append(text[place : match.start])
            pieces += [part if isinstance(part, str) else _group(text, match, part) for part in template]
            place = match.end
        return "".join((*pieces, text[place:]))

    return evaluate


def _group(text: str, match: Match, number: int) -> str:
    start, end = match.groups[number]
    return text[start:end] if start >= 0 else ""


def _template(text: str, groups: int) -> list[str | int]:
    """Java's replacement: texts and group numbers; ``\\`` takes the next character as it is, ``$1`` is a group.

    Raises:
        SelectorRuntimeError: a ``$`` without a group that exists, or a ``\\`` at the end.
    """
    parts: list[str | int] = []
    place = 0
    while place < len(text):
        character = text[place]
        place += 1
        if character == "\\":
            if place == len(text):
                raise SelectorRuntimeError("the replacement ends in a backslash")
            parts.append(text[place])
            place += 1
        elif character == "$":
            digits = place
            while place < len(text) and text[place] in "0123456789" and int(text[digits : place + 1]) <= groups:
                place += 1
            if place == digits:
                raise SelectorRuntimeError(f"a $ in the replacement needs the number of a group up to {groups}")
            parts.append(int(text[digits:place]))
        else:
            parts.append(character)
    return parts


_MAKERS: Final[dict[str, Callable[[Call, tuple[Evaluator, ...]], Evaluator]]] = {
    "REGEX": _regex, "INLIST": _in_list, "MAKELIST": _make_list, "SPLIT": _split, "REPLACE": _replace,
}  # fmt: skip
