"""One file a trace format. A file in this folder is a format; its name is the format's name."""
