"""What a user asks for, read and checked. Pure."""
