"""Selector text to syntax tree: lark grammars for both dialects, limits, and errors with the column."""

from __future__ import annotations

import functools
import re
from importlib import resources

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.arguments import shown
from jmsaio.model.names import is_identifier_part, is_identifier_start
from jmsaio.selector.builder import Builder
from jmsaio.selector.nodes import Node
from jmsaio.selector.refusal import Refused, refusal

#: Maximum length of a selector in characters: enough for an IN list with thousands of entries.
MAX_LENGTH = 65_536
#: Words that are not identifiers, in any letter case (Jakarta Messaging 3.1, 3.8.1.1 Message selector syntax); XPATH
#: and XQUERY in the Starlight dialect only.
RESERVED = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})
RESERVED_STARLIGHT = RESERVED | {"XPATH", "XQUERY"}

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
    """Parse ``text`` to a syntax tree, without checking its types.

    Args:
        dialect: ``jms`` or ``starlight``.
        start: offset at which the selector begins; offsets of nodes and errors are relative to the beginning of the
            text.

    Raises:
        InvalidSelectorError: the text is not a selector, is longer than MAX_LENGTH, or nests deeper than MAX_DEPTH.
    """
    if len(text) > MAX_LENGTH:
        raise refusal(f"the selector has {len(text)} characters, the limit is {MAX_LENGTH}", text, MAX_LENGTH)
    try:
        selector = " " * start + text[start:]
        tree = _lark(dialect).parse(selector if dialect == "jms" else blanked(selector))
    except Refused as error:
        raise refusal(error.reason, text, error.at) from None
    except UnexpectedInput as error:
        raise _unexpected(error, text) from None
    return tree  # type: ignore[return-value]  # the builder's start rule returns the node itself


@functools.cache
def _lark(dialect: str) -> Lark:
    """Return the parser of a dialect, created on first use (about 30 ms)."""
    file = "grammar.lark" if dialect == "jms" else "starlight.lark"
    grammar = resources.files("jmsaio.selector").joinpath(file).read_text("utf-8")
    callback = _jms_word if dialect == "jms" else _starlight_word
    return Lark(
        grammar, parser="lalr", lexer="basic", transformer=Builder(dialect), lexer_callbacks={"ID": callback},
    )  # fmt: skip


def _jms_word(token: Token) -> Token:
    """Give a reserved word its own type; require other words to be Java identifiers."""
    if token.isascii():
        word = token.upper()
        if word in RESERVED:
            return Token.new_borrow_pos(word, str(token), token)
    for place, character in enumerate(token):
        if not is_identifier_part(character) or (place == 0 and not is_identifier_start(character)):
            raise Refused(f"{shown(character)} is not allowed in a name", (token.start_pos or 0) + place)
    return token


def _starlight_word(token: Token) -> Token:
    word = token.upper()
    return Token.new_borrow_pos(word, str(token), token) if word in RESERVED_STARLIGHT else token


def _unexpected(error: UnexpectedInput, text: str) -> InvalidSelectorError:
    """Translate lark's error to the terms of selectors."""
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
    if token.type in RESERVED_STARLIGHT:
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
