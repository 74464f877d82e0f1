"""What the commands share: options of the connection, output, exit codes."""
