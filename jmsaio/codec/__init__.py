"""JMS messages to Pulsar records and back, byte for byte as in the Java client. Pure: no clock, no I/O.

``encode`` creates the record of a message, ``decode_with`` the message of a record, and ``stamp_sent`` writes the
headers of a send to the sender's message. ``jmsaio.codec.headers`` reads single headers of a record without decoding
it.
"""

from jmsaio.codec.decode import RecordSource, decode_raw, decode_with
from jmsaio.codec.encode import Stamp, encode, stamp_sent, with_sticky_key

__all__ = ["RecordSource", "Stamp", "decode_raw", "decode_with", "encode", "stamp_sent", "with_sticky_key"]
