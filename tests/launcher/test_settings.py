"""The directories, start options, the broker's settings and its command line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from jmsaio.launcher import StartOptions, state_directory
from jmsaio.launcher.settings import (
    BROKER_VERSION,
    broker_settings,
    cache_directory,
    command,
    data_text,
    features,
    loopback_interface,
    parse_settings,
    render,
)


@pytest.mark.parametrize(
    ("name", "value", "cache", "state"),
    [
        ("JMSAIO_CACHE", "/a/b", Path("/a/b"), None),
        ("XDG_CACHE_HOME", "/c", Path("/c/jmsaio"), None),
        ("JMSAIO_CACHE", "~/x", Path.home() / "x", None),
        ("JMSAIO_CACHE", "here", Path.cwd() / "here", None),
        ("JMSAIO_STATE", "/a/b", None, Path("/a/b")),
        ("XDG_STATE_HOME", "/c", None, Path("/c/jmsaio/broker")),
    ],
)
def test_cache_and_state_lie_where_the_environment_says_or_below_the_home_directory(
    name: str, value: str, cache: Path | None, state: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("JMSAIO_CACHE", "XDG_CACHE_HOME", "JMSAIO_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    assert cache_directory() == (cache or Path.home() / ".cache" / "jmsaio")
    assert state_directory() == (state or Path.home() / ".local" / "state" / "jmsaio" / "broker")


def test_data_files_are_package_data() -> None:
    for name in ("broker-pom.xml", "standalone.conf", "features.conf", "filter.toml"):
        assert data_text(name)


def test_pom_asks_for_the_version_that_is_told() -> None:
    assert f"<version>{BROKER_VERSION}</version>" in data_text("broker-pom.xml")


def test_no_registry_host_is_named() -> None:
    for name in ("broker-pom.xml", "filter.toml"):
        text = data_text(name).replace("http://maven.apache.org/POM/4.0.0", "")
        assert "://" not in text


def test_by_default_the_ports_are_pulsars_filters_run_and_data_is_kept() -> None:
    options = StartOptions()
    assert (options.broker_port, options.web_port) == (6650, 8080)
    assert options.state_directory == state_directory()
    assert options.filters
    assert not options.fresh


@pytest.mark.parametrize(
    "wrong",
    [
        {"broker_port": -1},
        {"web_port": 65536},
        {"memory": "2 GB"},
        {"memory": "2g -Dx=y"},
        {"timeout": 0},
        {"timeout": math.nan},
        {"timeout": math.inf},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        StartOptions(**wrong)  # type: ignore[arg-type] # wrong values on purpose


def test_settings_have_every_feature_and_stay_on_this_machine() -> None:
    settings = broker_settings(StartOptions(broker_port=16650, web_port=18080), Path("/filters"))
    assert settings.items() >= features().items()
    assert settings["brokerServicePort"] == "16650"
    assert settings["webServicePort"] == "18080"
    assert settings["bindAddress"] == "127.0.0.1"
    assert settings["listeningInterface"] == loopback_interface()
    assert settings["entryFiltersDirectory"] == "/filters"
    assert settings["transactionCoordinatorEnabled"] == "true"
    assert settings["acknowledgmentAtBatchIndexLevelEnabled"] == "true"
    assert not any("$" in value for value in settings.values())


def test_a_local_broker_looks_for_cached_messages_to_drop_once_a_second_unless_told_otherwise() -> None:
    name = "managedLedgerCacheEvictionIntervalMs"
    assert broker_settings(StartOptions(), Path("/x"))[name] == "1000"
    assert broker_settings(StartOptions(settings={name: "10"}), Path("/x"))[name] == "10"
    assert name not in features(), "a cluster decides for itself"


def test_every_broker_serves_the_next_consumer_of_a_failover_subscription_at_once() -> None:
    """With Pulsar's delay one that takes over just when the delay before ends gets nothing."""
    assert features()["activeConsumerFailoverDelayTimeMillis"] == "0"


def test_a_broker_without_filters_has_no_setting_for_them() -> None:
    settings = broker_settings(StartOptions(filters=False), Path("/x"))
    assert not [name for name in settings if name.startswith("entryFilter")]


def test_the_users_settings_win() -> None:
    options = StartOptions(settings={"delayedDeliveryTickTimeMillis": "1000", "maxMessageSize": "100"})
    settings = broker_settings(options, Path("/x"))
    assert settings["delayedDeliveryTickTimeMillis"] == "1000"
    assert settings["maxMessageSize"] == "100"


def test_the_users_settings_win_over_those_of_authentication() -> None:
    options = StartOptions(auth="token", settings={"superUserRoles": "me"})
    settings = broker_settings(options, Path("/x"), {"superUserRoles": "admin", "authorizationEnabled": "true"})
    assert (settings["superUserRoles"], settings["authorizationEnabled"]) == ("me", "true")


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, 5 * 1024 * 1024 + 10 * 1024),
        ({"maxMessageSize": "10485760"}, 10 * 1024 * 1024 + 10 * 1024),
        ({"maxMessageSize": "10485760", "nettyMaxFrameSizeBytes": "7"}, 7),
    ],
)
def test_the_storage_takes_a_full_chunk(given: dict[str, str], limit: int) -> None:
    """The storage's limit is larger than the largest message, by what surrounds it."""
    settings = broker_settings(StartOptions(settings=given), Path("/x"))
    assert int(settings["nettyMaxFrameSizeBytes"]) == limit


def test_render_and_parse_are_inverse() -> None:
    settings = {"a": "1", "b": "x=y z", "c": ""}
    assert parse_settings(render(settings)) == settings
    assert parse_settings("# a=1\n\nb = 2\nno pair\n") == {"b": "2"}


@pytest.mark.parametrize(("name", "value"), [("a b", "1"), ("", "1"), ("a=b", "1"), ("#a", "1"), ("a", "1\nb=2")])
def test_settings_that_would_not_survive_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="is not a broker setting"):
        render({name: value})


def test_the_command_limits_memory_and_log() -> None:
    words = list(command(Path("/jdk/java"), Path("/jars"), StartOptions(memory="512m")))
    assert words[0] == "/jdk/java"
    assert "-Xmx512m" in words
    assert "-XX:MaxDirectMemorySize=512m" in words
    assert words[words.index("-cp") + 1] == "/jars/*"
    assert words[words.index("--config") + 1] == "standalone.conf"
    assert "-Dlog4j2.configurationFile=log4j2.xml" in words, "else the log would grow without end"
