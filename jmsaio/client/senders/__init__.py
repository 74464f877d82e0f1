"""From a producer to the transport's senders: settings of a message, the pool of senders, receipts."""
