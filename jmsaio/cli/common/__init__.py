"""Shared by the commands: connection options, output, exit codes."""
