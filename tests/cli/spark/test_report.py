"""``jmsaio spark report``: formats and exit codes, on archives made without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow  # noqa: F401 - the command reads files with it, so this file needs it
import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import DATA_LOSS, ERROR, OK, USAGE
from tests.spark.archives import row, write_archive

BEGIN = {"md": "# Archive of queue://orders\n", "html": "<!doctype html>\n", "svg": "<svg ", "json": '{"job": "report"'}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_archive(tmp_path / "archive", [row(0, b"one"), row(1, b"three")])
    return tmp_path / "archive"


def test_a_report_is_markdown_unless_another_format_is_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "report", str(folder)]) == OK
    assert capsys.readouterr().out.startswith(BEGIN["md"])
    assert main(["spark", "report", str(folder), "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["bytes"] == 8


@pytest.mark.parametrize("form", BEGIN)
def test_the_format_is_that_of_the_option_or_the_files_name(
    folder: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "report", str(folder), "--format", form]) == OK
    shown = capsys.readouterr().out
    assert shown.startswith(BEGIN[form])
    for name, arguments in ((f"a.{form}", []), ("a.txt", ["--format", form])):
        assert main(["spark", "report", str(folder), "--output", str(tmp_path / name), *arguments]) == OK
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(BEGIN[form])
    assert capsys.readouterr().out == ""


def test_a_file_of_an_unknown_format_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main(["spark", "report", str(folder), "--output", str(tmp_path / "a.pdf")]) == USAGE
    assert "a name that ends with one of .md, .html, .svg, .json, or --format, not " in capsys.readouterr().err
    assert not (tmp_path / "a.pdf").exists()


def test_gaps_set_the_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = folder.glob("*/*/*.parquet")
    file.unlink()
    assert main(["spark", "report", str(folder)]) == DATA_LOSS
    assert "| persistent://public/default/orders: 2 rows are missing, all of them |" in capsys.readouterr().out


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_a_folder_without_an_archive_is_refused(
    tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (tmp_path / "empty").mkdir()
    assert main(["spark", "report", str(tmp_path / folder)]) == USAGE
    assert f"{folder} is no archive: it has no _manifest.json" in capsys.readouterr().err
    assert main(["spark", "report", "hdfs:/folder"]) == USAGE
    assert "looks like a URL" in capsys.readouterr().err


def test_a_damaged_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = folder.glob("*/*/*.parquet")
    file.write_bytes(b"no Parquet")
    assert main(["spark", "report", str(folder)]) == ERROR
    assert f"{file} can't be read: " in capsys.readouterr().err
