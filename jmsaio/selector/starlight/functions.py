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
from jmsaio.selector.starlight.regex import Match, Pattern, compile_pattern, encoded
from jmsaio.selector.starlight.values import Value, same, text_of

Look = Callable[[str], Value]
Evaluator = Callable[[Look], Value]

#: Least and most arguments of each function, by its name as it must be written.
ARGUMENTS: Final[dict[str, tuple[int, int | None]]] = {
    "REGEX": (2, 2), "INLIST": (2, 2), "MAKELIST": (1, None), "SPLIT": (2, 3), "REPLACE": (3, 3),
}  # fmt: skip
#: Functions whose result is a condition.
CONDITIONS: Final = frozenset({"REGEX", "INLIST"})
#: Maximum bytes that REPLACE can put into a text, all replacements together; each of their parts counts as one more.
MOST_REPLACED: Final = 1 << 23


def make(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    """Return the evaluator of a call.

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


def _pattern(call: Call, place: int, *, consumes: bool) -> Pattern:
    """Return the regular expression at one place of the arguments."""
    node = plain(call.arguments[place])
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        raise Refused(f"the regular expression of {call.function} must be a string literal", node.at)
    try:
        pattern = compile_pattern(node.value)
    except ModuleNotFoundError:
        raise Refused("a regular expression needs google-re2: pip install 'jmsaio[regex]'", node.at) from None
    except ValueError as error:
        raise Refused(f"unsupported regular expression: {error}", node.at) from None
    if consumes and pattern.nullable:
        raise Refused(f"unsupported regular expression: in {call.function} it must not match the empty string", node.at)
    return pattern


def _text(value: Value, function: str) -> str:
    if isinstance(value, str):
        return value
    raise SelectorRuntimeError(f"{function} needs a string, not {text_of(value)[:40]}")


def _regex(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    pattern, candidate = _pattern(call, 0, consumes=False), arguments[1]

    def evaluate(look: Look) -> Value:
        value = candidate(look)
        return value is not None and pattern.found(text_of(value))

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
    source, pattern = arguments[0], _pattern(call, 1, consumes=True)
    limit = arguments[2] if len(arguments) == 3 else lambda look: 0

    def evaluate(look: Look) -> Value:
        text, most = encoded(_text(source(look), "SPLIT")), limit(look)
        if type(most) is not int:
            raise SelectorRuntimeError("the limit of SPLIT must be an int")
        return _pieces(text, pattern.matches(text), most)

    return evaluate


def _pieces(text: bytes, matches: Iterator[Match], most: int) -> tuple[str, ...]:
    """``String.split``: at most ``most`` pieces if positive; without empty ones at the end if it is zero."""
    pieces: list[bytes] = []
    place = 0
    for match in matches:
        if most > 0 and len(pieces) == most - 1:
            break
        start, end = match[0]
        pieces.append(text[place:start])
        place = end
    pieces.append(text[place:])
    while most == 0 and len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return () if pieces == [b""] and text else tuple(piece.decode() for piece in pieces)


def _replace(call: Call, arguments: tuple[Evaluator, ...]) -> Evaluator:
    source, replacement = arguments[0], arguments[2]
    pattern = _pattern(call, 1, consumes=True)
    literal = plain(call.arguments[2])
    if isinstance(literal, Literal) and isinstance(literal.value, str):
        try:
            _template(literal.value, pattern)
        except SelectorRuntimeError as error:
            raise Refused(error.reason, literal.at) from None

    def evaluate(look: Look) -> Value:
        text, by = encoded(_text(source(look), "REPLACE")), replacement(look)
        if by is not None:
            _text(by, "REPLACE")
        pieces: list[bytes] = []
        template: list[bytes | int] | None = None
        place = size = 0
        for match in pattern.matches(text):
            if template is None:
                template = _template(_text(by, "REPLACE"), pattern)  # Java reads it at the first match
            start, end = match[0]
            filled = b"".join(part if isinstance(part, bytes) else _group(text, match, part) for part in template)
            size += len(filled) + len(template)
            if size > MOST_REPLACED:
                raise SelectorRuntimeError(f"REPLACE puts more than {MOST_REPLACED} bytes into a text")
            pieces += (text[place:start], filled)
            place = end
        return b"".join((*pieces, text[place:])).decode()

    return evaluate


def _group(text: bytes, match: Match, number: int) -> bytes:
    start, end = match[number]
    return text[start:end] if start >= 0 else b""


def _template(text: str, pattern: Pattern) -> list[bytes | int]:
    """Java's replacement: texts and group numbers; ``\\`` takes the next character as it is, ``$1`` is a group.

    Raises:
        SelectorRuntimeError: a ``$`` without a group that exists and holds what it holds in Java, or a ``\\`` at the
            end.
    """
    parts: list[bytes | int] = []
    place = 0
    while place < len(text):
        character = text[place]
        place += 1
        if character == "\\":
            if place == len(text):
                raise SelectorRuntimeError("the replacement ends in a backslash")
            parts.append(encoded(text[place]))
            place += 1
        elif character == "$":
            digits = place
            while place < len(text) and text[place] in "0123456789" and int(text[digits : place + 1]) <= pattern.groups:
                place += 1
            if place == digits:
                raise SelectorRuntimeError(f"a $ in the replacement needs the number of a group up to {pattern.groups}")
            parts.append(int(text[digits:place]))
            if parts[-1] in pattern.repeated:
                raise SelectorRuntimeError(
                    f"${parts[-1]} in the replacement is a group that repeats, which Java and RE2 fill unlike"
                )
        else:
            parts.append(encoded(character))
    return parts


_MAKERS: Final[dict[str, Callable[[Call, tuple[Evaluator, ...]], Evaluator]]] = {
    "REGEX": _regex, "INLIST": _in_list, "MAKELIST": _make_list, "SPLIT": _split, "REPLACE": _replace,
}  # fmt: skip
