"""Files of any kind: opened, decompressed, and written whole or not at all."""
