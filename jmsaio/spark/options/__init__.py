"""Parsing and checking of the user's options. Pure."""
