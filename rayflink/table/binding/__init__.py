"""From trees of text to typed ones: names become columns and functions, and everything gets a type."""
