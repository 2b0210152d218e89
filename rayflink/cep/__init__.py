"""Complex event processing."""
