"""The version of the package, in one place: builds and signatures read it here."""

__version__ = "0.1.1"
