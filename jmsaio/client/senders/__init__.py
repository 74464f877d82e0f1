"""From a producer to the transport's senders: a message's settings, the pool of senders, pending sends, receipts."""
