"""Which regular expressions are taken."""

from __future__ import annotations

import pytest

from jmsaio.selector.starlight.regex import Characters, compile_pattern


@pytest.mark.parametrize(
    ("text", "groups", "nullable"),
    [
        ("", 0, True), ("abc", 0, False), ("a*", 0, True), ("a+?", 0, False), ("(a)(?:b)(c)?", 2, False),
        ("^$", 0, True), ("a|", 0, True), ("a{0,3}", 0, True), ("[^a-z_.]", 0, False), ("[a-]", 0, False),
        ("[-a]", 0, False), ("\\d\\.\\x41\\u00e9\\t", 0, False), ("[\\d\\-\\]]", 0, False), ("\\Aa", 0, False),
        ("}]", 0, False), ("(a*)?", 1, True),
    ],
)  # fmt: skip
def test_a_pattern_knows_its_groups_and_whether_it_matches_nothing(text: str, groups: int, nullable: bool) -> None:
    pattern = compile_pattern(text)
    assert (pattern.groups, pattern.nullable) == (groups, nullable)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(", "no '\\)'"), (")", "no '\\('"), ("*a", "nothing to repeat before"), ("a**", "after a quantifier"),
        ("a*+", "after a quantifier"), ("(?=a)", "only \\(\\?:"), ("(?<n>a)", "only \\(\\?:"),
        ("(?i)a", "only \\(\\?:"), ("\\1", "one meaning"), ("\\b", "one meaning"), ("\\Qa\\E", "one meaning"),
        ("\\p{L}", "one meaning"), ("\\Z", "one meaning"), ("a\\", "one meaning"), ("[", "no '\\]'"),
        ("[]", "can't be empty"), ("[a[b]]", "nested classes"), ("[a&&b]", "nested classes"), ("[z-a]", "not a range"),
        ("[a-\\d]", "not a range"), ("[^^a]", "\\\\\\^"), ("[a-c-e]", "\\\\-"), ("a{", "does not begin a repetition"),
        ("a{,2}", "does not begin a repetition"), ("a{3,2}", "smaller number first"), ("a{256}", "up to 255"),
        ("(a*)*", "match the empty string"), ("(a|)+", "match the empty string"),
        ("(a?){2}", "match the empty string"), ("^*", "anchor"),
        ("$+", "anchor"), ("\\x4", "2 hexadecimal"), ("\\ud800", "4 hexadecimal"), ("(((a{200}){200}))", "too large"),
        ("(" * 30, "nested too deeply"), ("\\é", "one meaning"), ("{2}", "nothing to repeat before"),
    ],
)  # fmt: skip
def test_a_pattern_that_java_refuses_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        compile_pattern(text)


def test_sets_have_ranges_inner_sets_and_negation() -> None:
    inner = Characters(frozenset("x"), negated=True)
    mixed = Characters(frozenset("a"), (("0", "9"),), (inner,))
    assert [mixed.has(character) for character in "a5xb"] == [True, True, False, True]
    assert [Characters(frozenset("a"), negated=True).has(character) for character in "ab"] == [False, True]
