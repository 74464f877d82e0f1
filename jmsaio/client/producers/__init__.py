"""What producers consist of: settings, targets, stamps, and the fast path of a send."""
