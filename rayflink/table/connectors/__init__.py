"""Tables of the world outside, by the option `connector`."""
