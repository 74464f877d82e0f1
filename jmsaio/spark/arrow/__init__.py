"""Rows as Arrow record batches, for reading and writing."""
