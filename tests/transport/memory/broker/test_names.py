from __future__ import annotations

import pytest

from jmsaio.errors import InvalidDestinationError
from jmsaio.transport.memory.broker.names import (
    compile_pattern,
    full_name,
    namespace_of,
)


def test_short_names_are_in_the_default_namespace() -> None:
    assert full_name("a/b") == "persistent://public/default/a/b"
    assert full_name("non-persistent://t/n/x") == "non-persistent://t/n/x"
    with pytest.raises(InvalidDestinationError):
        full_name("")


def test_the_namespace_is_the_first_two_parts() -> None:
    assert namespace_of("persistent://t/n/x/y") == "t/n"


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("persistent://t/n/a.*", "persistent://t/n/abc", True),
        ("persistent://t/n/a.*", "persistent://t/n/ba", False),
        ("persistent://t/n/a", "persistent://t/n/ab", False),
        ("persistent://t/n/a|b", "persistent://t/n/b", True),
        ("persistent://t/n.x/a.*", "persistent://t/nyx/a", False),
        ("persistent://t/n/.*", "non-persistent://t/n/a", False),
        ("short.*", "persistent://public/default/shorter", True),
    ],
)
def test_a_pattern_must_fit_the_whole_name(pattern: str, name: str, fits: bool) -> None:
    assert (compile_pattern(pattern).fullmatch(name) is not None) is fits


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(InvalidDestinationError, match="pattern"):
        compile_pattern("persistent://t/n/a(")
