"""The Java selector engines, asked in one run each for all pairs of a test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.text import to_java
from jmsaio.model.values import Byte, Float, Long, Short
from jmsaio.selector import Selector
from tests.selector.generator import Values

SOURCES = Path(__file__).parent.parent / "java" / "selectors"
#: Apache's own engine with the few jars that its messages need.
ACTIVEMQ = (
    "org.apache.activemq:activemq-client:6.1.6",
    "jakarta.jms:jakarta.jms-api:3.1.0",
    "org.fusesource.hawtbuf:hawtbuf:1.11",
    "org.slf4j:slf4j-api:2.0.16",
)
_TYPES = {
    bool: "boolean", Byte: "byte", Short: "short", int: "int", Long: "long", Float: "float", float: "double",
    str: "String",
}  # fmt: skip


def _field(text: str) -> str:
    """``text`` as a field of a request: what is not printable ASCII as UTF-16 units."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    parts = []
    for character in text:
        if " " <= character <= "~" and character != "\\":
            parts.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            parts += [f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)]
    return "".join(parts)


def request(selector: str, values: Values) -> str:
    """One line for the Java programs."""
    fields = [_field(selector)]
    for name, value in values.items():
        fields += [_field(name), _TYPES[type(value)], _field(to_java(value))]
    return "\t".join(fields)


def java_answers(program: str, class_path: str, requests: Iterable[tuple[str, Values]]) -> list[str]:
    """The answer of a Java program to each pair: invalid, error, true, false or unknown."""
    java = shutil.which("java")
    assert java is not None  # tests that need it are deselected without it
    lines = "".join(request(selector, values) + "\n" for selector, values in requests)
    done = subprocess.run(
        [java, "-Xss4m", "-XX:TieredStopAtLevel=1", "-cp", class_path, program],
        input=lines, capture_output=True, encoding="ascii", timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def our_answers(requests: Sequence[tuple[str, Values]]) -> list[str]:
    """The same from this library."""
    return [our_answer(selector, values) for selector, values in requests]


def our_answer(selector: str, values: Values) -> str:
    """One answer in the Java programs' words."""
    try:
        return in_words(Selector(selector).matches(values))
    except InvalidSelectorError:
        return "invalid"


def in_words(result: bool | None) -> str:
    """A result in the Java programs' words."""
    return {None: "unknown", True: "true", False: "false"}[result]
