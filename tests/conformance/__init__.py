"""The Jakarta Messaging TCK's list, told anew: every method has a test here, or a reason in `exclusions`.

``python -m tests.conformance`` runs them on the embedded broker and on a real Pulsar broker and prints the score.
"""
