"""LIKE as compiled by the ActiveMQ engine, including the oddities of rare escape characters."""

from __future__ import annotations

from jmsaio.selector.like import ONE, RUN

_HEX = frozenset("0123456789abcdefABCDEF")


def elements(pattern: str, escape: str | None) -> list[str | int]:
    """Split a pattern into characters and wildcards.

    The engine writes an escaped character to a Java regular expression as ``\\x`` and its number in hexadecimal, and
    Java reads two digits: further digits of a larger number are literal, and after a single digit the next character is
    read as the second.

    Raises:
        ValueError: Java would refuse that expression.
    """
    parts: list[str | int] = []
    digit = ""
    place = 0
    while place < len(pattern):
        character = pattern[place]
        following = pattern[place + 1 : place + 2]
        place += 1
        if digit and (character not in _HEX or character == escape):
            break
        if digit:
            parts.append(chr(int(digit + character, 16)))
            digit = ""
        elif character == escape and following and following in ("%", "_", escape):
            place += 1
            number = f"{ord(following):x}"
            if len(number) == 1:
                digit = number
            else:
                parts += (chr(int(number[:2], 16)), *number[2:])
        elif character in ("%", "_"):
            parts.append(RUN if character == "%" else ONE)
        else:
            parts.append(character)
    if digit:
        raise ValueError("the Java engine can't read this pattern with this escape character")
    return parts
