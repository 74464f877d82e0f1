"""The rows of the layer."""

from __future__ import annotations

from benchmarks.layer.peer import URL
from jmsaio.bench.scenario import Block, Scenario

_ROWS = "benchmarks.layer.rows"


def layer_scenarios() -> list[Scenario]:
    """Rows that need no broker: jmsaio over a transport that costs nothing, and the least that can be done by hand."""
    return [
        Scenario("layer.bare-send", "bare loop: bytes and futures", Block.LAYER, f"{_ROWS}:bare_send", URL),
        Scenario("layer.send", "jmsaio send_async", Block.LAYER, f"{_ROWS}:send", URL,
                 references=("layer.bare-send",)),
        Scenario("layer.workers", "jmsaio, workers await send", Block.LAYER, f"{_ROWS}:workers", URL,
                 references=("layer.bare-send",)),
        Scenario("layer.bare-receive", "bare loop: entries split, parts read", Block.LAYER, f"{_ROWS}:bare_receive",
                 URL),
        Scenario("layer.receive", "jmsaio receive, AUTO", Block.LAYER, f"{_ROWS}:receive", URL,
                 references=("layer.bare-receive",)),
        Scenario("layer.listener", "jmsaio listener, AUTO", Block.LAYER, f"{_ROWS}:listener", URL,
                 references=("layer.bare-receive",)),
    ]  # fmt: skip
