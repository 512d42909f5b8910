"""Opening files of any kind, decompressed, and writing them whole or not at all."""
