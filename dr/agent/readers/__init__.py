"""Readers: the bytes of one file format -> Parsed(title, blocks). Each imports its library only when it is called."""
