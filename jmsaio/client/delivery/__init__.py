"""From a transport's receiver to the application: inboxes, filters, listeners, acknowledgement, redelivery."""
