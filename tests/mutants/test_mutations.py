"""Mutations are the mistakes that people make, in the places where they make them."""

from __future__ import annotations

import pytest

from tests.mutants.mutations import compiles, mutations


def function(*lines: str) -> str:
    return "\n".join(["def f(self, a, b):", *(f"    {line}" for line in lines), ""])


def mutated(*lines: str) -> set[str]:
    """The bodies that mutations make of a function's body; lines are joined with a slash."""
    source = function(*lines)
    texts = [one.apply(source) for one in mutations(source)]
    return {" / ".join(line.strip() for line in text.splitlines()[1:]) for text in texts}


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["self.a()"], {"pass"}),
        (["self.a = b"], {"pass"}),
        (["raise KeyError(1 + 2)"], {"pass"}),
        (["return a < b"], {"return a <= b"}),
        (["return a in b"], {"return a not in b"}),
        (["return not a"], {"return (a)"}),
        (["return a + b"], {"return a - b"}),
        (["return 3"], {"return 4"}),
        (["return True"], {"return False"}),
        (["return min(a, b)"], {"return max(a, b)"}),
        (["return a.popleft()"], {"return a.pop()"}),
        (["return a or b"], {"return ((a) and (b))", "return ((a))", "return ((b))"}),
        (["return b(a, key=a)"], {"return b(a, )"}),
        (["return a if b else a"], {"return a if True else a", "return a if False else a"}),
    ],
)
def test_each_kind_of_mistake_is_made(lines: list[str], wanted: set[str]) -> None:
    assert mutated(*lines) == wanted


def test_neighbouring_calls_are_swapped() -> None:
    assert "await b() / a(1)" in mutated("a(1)", "await b()")


def test_a_loop_runs_once_unless_it_is_left_inside() -> None:
    assert "if a: / b()" in mutated("while a:", "    b()")
    assert not any(body.startswith("if") for body in mutated("while a:", "    break"))


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["try:", "    a()", "finally:", "    b()"], "if True: / a() / if True: / b()"),
        (
            ["try:", "    a()", "except KeyError:", "    raise", "finally:", "    b()"],
            "try: / a() / except KeyError: / raise / else: / b()",
        ),
    ],
)
def test_what_must_happen_finally_happens_only_on_success(lines: list[str], wanted: str) -> None:
    assert wanted in mutated(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ['"""What it does: 1 + 2."""'],
        ["log.debug('%s', 1)"],
        ["return f'{a + 1}'"],
        ["value = a", "return value"],
        ["..."],
    ],
)
def test_words_declarations_and_local_names_are_left_alone(lines: list[str]) -> None:
    assert mutated(*lines) == set()


@pytest.mark.parametrize(
    "source",
    [
        "LIMIT = 3\n",
        "class A(Protocol):\n    def f(self):\n        return 3\n",
        "class A:\n    def __repr__(self):\n        return 3\n",
        "@overload\ndef f(a: int = 1):\n    return 3\n",
    ],
)
def test_only_functions_with_a_promise_are_mutated(source: str) -> None:
    assert mutations(source) == []


def test_text_outside_ascii_does_not_move_the_edits() -> None:
    assert mutated("return 'Ä', a < b") == {"return 'Ä', a <= b"}


def test_a_mutation_shows_the_lines_before_and_after() -> None:
    source = function("b()", "return (a <", "    b)")
    (found,) = [one for one in mutations(source) if one.kind == "comparison"]
    assert (found.line, *found.shown(source)) == (3, "return (a < b)", "return (a <= b)")


def test_what_is_not_python_is_told() -> None:
    assert compiles("a = 1")
    assert not compiles("a = ")
