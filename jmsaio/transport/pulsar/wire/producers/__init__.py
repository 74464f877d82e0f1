"""Senders, and their producers."""
