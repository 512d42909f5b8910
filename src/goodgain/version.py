"""The version of the package, in one place: builds and signatures read it here."""

from __future__ import annotations

__version__ = "0.2.0"


def show_versions() -> None:
    """Print the versions of goodgain, Python and the packages that goodgain uses, for reports of bugs.

    Optional packages that are not installed are left out.

    >>> import goodgain as gg
    >>> gg.show_versions()  # doctest: +ELLIPSIS
    goodgain ...
    Python ...
    """
    import platform
    import re
    from importlib import metadata

    print(f"goodgain {__version__}")
    print(f"Python {platform.python_version()} on {platform.platform()}")
    for requirement in metadata.requires("goodgain") or []:
        name, _, extra = re.sub(r"[\s<>=!~\[;]", " ", requirement, count=1).partition(" ")
        if name == "goodgain" or re.search(r"extra == ['\"](dev|docs)['\"]", extra):
            continue
        try:
            print(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            if "extra ==" not in extra:
                print(f"{name} is not installed, and goodgain needs it")
