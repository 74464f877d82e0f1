"""Options of a task for reading a range, derived from the data source's options."""

from __future__ import annotations

from typing import Self

import attrs

from jmsaio.config import Configuration, ConsumerConfig
from jmsaio.selector import Selector
from jmsaio.spark.options.parse import OnDecodeError, SourceOptions


@attrs.frozen(kw_only=True)
class ReadOptions:
    """Options for reading a range.

    Attributes:
        selector: selector that messages must match; None: all match.
        namespace: ``tenant/namespace`` left out of the names of reply destinations.
        since: publish time in ms since the epoch of the first messages to read, or None.
        before: publish time from which messages are left out, or None.
        check_body: see ``to_row``.
        fail_on_decode_error: raise an error for a message that can't be decoded completely; if False, return a row with
            the reason.
        fail_on_data_loss: raise an error for messages that no longer exist; if False, warn.
        data_loss_folder: folder for a file per loss that is not an error; or None.
        read_timeout: seconds without an expected message before reading fails.
        outage_timeout: maximum seconds to wait for an unreachable broker.
        batch_rows: maximum rows per batch.
        batch_bytes: bytes of messages that end a batch; also the approximate maximum to prefetch.
        config: configuration of the reader; ``receiver_queue_size`` is the maximum to prefetch.
        close_timeout: seconds for closing a reader.
    """

    selector: Selector | None = None
    namespace: str = "public/default"
    since: int | None = None
    before: int | None = None
    check_body: bool = True
    fail_on_decode_error: bool = False
    fail_on_data_loss: bool = True
    data_loss_folder: str | None = None
    read_timeout: float = 60.0
    outage_timeout: float = 300.0
    batch_rows: int = 4096
    batch_bytes: int = 16 * 1024 * 1024
    config: ConsumerConfig = attrs.field(factory=ConsumerConfig)
    close_timeout: float = 10.0

    @classmethod
    def by(cls, options: SourceOptions, configuration: Configuration) -> Self:
        """Return the read options for a reader's options, on a connection with this configuration."""
        fails = options.on_decode_error is OnDecodeError.FAIL
        return cls(
            selector=None if options.selector is None else Selector(options.selector),
            namespace=configuration.system_namespace,
            since=options.starting_time,
            before=options.ending_time,
            check_body=fails or any(column.name == "decode_error" for column in options.columns),
            fail_on_decode_error=fails,
            fail_on_data_loss=options.fail_on_data_loss,
            data_loss_folder=options.data_loss_folder,
            read_timeout=options.read_timeout,
            outage_timeout=options.outage_timeout,
            batch_rows=options.batch_rows,
            batch_bytes=options.batch_bytes,
            config=attrs.evolve(configuration.consumer, receiver_queue_size=options.receiver_queue),
            close_timeout=configuration.close_timeout,
        )
