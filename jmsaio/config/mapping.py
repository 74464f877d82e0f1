"""Converts maps of options, nested or with dotted names, to the values of a section's fields."""

from __future__ import annotations

from collections.abc import Mapping

from jmsaio.config.options import Directory, Kind
from jmsaio.config.values import given, written
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown


def flatten(source: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Replace nested maps by dotted names, leaving out values that are None.

    Raises:
        ConfigurationError: a name is not text.
    """
    result: dict[str, object] = {}
    for key, value in source.items():
        if not isinstance(key, str):
            raise ConfigurationError(f"option names are text, not {shown(key)}")
        name = prefix + key
        if isinstance(value, Mapping):
            result.update(flatten(value, f"{name}."))
        elif value is not None:
            result[name] = value
    return result


def take_group(source: dict[str, object], key: str) -> Mapping[str, object] | None:
    """Remove the group ``key`` (a nested map, or names that start with ``key.``) from ``source`` and return it.

    Raises:
        ConfigurationError: ``key`` has a value that is not a map.
    """
    nested = source.pop(key, None)
    if nested is not None and not isinstance(nested, Mapping):
        raise ConfigurationError(f"option {key} is a group of options, not {type(nested).__name__}", key=key)
    dotted = [name for name in source if name.startswith(f"{key}.")]
    group = dict(nested) if nested is not None else {}
    for name in dotted:
        group[name[len(key) + 1 :]] = source.pop(name)
    return group if nested is not None or dotted else None


def read_section(
    directory: Directory, source: Mapping[str, object], prefix: str, properties: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Convert ``source`` to values of a section's fields; ``prefix`` is the section's, for errors.

    A name is Starlight's (value in its unit) or the field's (durations in seconds). A ``properties`` map in ``source``
    is merged over ``properties``.

    Raises:
        ConfigurationError: a name is unknown, an option is given twice, or a value is invalid.
    """
    rest = dict(source)
    result: dict[str, object] = {}
    for option in directory.options:
        group = take_group(rest, option.key) if option.kind is Kind.MAP else None
        if group is not None:
            value = written(option, {**(properties or {}), **flatten(group)} if option.field else group)
            if option.field:
                result[option.field] = value
    for name, value in flatten(rest).items():
        option, own = directory.find(name, prefix)
        read = given(option, value) if own else written(option, value)
        if not option.field:
            continue
        if option.field in result:
            raise ConfigurationError(f"option {option.name} is given twice, also as {option.field}", key=option.name)
        result[option.field] = read
    return result
