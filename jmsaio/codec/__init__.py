"""JMS message to Pulsar record and back, byte-compatible with Starlight for JMS."""

from jmsaio.codec.decode import decode
from jmsaio.codec.encode import encode
from jmsaio.codec.stamp import Stamp, stamp_sent

__all__ = ["Stamp", "decode", "encode", "stamp_sent"]
