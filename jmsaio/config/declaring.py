"""Declares options: ``option`` on a field of a configuration class, and ``declares`` on the class; reads maps of them.

Everything else about the option (parsing, validation, its row in the guide, its keyword for type checkers) derives from
that declaration. The kind of value comes from the annotation, so modules that declare options have no
``from __future__ import annotations``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs

from jmsaio.config.options import SECONDS, Directory, Kind, Option, Section, given, refuse, written
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown

T = TypeVar("T")

_OPTION, _GROUP = "jmsaio.option", "jmsaio.group"
_KINDS = {bool: Kind.FLAG, int: Kind.INTEGER, float: Kind.NUMBER, str: Kind.TEXT}

#: The declarations of the decorated classes, added when those are imported and never changed afterwards.
_directories: dict[Section, Directory] = {}
_sections: dict[type, Section] = {}
_classes: dict[Section, type] = {}
_groups: dict[type, Mapping[str, SectionField]] = {}


@attrs.frozen
class SectionField:
    """A field that holds a section, an object of ``kind``; ``doc`` is a phrase that describes it."""

    field: str
    section: Section
    kind: type
    doc: str
    optional: bool

    @property
    def key(self) -> str:
        return self.section.value.rstrip(".").rpartition(".")[2]

    @property
    def holder(self) -> Section:
        return Section(self.section.value.removesuffix(f"{self.key}."))


def described(key: str, doc: str, **more: Any) -> dict[str, object]:
    """Return the metadata of a field that is an option.

    Args:
        key: the written name, without the section's prefix; "" for an option that Starlight does not have, which is
            named like its field and whose durations are seconds.
        doc: a phrase for the guide that describes it.
        **more: ``secret``, or attributes of ``Option``. A float with a unit of time is a duration, in seconds here.
    """
    return {_OPTION: {"key": key, "doc": doc, **more}}


def option(default: Any, key: str, doc: str, *, repr: bool | Callable[[Any], str] = True, **more: Any) -> Any:
    """Declare a field with a default as an option; one without is an ``attrs.field``, for type checkers."""
    return attrs.field(default=default, repr=repr, metadata=described(key, doc, **more))


def group(section: Section, kind: type, doc: str, *, optional: bool = False) -> Any:
    """Declare a field that holds a section: an object of ``kind``, by default a new one, or None if ``optional``."""
    default = None if optional else attrs.Factory(kind)
    return attrs.field(default=default, metadata={_GROUP: (section, kind, doc, optional)})


def declares(*sections: Section, also: tuple[Option, ...] = ()) -> Callable[[type[T]], type[T]]:
    """Decorate an attrs class: its fields and ``also``, which have no field, are the options of ``sections``."""

    def register(declaring: type[T]) -> type[T]:
        fields = attrs.fields(declaring)  # type: ignore[arg-type]  # it is an attrs class
        for section in sections:
            own = [each for each in fields if _OPTION in each.metadata]
            options = (_as_option(each, section, **each.metadata[_OPTION]) for each in own)
            _directories[section] = Directory((*options, *also), written_names)
            _classes[section] = declaring
        _sections[declaring] = sections[0]
        held = [each for each in fields if _GROUP in each.metadata]
        _groups[declaring] = {each.name: SectionField(each.name, *each.metadata[_GROUP]) for each in held}
        return declaring

    return register


def directory(section: Section) -> Directory:
    return _directories[section]


def groups(declaring: type) -> Mapping[str, SectionField]:
    return _groups[declaring]


def written_names() -> list[str]:
    return [option.name for each in _directories.values() for option in each.options]


def check_fields(target: object) -> None:
    """Validate and convert every option and section of the frozen ``target``; raises ConfigurationError."""
    kind = type(target)
    for option in _directories[_sections[kind]].options:
        if option.field:
            object.__setattr__(target, option.field, given(option, getattr(target, option.field)))
    for field, each in _groups[kind].items():
        value = getattr(target, field)
        if isinstance(value, Mapping):
            object.__setattr__(target, field, _read_group(each, value))
        elif not isinstance(value, each.kind) and not (each.optional and value is None):
            others = ", a map or None" if each.optional else " or a map"
            raise ConfigurationError(f"option {field} needs a {each.kind.__name__}{others}", key=field)


def idle_on(transport: str, target: object, condition: str = "") -> Iterator[str]:
    """Yield the names of the options in ``target`` that have no effect on a transport and are not at their default.

    Raises ConfigurationError if the transport refuses one. The error names the transports that have it, then
    ``condition``: what else using them takes.
    """
    for option in _directories[_sections[type(target)]].options:
        value = getattr(target, option.field) if option.field else None
        if not option.field or transport in option.transports or value == option.default:
            continue
        if transport in option.refused_on:
            place = "the embedded broker" if transport == "memory" else f"transport={transport}"
            others = " or ".join(f"transport={name}" for name in option.transports)
            if option.kind is Kind.DURATION and isinstance(value, float):
                value = round(value / SECONDS[option.unit])  # as it is written
            raise refuse(option, value, f"{place} does not have this option; use {others}{condition}, or leave it out")
        yield option.name


def flatten(source: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Replace nested maps by dotted names, leaving out None; raises ConfigurationError for a name that is not text."""
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


def pop_group(source: dict[str, object], key: str) -> Mapping[str, object] | None:
    """Remove the group ``key`` (a nested map, or names that start with ``key.``) from ``source`` and return it."""
    nested = source.pop(key, None)
    if nested is not None and not isinstance(nested, Mapping):
        raise ConfigurationError(f"option {key} is a group of options, not {type(nested).__name__}", key=key)
    dotted = [name for name in source if name.startswith(f"{key}.")]
    group = dict(nested) if nested is not None else {}
    for name in dotted:
        group[name[len(key) + 1 :]] = source.pop(name)
    return group if nested is not None or dotted else None


def pop_value(source: dict[str, object], each: SectionField) -> object:
    """Remove the value of a field that holds a section from ``source``, by either name but not both, and return it."""
    is_map = isinstance(source.get(each.field), Mapping | None)
    own = pop_group(source, each.field) if is_map else source.pop(each.field)
    found = pop_group(source, each.key)
    if own is not None and found is not None:
        raise ConfigurationError(f"option {each.key} is given twice, also as {each.field}", key=each.key)
    return own if found is None else found


def read_section(
    section: Section, source: Mapping[str, object], base: object = None, directory: Directory | None = None
) -> dict[str, Any]:
    """Convert ``source`` to values of the fields of a section's class.

    A name is Starlight's (value in its unit) or the field's (durations in seconds). Maps are merged with the maps of
    ``base``, sections replace its sections. ``directory`` replaces the section's own. Raises ConfigurationError.
    """
    directory = directory or _directories[section]
    rest = dict(source)
    result: dict[str, Any] = {}
    for field, each in _groups[_classes[section]].items():
        value = pop_value(rest, each)
        if value is not None:
            result[field] = _read_group(each, value) if isinstance(value, Mapping) else value
    for option in directory.options:
        names = (option.key, option.field) if option.kind is Kind.MAP else ()
        for name in filter(None, dict.fromkeys(names)):
            if group := pop_group(rest, name):
                read = written(option, {**getattr(base, option.field, {}), **flatten(group)})
                if option.field:  # otherwise it is known by name only
                    result[option.field] = read
    empty = [] if section is Section.CONNECTION else [name for name, value in rest.items() if value == {}]
    for name in empty:
        directory.find(name, section.value)  # flattened, an unknown name would be gone
    for name, value in flatten(rest).items():
        option, own = directory.find(name, section.value)
        read = given(option, value) if own else written(option, value)
        if option.field in result:
            raise ConfigurationError(f"option {option.name} is given twice, also as {option.field}", key=option.name)
        if option.field:
            result[option.field] = read
    return result


def _read_group(each: SectionField, source: Mapping[str, object]) -> Any:
    """Create the value of a field that holds a section; its class refuses None for a required option."""
    required = (field.name for field in attrs.fields(each.kind) if field.default is attrs.NOTHING)
    return each.kind(**dict.fromkeys(required) | read_section(each.section, source))


def _as_option(
    field: Any, section: Section, key: str, secret: bool = False, unit: str = "", off: float | None = None, **more: Any
) -> Option:
    default = field.default.factory() if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]  # attrs types Factory as a function
    annotation, *functions = [each for each in _alternatives(field.type) if each is not NoneType]
    kind = _kind(annotation, unit)
    return Option(
        key=key or field.name,
        section=section,
        kind=Kind.SECRET if secret else kind,
        default=None if default is attrs.NOTHING else default,
        field=field.name,
        unit=unit,
        off=off,
        choices=get_args(annotation) if kind is Kind.CHOICE else (),
        supplied=bool(functions),
        **more,
    )


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return (annotation,) if get_origin(annotation) in (Literal, Mapping) else get_args(annotation) or (annotation,)


def _kind(annotation: Any, unit: str) -> Kind:
    if get_origin(annotation) is Literal:
        return Kind.CHOICE
    if get_origin(annotation) is Mapping:
        return Kind.MAP
    if annotation is float and unit in SECONDS:
        return Kind.DURATION
    return _KINDS[annotation]
