"""The Compose files, checked without Docker: valid by the specification, and everything they refer to is there.

The specification's JSON schema is the one that the package check-jsonschema carries.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from jmsaio.launcher.maven import recipe
from jmsaio.launcher.settings import BROKER_VERSION, StartOptions, broker_settings, features

FOLDER = Path(__file__).parents[2] / "compose"
FILES = ["standalone.yaml", "cluster.yaml"]
BROKERS = {"standalone.yaml": ["broker"], "cluster.yaml": ["broker1", "broker2", "broker3"]}
PREFIX = "PULSAR_PREFIX_"

#: What Docker needs differently from a broker started on this machine: the port must be reachable from outside the
#: container, and the filter lies in a mounted folder.
DIFFERENT_IN_DOCKER = {"bindAddress", "entryFiltersDirectory"}


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return document


def services(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(name)["services"]
    return found


def settings(service: dict[str, Any]) -> dict[str, str]:
    environment = service.get("environment", {})
    return {key.removeprefix(PREFIX): value for key, value in environment.items() if key.startswith(PREFIX)}


def published(service: dict[str, Any]) -> list[tuple[str, int, int]]:
    """(address on this machine, port on this machine, port in the container) of each published port."""
    ports = []
    for port in service.get("ports", ()):
        address, outside, inside = port.split(":")
        ports.append((address, int(outside), int(inside)))
    return ports


def specification() -> dict[str, Any]:
    files = importlib.metadata.files("check-jsonschema") or []
    path = next(file for file in files if file.name == "compose-spec.json")
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize("name", FILES)
def test_valid_by_the_specification(name: str) -> None:
    schema = specification()
    validator = jsonschema.validators.validator_for(schema)
    assert [error.message for error in validator(schema).iter_errors(load(name))] == []


def test_the_specification_refuses_nonsense() -> None:
    schema = specification()
    validator = jsonschema.validators.validator_for(schema)
    assert list(validator(schema).iter_errors({"services": {"broker": {"imagee": "x"}}}))


@pytest.mark.parametrize("name", FILES)
def test_one_image_of_the_version_that_the_launcher_fetches(name: str) -> None:
    assert {service["image"] for service in services(name).values()} == {f"apachepulsar/pulsar:{BROKER_VERSION}"}


def test_standalone_settings_are_the_launchers() -> None:
    ours = broker_settings(StartOptions(), Path("/filters"))
    docker = settings(services("standalone.yaml")["broker"])
    assert docker.keys() == ours.keys()
    ours["listeningInterface"] = "lo"  # the launcher looks up its name, a container always has this one
    different = {key for key in ours if ours[key] != docker[key]}
    assert different == DIFFERENT_IN_DOCKER


@pytest.mark.parametrize("broker", BROKERS["cluster.yaml"])
def test_cluster_brokers_have_the_launchers_features(broker: str) -> None:
    docker = settings(services("cluster.yaml")[broker])
    assert {key: docker.get(key) for key in features()} == features()


def test_the_clusters_bookies_take_a_full_chunk() -> None:
    """Their limit of a frame is the launcher's."""
    limit = broker_settings(StartOptions(), Path("/filters"))["nettyMaxFrameSizeBytes"]
    for bookie in ("bookie1", "bookie2", "bookie3"):
        assert settings(services("cluster.yaml")[bookie])["nettyMaxFrameSizeBytes"] == limit


@pytest.mark.parametrize("name", FILES)
def test_every_log_is_bounded(name: str) -> None:
    """Docker keeps at most five files of 10 MB of what a container prints."""
    for label, service in services(name).items():
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}, label


def test_cluster_brokers_differ_in_their_ports_only() -> None:
    brokers = [settings(services("cluster.yaml")[broker]) for broker in BROKERS["cluster.yaml"]]
    for key in set().union(*brokers):
        values = {broker.get(key) for broker in brokers}
        assert len(values) == (3 if key in ("brokerServicePort", "webServicePort") else 1), key


def test_cluster_is_three_brokers_three_bookies_and_a_metadata_store() -> None:
    commands = [" ".join(service["command"]) for service in services("cluster.yaml").values()]
    for words, count in {"bin/pulsar broker": 3, "bin/pulsar bookie": 3, "bin/pulsar zookeeper": 1}.items():
        assert sum(command.endswith(words) for command in commands) == count
    copies = int(settings(services("cluster.yaml")["broker1"])["managedLedgerDefaultEnsembleSize"])
    assert copies == 2, "one of three bookies may be lost"


@pytest.mark.parametrize("name", FILES)
def test_every_published_port_is_local_and_served(name: str) -> None:
    document = services(name)
    outside = [port for service in document.values() for _, port, _ in published(service)]
    assert len(outside) == len(set(outside))
    for label, service in document.items():
        sharing = [label] + [other for other, its in document.items() if its.get("network_mode") == f"service:{label}"]
        served = {
            int(value)
            for other in sharing
            for key, value in settings(document[other]).items()
            if key in ("brokerServicePort", "webServicePort")
        }
        assert {inside for _, _, inside in published(service)} == (served if service.get("ports") else set())
        for address, host_port, inside in published(service):
            assert address == "127.0.0.1"
            assert host_port == inside, "brokers advertise the port that clients on this machine use"


@pytest.mark.parametrize("name", FILES)
def test_every_broker_port_is_published(name: str) -> None:
    document = services(name)
    inside = {port for service in document.values() for _, _, port in published(service)}
    for broker in BROKERS[name]:
        its = settings(document[broker])
        assert {int(its["brokerServicePort"]), int(its["webServicePort"])} <= inside
        assert its["advertisedAddress"] == "127.0.0.1"


@pytest.mark.parametrize("name", FILES)
def test_every_volume_is_declared_and_used(name: str) -> None:
    used = set()
    for service in services(name).values():
        for volume in service.get("volumes", ()):
            if isinstance(volume, str):
                source, target = volume.split(":")
                assert source not in used, "two services must not share a data volume"
                used.add(source)
                assert target == "/pulsar/data"
    assert used == set(load(name)["volumes"])


@pytest.mark.parametrize("name", FILES)
def test_every_broker_finds_the_filter(name: str) -> None:
    for broker in BROKERS[name]:
        service = services(name)[broker]
        (mount,) = [volume for volume in service["volumes"] if isinstance(volume, dict)]
        assert mount["target"] == settings(service)["entryFiltersDirectory"]
        assert mount["source"] == "./filters"
        assert mount["bind"]["create_host_path"] is False
        assert settings(service)["entryFilterNames"] + ".nar" == recipe()["name"]
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert "jmsaio broker filter compose/filters" in text
    assert "filters/" in (FOLDER / ".gitignore").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_every_dependency_is_there_and_can_be_met(name: str) -> None:
    document = services(name)
    before: dict[str, set[str]] = {}
    for label, service in document.items():
        depends = service.get("depends_on", {})
        before[label] = set(depends)
        for other, how in depends.items():
            condition, target = how["condition"], document[other]
            if condition == "service_healthy":
                assert "healthcheck" in target
            elif condition == "service_completed_successfully":
                assert target["restart"] == "no", "it must end and stay ended"
            else:
                assert condition == "service_started"
        mode = service.get("network_mode")
        if mode is not None:
            owner = mode.removeprefix("service:")
            assert owner in document
            assert owner in before[label]
            assert "ports" not in service
    started: set[str] = set()
    while len(started) < len(document):
        ready = {label for label in document if label not in started and before[label] <= started}
        assert ready, f"these wait for each other: {set(document) - started}"
        started |= ready


@pytest.mark.parametrize("name", FILES)
def test_every_host_name_is_a_service(name: str) -> None:
    document = services(name)
    texts = [text for service in document.values() for text in [*settings(service).values(), *service["command"]]]
    hosts = {host for text in texts for host in re.findall(r"([A-Za-z][\w-]*):2181", text)}
    assert hosts <= set(document)
    for label, service in document.items():
        if label.startswith("bookie"):
            assert settings(service)["advertisedAddress"] == label


@pytest.mark.parametrize("name", FILES)
def test_health_checks_ask_the_services_own_port(name: str) -> None:
    for broker in BROKERS[name]:
        service = services(name)[broker]
        assert f"127.0.0.1:{settings(service)['webServicePort']}/" in service["healthcheck"]["test"][1]


def test_cluster_addresses_written_at_first_start_are_the_brokers() -> None:
    command = services("cluster.yaml")["metadata-init"]["command"]
    values = dict(zip(command[2::2], command[3::2], strict=True))
    brokers = [settings(services("cluster.yaml")[broker]) for broker in BROKERS["cluster.yaml"]]
    assert values["--cluster"] == brokers[0]["clusterName"]
    assert values["--metadata-store"] == brokers[0]["metadataStoreUrl"]
    assert values["--configuration-metadata-store"] == brokers[0]["configurationMetadataStoreUrl"]
    for option, scheme, key in [
        ("--broker-service-url", "pulsar", "brokerServicePort"),
        ("--web-service-url", "http", "webServicePort"),
    ]:
        assert values[option] == f"{scheme}://" + ",".join(f"127.0.0.1:{broker[key]}" for broker in brokers)


def test_bookies_use_the_brokers_metadata_store() -> None:
    document = services("cluster.yaml")
    store = settings(document["broker1"])["metadataStoreUrl"]
    for bookie in ("bookie1", "bookie2", "bookie3"):
        assert settings(document[bookie])["metadataServiceUri"] == f"metadata-store:{store}"
