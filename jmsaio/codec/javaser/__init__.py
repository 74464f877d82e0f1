"""Bodies of map and object messages: Java's serialization stream in the few layouts that Starlight uses.

Only null, String, byte[] and the eight boxes of java.lang are written and read. Nothing else is ever created from a
stream: an object of another class is a ``JavaObject`` with the stream's bytes, and inside a map an error. There is no
recursion, and lengths are checked against the remaining bytes before memory is allocated.
"""

from jmsaio.codec.javaser.reader import read_map, read_object
from jmsaio.codec.javaser.writer import write_map, write_object

__all__ = ["read_map", "read_object", "write_map", "write_object"]
