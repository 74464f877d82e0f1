"""Hypothesis strategies for messages, from their tables."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jmsaio.protocol.fields import Field, FieldType, Table

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
U64 = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
_KINDS: dict[FieldType, st.SearchStrategy[Any]] = {
    FieldType.UINT64: U64,
    FieldType.UINT32: st.integers(0, (1 << 32) - 1),
    FieldType.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    FieldType.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    FieldType.BOOL: st.booleans(),
    FieldType.TEXT: TEXTS,
    FieldType.DATA: st.binary(max_size=200),
}


def _value(field: Field) -> st.SearchStrategy[Any]:
    kind = field.kind
    one = values(kind) if isinstance(kind, Table) else _KINDS[kind]
    return st.lists(one, max_size=3) if field.repeated else one


def values(table: Table) -> st.SearchStrategy[dict[str, Any]]:
    """Values of a message: with all that is required, and some of the rest."""
    return st.fixed_dictionaries(
        {field.name: _value(field) for field in table.fields if field.required},
        optional={field.name: _value(field) for field in table.fields if not field.required},
    )
