"""Lays out what Sphinx reads: pages of the guide, pages of this folder, the reference, the gallery.

    python ci/site/sources.py SOURCE EXTRA [--small]

EXTRA gets what goes into the site as it is: the reports of the gallery.

A link of a page to a file that is no page of the site becomes the name of that file. Drawings by
Mermaid stay text: what draws them in a browser comes from a network.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
GUIDE = TOP / "clfuse" / "guide"
KEPT = TOP / "build" / "gallery"
OF_SITE = ("index.md", "cite.md")
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")
README = {
    "#how-fast": "speed.md",
    "#choosing-a-device": "settings.md",
    "#how-it-works": "contributing/architecture.md",
}
"""Headings of the README that pages link to -> the page of the site that says it at length."""


def relinked(text: str, page: Path, target: Path, site: Path) -> str:
    """The text of a page with its links as they are on the site.

    Parameters
    ----------
    text : str
    page : Path
        Where the text was written.
    target : Path
        Where it goes, below the site's top.
    site : Path
        The site's top.
    """

    def link(match: re.Match[str]) -> str:
        mark, words, path, heading = match.groups()
        place = (page.parent / path).resolve()
        if place.is_relative_to(GUIDE) and (place.suffix == ".md" or place.is_dir()):
            inside = place.relative_to(GUIDE) if place.is_file() else Path("index.md")
            return f"[{words}]({os.path.relpath(inside, target.parent)}{heading or ''})"
        if place == TOP / "README.md" and heading in README:
            return f"[{words}]({os.path.relpath(README[heading], target.parent)})"
        if mark and place.is_file():
            return f"![{words}]({os.path.relpath(place, (site / target).parent)})"
        if not place.exists():
            return match[0]  # Sphinx warns of it
        name = f"`{place.relative_to(TOP)}`"
        return name if words.strip("`") == name.strip("`") else f"{words} ({name})"

    return LINK.sub(link, text.replace("```mermaid", "```text"))


def lay_out(folder: Path) -> None:
    """Write the pages of the guide and of this folder."""
    for page in sorted(GUIDE.rglob("*.md")):
        inside = page.relative_to(GUIDE)
        target = folder / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        text = relinked(page.read_text(encoding="utf-8"), page, inside, folder)
        target.write_text(text, encoding="utf-8")
    changes = TOP / "CHANGELOG.md"
    text = relinked(changes.read_text(encoding="utf-8"), changes, Path("changelog.md"), folder)
    (folder / "changelog.md").write_text(text, encoding="utf-8")
    for name in OF_SITE:
        shutil.copyfile(HERE / name, folder / name)
    shutil.copyfile(HERE / "CITATION.cff", folder / "CITATION.cff")


def main() -> None:
    reader = argparse.ArgumentParser(description="Lay out the sources of the site.")
    reader.add_argument("source", type=Path)
    reader.add_argument("extra", type=Path)
    reader.add_argument("--small", action="store_true", help="small programs in the gallery")
    options = reader.parse_args()
    source, extra = options.source.resolve(), options.extra.resolve()
    lay_out(source)
    extra.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / "CITATION.cff", extra / "CITATION.cff")
    sys.path.insert(0, str(HERE))
    import gallery
    import reference

    reference.write(source / "reference")
    gallery.write(source / "gallery", extra, KEPT, options.small)


if __name__ == "__main__":
    main()
