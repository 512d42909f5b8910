"""What PyPI shows of a release: README with links that work there, and the project's addresses.

A hook of the build. The release workflow sets GOODGAIN_REPOSITORY to the address of the repository; without it, README stays as
it is and the package names no address.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link of Markdown to a file of the checkout, with its heading; `!` before it: a picture.
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")


class ReleaseMetadata(MetadataHookInterface):
    """Sets `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata of the project in place."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if address := os.environ.get("GOODGAIN_REPOSITORY", "").rstrip("/"):
            tag = f"v{metadata['version']}"
            text = _LINK.sub(
                lambda link: f"{link[1]}[{link[2]}]({address}/{'raw' if link[1] else 'blob'}/{tag}/{link[3]})", text
            )
            metadata["urls"] = {
                "Repository": address,
                "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
