"""Which regular expressions are taken, and that they match as in Java, in bounded time."""

from __future__ import annotations

import random
import re

import pytest

from jmsaio.errors import SelectorRuntimeError
from jmsaio.selector.starlight import regex
from jmsaio.selector.starlight.regex import compile_pattern


@pytest.mark.parametrize(
    ("text", "groups", "nullable"),
    [
        ("", 0, True), ("abc", 0, False), ("a*", 0, True), ("a+?", 0, False), ("(a)(?:b)(c)?", 2, False),
        ("^$", 0, True), ("a|", 0, True), ("a{0,3}", 0, True), ("[^a-z_.]", 0, False), ("[a-]", 0, False),
        ("[-a]", 0, False), ("\\d\\.\\x41\\u00e9\\t", 0, False), ("[\\d\\-\\]]", 0, False), ("\\Aa", 0, False),
        ("}]", 0, False), ("(a*)?", 1, True), ("(^|,)a(,|$)|(b$)", 3, False), ("(a){0}", 1, True),
        ("[a&|~^]", 0, False),
    ],
)  # fmt: skip
def test_a_pattern_knows_its_groups_and_whether_it_matches_nothing(text: str, groups: int, nullable: bool) -> None:
    pattern = compile_pattern(text)
    assert (pattern.groups, pattern.nullable) == (groups, nullable)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(", "missing \\)"), (")", "no '\\('"), ("*a", "no argument for repetition"), ("a**", "bad repetition"),
        ("a*+", "bad repetition"), ("(?=a)", "only \\(\\?:"), ("(?<n>a)", "only \\(\\?:"),
        ("(?i)a", "only \\(\\?:"), ("\\1", "one meaning"), ("\\b", "one meaning"), ("\\Qa\\E", "one meaning"),
        ("\\p{L}", "one meaning"), ("\\Z", "one meaning"), ("a\\", "one meaning"), ("[", "no '\\]'"),
        ("[]", "is empty"), ("[^]a]", "is empty"), ("[a[b]]", "or has \\["), ("[a&&b]", "&&"),
        ("[z-a]", "class range: z-a"), ("[a-\\d]", "middle -"), ("[^^a]", "\\^"), ("[a-c-e]", "middle -"),
        ("a{", "does not begin a repetition"), ("a{,2}", "does not begin a repetition"),
        ("a{02}", "does not begin a repetition"), ("a{3,2}", "repetition size"), ("a{1001}", "repetition size"),
        ("(a*)*", "match the empty string"), ("(a|)+", "match the empty string"),
        ("(a?){2}", "match the empty string"), ("^*", "anchor"), ("$+", "follow a \\$"), ("a$b", "follow a \\$"),
        ("(a$|b)c", "follow a \\$"), ("(a$)?", "follow a \\$"), ("\\x4", "2 hexadecimal"),
        ("\\ud800", "4 hexadecimal"), ("\ud800", "surrogate"), ("(((a{200}){200}))", "repetition size"),
        ("(?:.{10}){100}" * 4, "too large"), ("(" * 30, "nested too deeply"), ("\\é", "one meaning"),
        ("{2}", "no argument for repetition"),
    ],
)  # fmt: skip
def test_a_pattern_that_java_refuses_or_reads_otherwise_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        compile_pattern(text)


def test_a_refusal_names_the_character() -> None:
    with pytest.raises(ValueError, match=r"\(character 3 of the pattern\)"):
        compile_pattern("ab\\b")


class Expressions:
    """Random expressions that both engines take."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, depth: int) -> str:
        way = self.random.randrange(8) if depth else 0
        if way < 3:
            return self.random.choice(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "ab", "\\x61", "a-"])
        if way == 3:
            return f"({self.one(depth - 1)})"
        if way == 4:
            return f"(?:{self.one(depth - 1)}|{self.one(depth - 1)})"
        if way == 5:
            quantifier = self.random.choice(["*", "+", "?", "{1,2}", "*?", "+?", "??", "{2}", "{1,}", "{0,2}?"])
            return f"{self.random.choice(['(', '(?:'])}{self.one(depth - 1)}){quantifier}"
        return self.one(depth - 1) + self.one(depth - 1)

    def anchored(self) -> str:
        text = self.one(4)
        return self.random.choice(["", "", "", "^"]) + text + self.random.choice(["", "", "", "$"])


@pytest.mark.slow
def test_the_same_matches_as_pythons_engine() -> None:
    expressions = Expressions(5)
    compared = 0
    while compared < 4_000:
        text = expressions.anchored()
        try:
            pattern = compile_pattern(text)
        except ValueError:
            continue  # repeats what can match nothing
        python = re.compile(text, re.ASCII)
        subject = "".join(expressions.random.choice("abc-") for _ in range(expressions.random.randrange(9)))
        compared += 1
        assert pattern.found(subject) is (python.search(subject) is not None), (text, subject)
        if pattern.nullable:
            continue
        found = list(pattern.matches(subject.encode()))
        spans = [tuple(match.span(group) for group in range(python.groups + 1)) for match in python.finditer(subject)]
        assert found == spans, (text, subject)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a$", "a\n", True), ("a$", "a\r\n", True), ("a$", "a\u2028", True), ("a$", "a\n\n", False),
        ("a\\r$", "a\r\n", False), ("^$", "", True), ("^$", "\n", True), ("^b", "a\nb", False),
        ("[^\\n]$", "\r\n", False), ("(^|,)a(,|$)", "b,a\r\n", True), ("(^|,)a(,|$)", "b,ab", False),
        ("a.b", "a\nb", False), ("a.b", "a\u0085b", False), ("a.b", "a😀b", True), ("\\d", "٣", False),
        ("\\w", "é", False), ("\\s", "\u00a0", False), ("\\s", "\v", True),
        ("[\\S]", "\v", False), ("[^\\d]", "\n", True),
    ],
)  # fmt: skip
def test_ends_and_classes_are_javas(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern).found(text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "spans"),
    [
        ("(a$)|\\n", "a\n", [((0, 1), (0, 1)), ((1, 2), (-1, -1))]), ("a\\n$", "a\n", [((0, 2),)]),
        ("a\\n?$", "a\n", [((0, 2),)]), ("a\\n??$", "a\n", [((0, 1),)]), ("(?:^|b)a", "aab", [((0, 1),)]),
        ("a$|(b)", "ba\r\n", [((0, 1), (0, 1)), ((1, 2), (-1, -1))]), ("é", "éé", [((0, 2),), ((2, 4),)]),
    ],
)  # fmt: skip
def test_a_match_ends_before_the_line_end_that_follows_it(
    pattern: str, text: str, spans: list[tuple[tuple[int, int], ...]]
) -> None:
    assert list(compile_pattern(pattern).matches(text.encode())) == spans


def test_no_pattern_hangs() -> None:
    text = "a" * 3_000
    for expression in ("(?:a|a)*b", "(?:aa?)*b", "(a|b|ab)*c", "a?" * 30 + "a" * 30 + "b", "a*a*a*a*a*b", ".*a.*a.*b"):
        pattern = compile_pattern(expression)
        assert pattern.found(text) is False
        assert list(pattern.matches(text[:300].encode())) == []


def test_matches_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MOST_WORK", 10_000_000)
    with pytest.raises(SelectorRuntimeError, match="steps"):
        list(compile_pattern("a.*b|a").matches(b"a" * 10_000))  # each of the matches reads the whole text
    with pytest.raises(SelectorRuntimeError, match="steps"):
        list(compile_pattern("a").matches(b"a" * 10_000))
    with pytest.raises(SelectorRuntimeError, match="steps"):
        compile_pattern(".{100}c").found("a" * 10_000)


def test_half_a_surrogate_pair_is_an_error() -> None:
    with pytest.raises(SelectorRuntimeError, match="surrogate"):
        compile_pattern("a").found("a\ud800")
