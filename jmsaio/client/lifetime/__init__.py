"""Scope and lifetime of objects: their event loop, how they are opened, and the time limits of calls."""
