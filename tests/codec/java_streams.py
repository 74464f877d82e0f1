"""Streams as Java writes them, in hex digits."""

from __future__ import annotations

INTEGER = "72 0011 6a6176612e6c616e672e496e7465676572 12e2a0a4f7818738 02 0001 49 0005 76616c7565 78"
NUMBER = "72 0010 6a6176612e6c616e672e4e756d626572 86ac951d0b94e08b 02 0000 78 70"
BOOLEAN = "72 0011 6a6176612e6c616e672e426f6f6c65616e cd207280d59cfaee 02 0001 5a 0005 76616c7565 78 70"
BYTES = "72 0002 5b42 acf317f8060854e0 02 0000 78 70"
LIST = "72 0013 6a6176612e7574696c2e41727261794c697374 7881d21d99c7619d 03 0001 49 0004 73697a65 78 70"


def stream(text: str) -> bytes:
    """A stream from hex digits."""
    return bytes.fromhex("aced0005" + text)
