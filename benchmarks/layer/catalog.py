"""The rows of the layer."""

from __future__ import annotations

from benchmarks.layer.peer import MAPS_URL, URL
from benchmarks.scenario import Block, Scenario

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
        Scenario("layer.bare-send-maps", "bare loop: maps and futures", Block.LAYER, f"{_ROWS}:bare_send_maps",
                 MAPS_URL),
        Scenario("layer.send-maps", "jmsaio send_async, maps", Block.LAYER, f"{_ROWS}:send", MAPS_URL,
                 references=("layer.bare-send-maps",)),
        Scenario("layer.bare-receive-maps", "bare loop: maps read", Block.LAYER, f"{_ROWS}:bare_receive_maps",
                 MAPS_URL),
        Scenario("layer.receive-maps", "jmsaio receive, AUTO, maps", Block.LAYER, f"{_ROWS}:receive", MAPS_URL,
                 references=("layer.bare-receive-maps",)),
    ]  # fmt: skip
