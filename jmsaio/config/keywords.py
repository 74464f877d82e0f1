"""The keyword options of ``connect``, ``ConnectionFactory`` and ``load``.

A keyword is the name of a field of ``Configuration``, ``ClientOptions``, ``ProducerConfig`` or ``ConsumerConfig``,
unless several of them have a field of that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from jmsaio.config.configuration import ClientOptions, Configuration
from jmsaio.config.consumer import ConsumerConfig
from jmsaio.config.declaring import SectionField, directory, groups
from jmsaio.config.options import Option, Section, hint, nearest_name
from jmsaio.config.producer import ProducerConfig
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown

#: The classes whose fields are keywords, by section.
_HOLDERS: Mapping[Section, type] = {
    Section.CONNECTION: Configuration,
    Section.CLIENT: ClientOptions,
    Section.PRODUCER: ProducerConfig,
    Section.CONSUMER: ConsumerConfig,
}


@attrs.frozen
class Keyword:
    """A keyword option.

    Attributes:
        name: the keyword, which is the field's name.
        section: the section that has the field.
        declared: the option, or the section that the field holds.
    """

    name: str
    section: Section
    declared: Option | SectionField


def _all() -> Iterator[Keyword]:
    for section, holder in _HOLDERS.items():
        for option in directory(section).options:
            if option.field:
                yield Keyword(option.field, section, option)
        for name, each in groups(holder).items():
            yield Keyword(name, section, each)


def _unambiguous() -> tuple[dict[str, Keyword], dict[str, list[Section]]]:
    """Return the keywords, and the names that several sections share."""
    sections: dict[str, list[Section]] = {}
    for keyword in _all():
        sections.setdefault(keyword.name, []).append(keyword.section)
    ambiguous = {name: found for name, found in sections.items() if len(found) > 1}
    return {keyword.name: keyword for keyword in _all() if keyword.name not in ambiguous}, ambiguous


#: Keywords by name, in order of declaration.
KEYWORDS, _AMBIGUOUS = _unambiguous()


def find_keyword(name: str) -> Keyword:
    """Return the keyword option with a name.

    Raises:
        ConfigurationError: the name is unknown or belongs to several sections; the error suggests what to write.
    """
    check_unambiguous(name)
    keyword = KEYWORDS.get(name)
    if keyword is None:
        raise ConfigurationError(f"unknown option {shown(name)}{_hint(name)}", key=name)
    return keyword


def check_unambiguous(name: str) -> None:
    """Raise ConfigurationError if several sections have a field of that name."""
    if name in _AMBIGUOUS:
        fields = {each.section: field for field, each in groups(Configuration).items()}
        ways = " or ".join(f"{fields[section]}={{{name!r}: ...}}" for section in _AMBIGUOUS[name])
        raise ConfigurationError(f"option {shown(name)} belongs to more than one section; give {ways}", key=name)


def _hint(name: str) -> str:
    """Suggest a keyword for ``name``, which can be a written name or belong to a section without keywords."""
    meant = {keyword: repr(keyword) for keyword in KEYWORDS}
    for keyword in KEYWORDS.values():
        if isinstance(keyword.declared, Option):
            meant.setdefault(keyword.declared.name, repr(keyword.name))
            continue
        meant.setdefault(keyword.declared.key, repr(keyword.name))
        if keyword.section is Section.CONSUMER:
            for option in (each for each in directory(keyword.declared.section).options if each.field):
                way = f"{keyword.name}={{{shown(option.field)}: ...}}"
                meant.setdefault(option.field, way)
                meant.setdefault(option.name, way)
    return hint(meant.get(nearest_name(name, meant), ""))
