"""Doors to other libraries, one each, imported only by whoever asks for them. May import optimizer and below."""
