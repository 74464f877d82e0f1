"""The two conversion tables of JMS.

Jakarta Messaging 3.1, 3.5.4 Property value conversion; 3.11.3 Conversions provided by StreamMessage and MapMessage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from jmsaio.errors import MessageFormatError, NullValueError, NumberFormatError
from jmsaio.model.arguments import shown, with_article
from jmsaio.model.text import PARSERS, to_java
from jmsaio.model.values import TYPE_OF, JmsType, Value

_T = JmsType
_SHARED: Final[dict[JmsType, tuple[JmsType, ...]]] = {
    _T.BOOLEAN: (_T.BOOLEAN, _T.STRING),
    _T.BYTE: (_T.BYTE, _T.SHORT, _T.INT, _T.LONG, _T.STRING),
    _T.SHORT: (_T.SHORT, _T.INT, _T.LONG, _T.STRING),
    _T.INT: (_T.INT, _T.LONG, _T.STRING),
    _T.LONG: (_T.LONG, _T.STRING),
    _T.FLOAT: (_T.FLOAT, _T.DOUBLE, _T.STRING),
    _T.DOUBLE: (_T.DOUBLE, _T.STRING),
    _T.STRING: (_T.BOOLEAN, _T.BYTE, _T.SHORT, _T.INT, _T.LONG, _T.FLOAT, _T.DOUBLE, _T.STRING),
}
#: Type set -> types it can be read as.
PROPERTY_MATRIX: Final = _SHARED
#: Type written -> types it can be read as; a String can't be read as char, and byte[] only as byte[].
BODY_MATRIX: Final = {**_SHARED, _T.CHAR: (_T.CHAR, _T.STRING), _T.BYTES: (_T.BYTES,)}

_WIDEN: Final[dict[JmsType, Callable[[Any], Any]]] = {of: kind for kind, of in TYPE_OF.items()}
_NULL_IS_NUMBER_FORMAT: Final = (_T.BYTE, _T.SHORT, _T.INT, _T.LONG)
_NULL_IS_NULL_VALUE: Final = (_T.FLOAT, _T.DOUBLE, _T.CHAR)


def convert_property(value: Value, target: JmsType, name: str = "") -> Any:
    """Convert a property value to ``target``.

    Raises:
        MessageFormatError: the matrix has no such conversion.
        NumberFormatError: a String that is not such a number, or a missing value read as an integer.
        NullValueError: a missing value read as float or double.
    """
    return _convert(PROPERTY_MATRIX, value, target, name, "property")


def convert_body(value: Value, target: JmsType, name: str = "") -> Any:
    """Convert a value of a map or stream body to ``target``; raises as ``convert_property``."""
    return _convert(BODY_MATRIX, value, target, name, "value")


def _convert(matrix: dict[JmsType, tuple[JmsType, ...]], value: Value, target: JmsType, name: str, what: str) -> Any:
    if value is None:
        return _null(target, name, what)
    source = TYPE_OF.get(type(value))
    if source is None:  # in a message that was decoded with a schema
        raise MessageFormatError(
            f"{what} {shown(name)} is {with_article(type(value).__name__)}; read it with get_object"
        )
    if source is target:
        return value
    if target not in matrix.get(source, ()):
        raise MessageFormatError(
            f"{what} {shown(name)} is {with_article(source.value)} and can't be read as {target.value}"
        )
    if target is _T.STRING:
        return to_java(value)
    if source is _T.STRING:
        return PARSERS[target.value](value)  # type: ignore[arg-type]  # its type is STRING
    return _WIDEN[target](value)


def _null(target: JmsType, name: str, what: str) -> Any:
    if target is _T.BOOLEAN:
        return False
    if target in _NULL_IS_NUMBER_FORMAT:
        raise NumberFormatError(f"{what} {shown(name)} is missing or None, so it can't be read as {target.value}")
    if target in _NULL_IS_NULL_VALUE:
        raise NullValueError(f"{what} {shown(name)} is missing or None, so it can't be read as {target.value}")
    return None
