"""How a range is read."""

from __future__ import annotations

from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.planning.read_options import ReadOptions


def test_options_say_how_a_range_is_read() -> None:
    given = {"url": "pulsar://h:1", "topic": "t", "selector": "a = 1", "onDecodeError": "fail", "batchRows": "7"}
    options = parse_options({**given, "consumerConfig.receiverQueueSize": "20", "columns": "text"}, Use.READ)
    found = ReadOptions.by(options, options.configuration())
    assert found.selector is not None
    assert (found.selector.text, found.batch_rows, found.config.receiver_queue_size) == ("a = 1", 7, 20)
    assert (found.fail_on_decode_error, found.check_body, found.fail_on_data_loss) == (True, True, True)
    short = parse_options({**given, "onDecodeError": "row", "columns": "text"}, Use.READ)
    assert not ReadOptions.by(short, short.configuration()).check_body
