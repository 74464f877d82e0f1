"""Selector text to syntax tree: lark grammars for both dialects, literals, limits, and errors with the column.

Jakarta Messaging 3.1, 3.8.1.1 Message selector syntax; ActiveMQ's lexer for the Starlight dialect.
"""

from __future__ import annotations

import functools
import math
import re
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.arguments import shown
from jmsaio.model.names import RESERVED_WORDS, is_identifier_part, is_identifier_start
from jmsaio.model.values import Float, Long
from jmsaio.selector import nodes
from jmsaio.selector.evaluation import wrap_long
from jmsaio.selector.nodes import Node, Refused, refusal

#: Maximum length of a selector in characters: enough for an IN list with thousands of entries.
MAX_LENGTH = 65_536
#: Maximum nesting of parentheses, signs, NOT and operators.
MAX_DEPTH = 64
_RESERVED_STARLIGHT = RESERVED_WORDS | {"XPATH", "XQUERY"}

_OPERAND = "a name, a number, a string, TRUE, FALSE, '(' or a sign"
_CONDITION = "a name, a number, a string, TRUE, FALSE, NOT, '(' or a sign"
#: Names of tokens in errors, in the order in which they are listed. Equal names are listed once.
_WORDS = {
    "ID": _OPERAND, "NUMBER": _OPERAND, "LPAR": "'('", "STRING": "a string in quotes", "NOT": "NOT",
    "LESSTHAN": "a comparison", "EQUAL": "a comparison", "EQUALITY": "a comparison", "ORDER": "a comparison",
    "BETWEEN": "BETWEEN", "IN": "IN", "LIKE": "LIKE", "IS": "IS", "NULL": "NULL", "ESCAPE": "ESCAPE",
    "ADDITIVE": "an arithmetic operator", "MULTIPLICATIVE": "an arithmetic operator", "COMMA": "','", "RPAR": "')'",
    "AND": "AND", "OR": "OR", "$END": "the end",
}  # fmt: skip
_COMMENT_OR_STRING = re.compile(r"'|--|/\*")
_STRING = re.compile(r"'(?:''|[^'])*'")
_LINE_END = re.compile(r"[\n\r]")


def parse(text: str, dialect: str = "jms", start: int = 0) -> Node:
    """Parse ``text`` to a syntax tree, without checking its types; ``dialect`` is ``jms`` or ``starlight``.

    The selector begins at ``start``; offsets of nodes and errors count from the beginning of the text.
    """
    if len(text) > MAX_LENGTH:
        raise refusal(f"the selector has {len(text)} characters, the limit is {MAX_LENGTH}", text, MAX_LENGTH)
    try:
        selector = " " * start + text[start:]
        tree: Any = _lark(dialect).parse(selector if dialect == "jms" else blanked(selector))
        _check_depth(tree)
    except Refused as error:
        raise refusal(error.reason, text, error.at) from None
    except UnexpectedInput as error:
        raise _unexpected(error, text) from None
    return tree  # type: ignore[no-any-return]  # the builder's start rule returns the node itself


def _check_depth(tree: Node) -> None:
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in nodes.children(node)]
    if level:
        raise Refused(f"nested deeper than {MAX_DEPTH} levels", level[0].at)


@functools.cache
def _lark(dialect: str) -> Lark:
    """Return the parser of a dialect, created on first use (about 30 ms)."""
    file = "grammar.lark" if dialect == "jms" else "starlight.lark"
    grammar = resources.files("jmsaio.selector").joinpath(file).read_text("utf-8")
    callback = _jms_word if dialect == "jms" else _starlight_word
    return Lark(
        grammar, parser="lalr", lexer="basic", transformer=_Builder(dialect), lexer_callbacks={"ID": callback},
    )  # fmt: skip


def _jms_word(token: Token) -> Token:
    """Give a reserved word its own type; require other words to be Java identifiers."""
    if token.isascii():
        word = token.upper()
        if word in RESERVED_WORDS:
            return Token.new_borrow_pos(word, str(token), token)
    for place, character in enumerate(token):
        if not is_identifier_part(character) or (place == 0 and not is_identifier_start(character)):
            raise Refused(f"{shown(character)} is not allowed in a name", (token.start_pos or 0) + place)
    return token


def _starlight_word(token: Token) -> Token:
    word = token.upper()
    return Token.new_borrow_pos(word, str(token), token) if word in _RESERVED_STARLIGHT else token


def _unexpected(error: UnexpectedInput, text: str) -> InvalidSelectorError:
    if isinstance(error, UnexpectedCharacters):
        at = int(error.pos_in_stream or 0)
        if text[at] == "'":
            return refusal("this string has no closing quote", text, at)
        return refusal(f"{shown(text[at])} has no meaning in a selector", text, at)
    assert isinstance(error, UnexpectedToken)  # the third kind, UnexpectedEOF, is raised by another parser only
    ended = error.token.type == "$END"
    at = len(text) if ended else int(error.token.start_pos or 0)
    found = "the selector ends here" if ended else f"found {_shown(error.token)}"
    return refusal(f"{found}, expected {_expected(error.accepts or error.expected)}", text, at)


def _shown(token: Token) -> str:
    if token.type in _RESERVED_STARLIGHT:
        return f"the reserved word {token}"
    return f"{str(token)[:20]!r}..." if len(token) > 20 else shown(str(token))


def _expected(names: set[str]) -> str:
    """Return the names of the possible tokens; all that begin an operand are one name."""
    if "ID" in names:
        return _CONDITION if "NOT" in names else _OPERAND
    words = list(dict.fromkeys(word for name, word in _WORDS.items() if name in names))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def blanked(text: str) -> str:
    """Replace comments of the Starlight dialect by spaces: ``/* */``, and ``--`` up to a line end, which must exist.

    The lexer can't do it: for an unclosed comment, a regular expression would search for its end again and again.
    """
    parts: list[str] = []
    kept = place = 0
    lines_end, blocks_end = max(text.rfind("\n"), text.rfind("\r")), text.rfind("*/")
    while (opening := _COMMENT_OR_STRING.search(text, place)) is not None:
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


# Grammar rules to nodes


@v_args(inline=True)
class _Builder(Transformer[Token, Node]):
    """Creates the nodes: one method per rule or alias of the two grammars, called bottom up while lark parses."""

    def __init__(self, dialect: str) -> None:
        super().__init__(visit_tokens=False)
        self._is_jms = dialect == "jms"

    def start(self, node: Node) -> Node:
        return node

    def any_of(self, *parts: Any) -> Node:
        return parts[0] if len(parts) == 1 else nodes.Or(parts[::2], at=parts[0].at)

    def all_of(self, *parts: Any) -> Node:
        return parts[0] if len(parts) == 1 else nodes.And(parts[::2], at=parts[0].at)

    def negation(self, word: Token, operand: Node) -> Node:
        return nodes.Not(operand, at=_start(word))

    def comparison(self, token: Token) -> Token:
        return token

    def compare(self, left: Node, operator: Token, right: Node) -> Node:
        return nodes.Compare(str(operator), left, right, at=left.at)

    def between(self, subject: Node, *rest: Any) -> Node:
        return nodes.Between(subject, rest[-3], rest[-1], rest[0].type == "NOT", at=subject.at)

    def inside(self, subject: Node, *rest: Any) -> Node:
        values = tuple(str(item.value) for item in rest if isinstance(item, nodes.Literal))
        return nodes.In(subject, values, rest[0].type == "NOT", at=subject.at)

    def like(self, subject: Node, *rest: Any) -> Node:
        pattern, *escape = (item for item in rest if isinstance(item, nodes.Literal))
        character = escape[0] if escape else None
        if character is not None and len(str(character.value)) != 1:
            raise Refused("ESCAPE needs a string of exactly one character", character.at)
        return nodes.Like(subject, pattern, character, rest[0].type == "NOT", at=subject.at)

    def is_null(self, subject: Node, *rest: Token) -> Node:
        return nodes.IsNull(subject, rest[1].type == "NOT", at=subject.at)

    def arithmetic(self, first: Node, *rest: Any) -> Node:
        if not rest:
            return first
        pairs = tuple((str(operator), operand) for operator, operand in zip(rest[::2], rest[1::2], strict=True))
        return nodes.Arithmetic(first, pairs, at=first.at)

    def signed(self, sign: Token, operand: Node) -> Node:
        """Build a sign; in the jms dialect it is folded into a number at once, so that -2^63 can be written."""
        at = _start(sign)
        if self._is_jms and isinstance(operand, nodes.Literal) and isinstance(operand.value, (int, float)):
            folded = _folded(str(sign), operand.value)
            if folded is not None:
                return nodes.Literal(folded, at=at)
        return nodes.Sign(str(sign), operand, at=at)

    def name(self, token: Token) -> Node:
        return nodes.Name(str(token), at=_start(token))

    def number(self, token: Token) -> Node:
        parse_number = jms_number if self._is_jms else starlight_number
        try:
            return nodes.Literal(parse_number(str(token)), at=_start(token))
        except ValueError as error:
            raise Refused(str(error), _start(token)) from None

    def string(self, token: Token) -> Node:
        return nodes.Literal(token[1:-1].replace("''", "'"), at=_start(token))

    def boolean(self, token: Token) -> Node:
        return nodes.Literal(token.type == "TRUE", at=_start(token))

    def null(self, token: Token) -> Node:
        return nodes.Literal(None, at=_start(token))

    def group(self, inner: Node) -> Node:
        return nodes.Parentheses(inner, at=inner.at)

    def call(self, function: Token, *arguments: Node) -> Node:
        return nodes.Call(str(function), arguments, at=_start(function))


def _start(token: Token) -> int:
    return token.start_pos or 0


def _folded(sign: str, value: int | float) -> int | float | None:
    """Return the number with its sign and its own type, or None if it can't be signed here (TRUE, +2^63)."""
    if value is BEYOND:
        return Long(LONG_MIN) if sign == "-" else None
    if isinstance(value, bool):
        return None
    if sign == "+":
        return value
    if isinstance(value, Long):
        return Long(wrap_long(-value))
    return Float(-value) if isinstance(value, Float) else -value


# Text of literals to values

_EXACT = re.compile(r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*))(?P<long>[lL]?)")
_APPROXIMATE = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eEfFdD]))(?:[eE][+-]?[0-9]+)?(?P<suffix>[fFdD]?)")
#: Maximum number of digits: a 64-bit number never needs more, and longer text is refused before Python converts it.
_MOST_DIGITS = 100

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
#: 2^63, which a long can't hold: a literal of this value must follow a minus directly.
BEYOND = nodes.Big(2**63)


def jms_number(image: str) -> int | float:
    """Return the number of a literal: int (32 bits), Long, float, Float, or BEYOND. Raises ValueError with a reason."""
    exact = _EXACT.fullmatch(image)
    if exact is not None:
        return _exact(exact, image)
    approximate = _APPROXIMATE.fullmatch(image)
    if approximate is not None:
        return _approximate(image, approximate["suffix"])
    if re.fullmatch(r"0[0-9]+[lL]?", image):
        raise ValueError(f"{_short(image)} starts with 0, so it is octal and can have only the digits 0 to 7")
    raise ValueError(f"{_short(image)} is not a number")


def _exact(exact: re.Match[str], image: str) -> int:
    bases = (("hex", 16), ("octal", 8), ("decimal", 10))
    digits, base = next((exact[name], base) for name, base in bases if exact[name] is not None)
    if len(digits.lstrip("0")) > _MOST_DIGITS:
        raise ValueError(f"{_short(image)} does not fit in 64 bits")
    value = int(digits, base)
    if value > LONG_MAX:
        if value == BEYOND:
            return BEYOND
        raise ValueError(f"{_short(image)} does not fit in 64 bits")
    return Long(value) if exact["long"] or value > INT_MAX else value


def _approximate(image: str, suffix: str) -> float:
    value = float(image[:-1] if suffix else image)
    if suffix in ("f", "F"):
        value = Float(value)
    if math.isinf(value):
        raise ValueError(f"{_short(image)} does not fit in a {'float' if suffix in ('f', 'F') else 'double'}")
    return value


def starlight_number(image: str) -> int | float:
    """Parse a number of the Starlight dialect as the Java engine does; raises ValueError.

    A decimal literal too large for a long becomes a `Big`, except that one whose low 64 bits happen to fit in an int
    becomes that int (the Java code narrows before it checks).
    """
    exact = _EXACT.fullmatch(image)
    if exact is None:
        return float(image)
    if exact["decimal"] is None:
        if (number := _exact(exact, image)) is BEYOND:
            raise ValueError(f"{_short(image)} does not fit in 64 bits")
        return number
    digits = exact["decimal"]
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"{_short(image)} has more than {_MOST_DIGITS} digits")
    value = int(digits)
    low = (value + 2**63) % 2**64 - 2**63
    if INT_MIN <= low <= INT_MAX:
        return low
    return Long(value) if value <= LONG_MAX else nodes.Big(value)


def _short(image: str) -> str:
    return image if len(image) <= 24 else f"{image[:20]}..."
