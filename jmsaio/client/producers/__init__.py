"""What producers consist of: targets, stamps, and the fast path of a send."""
