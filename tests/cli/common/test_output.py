"""Where output goes, and that nothing in it drives a terminal."""

import json

import pytest

from jmsaio.cli.common.output import Output, make_output, printable, shown_age


def test_json_lines_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_output(None).as_json is True
    assert make_output(False).as_json is False
    Output(as_json=True).record({"a": "é"})
    Output(as_json=True).remark("not for a program")
    output = capsys.readouterr()
    assert json.loads(output.out) == {"a": "é"}
    assert output.err == ""


def test_remarks_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).remark("[bold]for people")
    Output(as_json=False).line("[red]as it is")
    output = capsys.readouterr()
    assert output.err.strip() == "[bold]for people"
    assert output.out.strip() == "[red]as it is"


def test_control_characters_are_escaped_but_tabs_stay() -> None:
    assert printable("a\x1b\x00\x9b\tb\u2028") == "a\\x1b\\x00\\x9b\tb\\u2028"


def test_a_lone_surrogate_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """A message with the schema JSON can have one."""
    Output(as_json=True).record({"text": "é\ud800"})
    text = capsys.readouterr().out
    assert (text.encode(), json.loads(text)) == ('{"text": "é\\ud800"}\n'.encode(), {"text": "é\ud800"})
    assert printable("é\ud800") == r"é\ud800"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 seconds"), (119, "119 seconds"), (200000, "2 days")])
def test_an_age_is_written_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert shown_age(seconds) == text
