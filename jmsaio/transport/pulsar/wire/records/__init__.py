"""Received entries and their records."""
