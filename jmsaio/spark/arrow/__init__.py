"""Rows as Arrow record batches, to read and to write."""
