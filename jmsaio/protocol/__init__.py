"""Pulsar's binary protocol without a socket: bytes in, values out, and the reverse.

Nothing here waits, reads a clock or draws a random number. Bytes that are wrong raise ProtocolError.
"""
