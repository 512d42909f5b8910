"""Defines the version of goodgain, and prints the versions of the packages that goodgain uses."""

__version__ = "0.4.0"


def show_versions() -> None:
    """Print the versions of goodgain, Python and the packages that goodgain uses, for bug reports.

    Optional packages that are not installed are left out.

    >>> import goodgain as gg
    >>> gg.show_versions()  # doctest: +ELLIPSIS
    goodgain ...
    Python ...
    """
    import contextlib
    import platform
    import re
    from importlib import metadata

    print(f"goodgain {__version__}")
    print(f"Python {platform.python_version()} on {platform.platform()}")
    used = [text for text in metadata.requires("goodgain") or [] if not re.search("extra == .(dev|docs).", text)]
    for name in sorted({re.split(r"[\s<>=!~\[;]", text, maxsplit=1)[0] for text in used} - {"goodgain"}):
        with contextlib.suppress(metadata.PackageNotFoundError):
            print(f"{name} {metadata.version(name)}")
