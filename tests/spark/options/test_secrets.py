"""Secrets by reference: what is accepted, what a reference stands for, and that no secret shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jmsaio.errors import ConfigurationError
from jmsaio.spark.options.secrets import SECRETS, check_secret, is_reference, resolve_secrets
from jmsaio.transport.pulsar.admin.credentials import read_credentials

CANARY = "s3cr3t-canary"
JAVA = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def resolve(plugin: str, text: str, *folders: Path) -> str:
    return resolve_secrets({"authPlugin": plugin, "authParams": text}, folders)["authParams"]


def test_the_options_that_are_secrets_are_those_of_the_configuration() -> None:
    assert SECRETS == ("jms.tckPassword", "authParams")


@pytest.mark.parametrize("text", ["file:token.txt", "file:///run/secrets/token", "env:TOKEN"])
def test_a_reference_is_accepted(text: str) -> None:
    assert is_reference(text)
    check_secret("authParams", text, "token", allowed=False)


INLINE = [
    ("token", f"token:{CANARY}"),
    ("token", CANARY),
    ("token", f'{{"token": "{CANARY}"}}'),
    ("token", f'{{"file": "x", "token": "{CANARY}"}}'),
    ("basic", f"user:{CANARY}"),
    ("basic", f'{{"username": "u", "password": "{CANARY}"}}'),
    ("oauth2", f'{{"issuer_url": "u", "client_id": "c", "client_secret": "{CANARY}"}}'),
    ("oauth2", f'{{"issuer_url": "u", "private_key": "k", "clientSecret": "{CANARY}"}}'),
    ("oauth2", f'{{"issuer_url": "u", "privateKey": "data:application/json;base64,{CANARY}"}}'),
    ("oauth2", f'{{"{CANARY}'),
    ("oauth2", f'["{CANARY}"]'),
    ("tls", CANARY),
    ("unknown", CANARY),
    (None, CANARY),
]


@pytest.mark.parametrize(("plugin", "text"), INLINE)
def test_a_secret_itself_is_refused_and_not_shown(plugin: str | None, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_secret("authParams", text, plugin, allowed=False)
    assert str(caught.value).startswith("option authParams: a secret does not belong in an option")
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_allowed_secret_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    check_secret("authParams", CANARY, "token", allowed=True)
    assert caplog.messages == [
        "option authParams holds a secret, which travels with every task: write file:NAME or env:NAME instead"
    ]


NAMES_FILES = [
    ("tls", "tlsCertFile:c.pem,tlsKeyFile:k.pem"),
    ("tls", '{"tlsCertFile": "c.pem", "tlsKeyFile": "k.pem"}'),
    ("org.apache.pulsar.client.impl.auth.AuthenticationTls", "tlsCertFile:c.pem,tlsKeyFile:k.pem"),
    ("oauth2", '{"issuer_url": "u", "private_key": "file:///k.json"}'),
    ("token", '{"file": "/token"}'),
]


@pytest.mark.parametrize(("plugin", "text"), NAMES_FILES)
def test_parameters_that_only_name_files_are_no_secret(
    plugin: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_secret("authParams", text, plugin, allowed=False)
    assert caplog.messages == []


@pytest.mark.parametrize("text", ["file:", "env:", "file:///", "env: "])
def test_a_reference_to_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="names nothing; write file:NAME or env:NAME"):
        check_secret("authParams", text.strip(), "token", allowed=True)


#: Plug-in, what a file holds, and what the plug-in is given.
FILES = [
    ("token", f" {CANARY}\n", CANARY),
    ("token", f"token:{CANARY}", f"token:{CANARY}"),
    ("basic", f"user:{CANARY}\n", f"user:{CANARY}"),
    ("oauth2", f'{{"client_secret": "{CANARY}"}}\n', f'{{"client_secret": "{CANARY}"}}'),
]


@pytest.mark.parametrize(("plugin", "content", "given"), FILES)
def test_a_file_holds_what_the_plugin_is_given(tmp_path: Path, plugin: str, content: str, given: str) -> None:
    (tmp_path / "secret file").write_text(content)
    assert resolve(plugin, "file:secret file", tmp_path) == given
    assert resolve(plugin, (tmp_path / "secret file").as_uri()) == given
    assert resolve(plugin, f"file:{tmp_path}/secret file") == given


@pytest.mark.parametrize("plugin", ["token", "TOKEN", JAVA])
def test_a_file_with_nothing_but_the_token_is_read_again_by_the_plugin(tmp_path: Path, plugin: str) -> None:
    file = tmp_path / "to ken"
    file.write_text(CANARY)
    credentials = read_credentials(plugin, resolve(plugin, "file:to ken", tmp_path))
    assert credentials is not None
    assert credentials.read_token() == CANARY
    file.write_text("rotated")
    assert credentials.read_token() == "rotated"


@pytest.mark.parametrize("content", [f"{CANARY}\n", f"token:{CANARY}"])
def test_a_file_with_more_than_the_token_is_read_for_each_connection(tmp_path: Path, content: str) -> None:
    (tmp_path / "t").write_text(content)
    credentials = read_credentials("token", resolve("token", "file:t", tmp_path))
    assert credentials is not None
    assert credentials.read_token() == CANARY
    (tmp_path / "t").write_text("rotated\n")
    assert resolve("token", "file:t", tmp_path) == "rotated"


def test_a_variable_holds_what_the_plugin_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_AUTH", f"user:{CANARY}\n")
    assert resolve("basic", "env:SPARK_AUTH") == f"user:{CANARY}"
    assert resolve_secrets({"jms.tckPassword": "env:SPARK_AUTH"}) == {"jms.tckPassword": f"user:{CANARY}"}


def test_a_relative_name_is_looked_up_in_the_folders_and_then_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, here = (tmp_path / name for name in ("first", "second", "here"))
    for folder in (first, second, here):
        folder.mkdir()
        (folder / "t").write_text(f"{folder.name}\n")
    monkeypatch.chdir(here)
    assert resolve("token", "file:t", first, second) == "first"
    (first / "t").unlink()
    assert resolve("token", "file:t", first, second) == "second"
    assert resolve("token", "file:t") == "here"


def test_names_of_files_are_made_whole_where_spark_distributed_them(tmp_path: Path) -> None:
    for name in ("c.pem", "k.pem", "ca.pem"):
        (tmp_path / name).touch()
    given = resolve("tls", "tlsCertFile:c.pem,tlsKeyFile:/other/k.pem", tmp_path)
    credentials = read_credentials("tls", given)
    assert credentials is not None
    assert credentials.values == {"tlsCertFile": str(tmp_path / "c.pem"), "tlsKeyFile": "/other/k.pem"}
    given = resolve("oauth2", '{"issuer_url": "u", "private_key": "file:k.pem"}', tmp_path)
    assert json.loads(given)["private_key"] == f"file://{tmp_path}/k.pem"
    options = {"tlsTrustCertsFilePath": "ca.pem", "tlsKeyFilePath": "elsewhere.pem"}
    assert resolve_secrets(options, [tmp_path]) == {**options, "tlsTrustCertsFilePath": str(tmp_path / "ca.pem")}


def test_what_is_no_reference_stays_as_it_is() -> None:
    options = {"authPlugin": "token", "authParams": f"token:{CANARY}", "jms.clientId": "file:x"}
    assert resolve_secrets(options) == options


def test_a_reference_to_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_AUTH", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigurationError, match=r"^option authParams = 'env:SPARK_AUTH': there is no such environment"
    ):
        resolve("token", "env:SPARK_AUTH")
    with pytest.raises(ConfigurationError) as caught:
        resolve("token", "file:t", tmp_path / "files")
    where = f"{tmp_path}/files nor in {tmp_path}"
    assert str(caught.value) == f"option authParams = 'file:t': there is no such file in {where}"


@pytest.mark.parametrize(
    ("content", "why"), [(b" \n", "the file is empty"), (CANARY.encode() + b"\xff", "the file is no text in UTF-8")]
)
def test_a_file_that_holds_no_text_is_refused_without_its_content(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        resolve("token", "file:t", tmp_path)
    assert str(caught.value) == f"option authParams = 'file:t': {why}"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
