"""``jmsaio spark check``."""

from __future__ import annotations

import click

from jmsaio.cli.common.connecting import broker_options
from jmsaio.cli.common.output import ERROR, OK, make_output, printable
from jmsaio.cli.spark.running import pairs, read_source, session_options, write_summary
from jmsaio.spark.jobs.failures import reason_of


@click.command()
@broker_options
@session_options
def check(
    url: str | None, settings: tuple[str, ...], master: str, conf: tuple[str, ...], as_json: bool | None
) -> int:  # fmt: skip
    """Check Java, the packages here and on a worker, and the connection from a worker to the broker.

    The exit code is 1 if something needs fixing.
    """
    from jmsaio.spark.jobs.check import Finding, check_driver, check_session
    from jmsaio.spark.options.parse import Use, parse_options
    from jmsaio.spark.session import open_session

    source, chosen = read_source(url, settings), pairs("--conf", conf)
    output = make_output(as_json)
    parse_options(source, Use.WRITE)  # raises for invalid options, and for secrets in their texts
    findings = check_driver()
    if not any(each.advice for each in findings):
        try:
            with open_session(master, chosen) as session:
                findings += check_session(session, source)
        except Exception as error:  # anything that prevents Spark from starting
            advice = f"Spark did not start at {master}: {reason_of(error)}; see the lines above, and --master"
            findings.append(Finding("session", "none", advice))
    wrong = [each for each in findings if each.advice]
    if not output.as_json:
        for each in findings:
            output.line(printable(f"{'FAIL' if each.advice else 'ok':4}  {each.what}: {each.advice or each.found}"))
    write_summary(output, {
        "job": "check",
        "ok": not wrong,
        "findings": [{"what": each.what, "found": each.found, "advice": each.advice} for each in findings],
    }, f"{len(wrong)} of {len(findings)} need something" if wrong else "all is there")  # fmt: skip
    return ERROR if wrong else OK
