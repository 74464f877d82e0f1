"""Declaring options, and reading maps of them: annotation, default and metadata of a field decide."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs
import pytest

from jmsaio.config import Backoff, Configuration, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.config.declaring import (
    SectionField,
    check_fields,
    declares,
    directory,
    flatten,
    groups,
    option,
    pop_group,
    read_section,
    written_names,
)
from jmsaio.config.options import ON_PULSAR, Kind, Option, Section, Status
from jmsaio.errors import ConfigurationError

#: Fields that follow from the URL or are whole objects.
DERIVED = {
    "without_effect",
    "scheme",
    "broker_name",
    "web_service_named",
    "fallback",
    "ignored",
    "producer",
    "consumer",
}


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class with one field of each kind, declared in place of the dead letter policy."""
    for name in ("_directories", "_sections", "_classes", "_groups"):
        monkeypatch.setattr(f"jmsaio.config.declaring.{name}", {})

    @declares(Section.DEAD_LETTER, also=(Option("javaOnly", Section.DEAD_LETTER, Kind.TEXT),))
    @attrs.frozen(kw_only=True)
    class Sample:
        flag: bool | None = option(None, "theFlag", "a flag")
        own_delay: float = option(1.5, "", "a duration of ours", unit="s")
        delay: float | None = option(None, "delayMs", "a duration", unit="ms", off=0)
        micros: float = option(0.001, "delayMicros", "a duration", unit="us", transports=ON_PULSAR)
        ratio: float = option(2.0, "ratio", "a number", low=1)
        choice: Literal["a", "b"] = option("a", "choice", "a choice", exact=True)
        names: Mapping[str, str] = option(attrs.Factory(dict), "names", "a map")
        password: str | None = option(None, "password", "a secret", secret=True, status=Status.NOT_BUILT)
        count: int = option(attrs.NOTHING, "count", "required", low=1)
        beside: int = 5

        def __attrs_post_init__(self) -> None:
            check_fields(self)

    return Sample


def test_the_annotation_gives_the_kind(sample: Any) -> None:
    section = Section.DEAD_LETTER
    assert directory(section).options == (
        Option("theFlag", section, Kind.FLAG, None, "flag", doc="a flag"),
        Option("own_delay", section, Kind.DURATION, 1.5, "own_delay", "s", doc="a duration of ours"),
        Option("delayMs", section, Kind.DURATION, None, "delay", "ms", off=0, doc="a duration"),
        Option("delayMicros", section, Kind.DURATION, 0.001, "micros", "us", doc="a duration", transports=ON_PULSAR),
        Option("ratio", section, Kind.NUMBER, 2.0, "ratio", low=1, doc="a number"),
        Option("choice", section, Kind.CHOICE, "a", "choice", choices=("a", "b"), exact=True, doc="a choice"),
        Option("names", section, Kind.MAP, {}, "names", doc="a map"),
        Option("password", section, Kind.SECRET, None, "password", status=Status.NOT_BUILT, doc="a secret"),
        Option("count", section, Kind.INTEGER, None, "count", low=1, doc="required"),
        Option("javaOnly", section, Kind.TEXT),
    )
    assert written_names()[-2:] == ["consumerConfig.deadLetterPolicy.count", "consumerConfig.deadLetterPolicy.javaOnly"]


def test_fields_are_read_as_their_options(sample: Any) -> None:
    read = sample(flag="TRUE", delay=0, own_delay=2, count="3")
    assert (read.flag, read.delay, read.own_delay, read.count, read.beside) == (True, None, 2.0, 3, 5)
    with pytest.raises(ConfigurationError, match=r"deadLetterPolicy\.count = 0: must be at least 1"):
        sample(count=0)


def test_a_group_is_a_field_with_a_section_of_its_own() -> None:
    assert groups(DeadLetterPolicy) == {}
    doc = groups(ConsumerConfig)["dead_letter"].doc
    assert groups(ConsumerConfig)["dead_letter"] == SectionField(
        "dead_letter", Section.DEAD_LETTER, DeadLetterPolicy, doc, optional=True
    )
    keys = {name: each.key for name, each in groups(Configuration).items()}
    assert keys == {"producer": "producerConfig", "consumer": "consumerConfig"}
    assert groups(ConsumerConfig)["ack_timeout_backoff"].key == "ackTimeoutRedeliveryBackoff"


@pytest.mark.parametrize(
    ("section", "kind", "others"),
    [
        (Section.CONNECTION, Configuration, DERIVED),
        (Section.PRODUCER, ProducerConfig, set()),
        (Section.CONSUMER, ConsumerConfig, {"dead_letter", "negative_ack_backoff", "ack_timeout_backoff"}),
        (Section.DEAD_LETTER, DeadLetterPolicy, set()),
        (Section.NACK_BACKOFF, Backoff, set()),
        (Section.ACK_TIMEOUT_BACKOFF, Backoff, set()),
    ],
)
def test_options_are_the_fields_with_the_same_defaults(section: Section, kind: type, others: set[str]) -> None:
    options = {option.field: option for option in directory(section).options if option.field}
    fields: dict[str, Any] = {field.name: field.default for field in attrs.fields(kind)}
    assert set(options) == set(fields) - others
    for name, each in options.items():
        value = fields[name].factory() if hasattr(fields[name], "factory") else fields[name]
        if value is not attrs.NOTHING:
            assert value == each.default, name


@pytest.mark.parametrize("section", list(Section))
def test_no_repr_shows_a_secret(section: Section) -> None:
    kinds = {Section.CONNECTION: Configuration, Section.PRODUCER: ProducerConfig, Section.CONSUMER: ConsumerConfig}
    for each in directory(section).options:
        if not each.secret or not each.field or section not in kinds:
            continue
        value = {"name": "hidden"} if each.kind is Kind.MAP else "hidden"
        needed: dict[str, Any] = {"auth_plugin": "token"} if each.field == "auth_params" else {}
        shown = repr(kinds[section](**{each.field: value}, **needed))
        assert "hidden" not in shown and "***" in shown


def test_nested_mappings_become_dotted_names_without_nulls() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": None}, "e.f": 2}) == {"a.b.c": 1, "e.f": 2}


def test_pop_group_takes_both_forms() -> None:
    source: dict[str, object] = {"a": {"b": 1}, "a.c": 2, "ab": 3}
    assert pop_group(source, "a") == {"b": 1, "c": 2}
    assert source == {"ab": 3}
    assert pop_group(source, "a") is None
    with pytest.raises(ConfigurationError, match="group of options"):
        pop_group({"a": 1}, "a")


def test_a_section_is_read_by_both_spellings_and_suggests_the_nearest_name() -> None:
    assert read_section(Section.CONSUMER, {"ackTimeoutMillis": 5, "consumer_name": "n"}) == {
        "ack_timeout": 0.005,
        "consumer_name": "n",
    }
    with pytest.raises(ConfigurationError, match=r"ackTimeoutMilis'; did you mean 'consumerConfig\.ackTimeoutMillis"):
        read_section(Section.CONSUMER, {"ackTimeoutMilis": 5})


@pytest.mark.parametrize("name", ["negative_ack_backoff", "negativeAckRedeliveryBackoff"])
def test_an_unknown_name_is_refused_even_if_its_value_is_an_empty_map(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"unknown option .*unknwon"):
        ConsumerConfig().merge({name: {"unknwon": {}}})
    assert ConsumerConfig().merge({"properties": {}}) == ConsumerConfig()
