"""The selector language of the Java broker plugin, with the answers that the plugin gives (ActiveMQ's engine)."""
