"""Checks the built site without a network: every link leads to a page and a heading that are there.

    python ci/site/links.py FOLDER

Scripts, styles and pictures must be files of the site, so that it is whole without a network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Element -> the attribute that names what a browser loads for it."""


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if tag in LOADED and LOADED[tag] in found:
            self.loads.add(found[LOADED[tag]])


def anchors_of(page: Page | None) -> set[str]:
    """Where links may lead on a page; nowhere in what is no page."""
    return page.anchors if page else set()


def faults(folder: Path) -> list[str]:
    """What is wrong with the site in a folder, a line each."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder}: there is no page"]
    for path, page in pages.items():
        place = path.relative_to(folder.resolve())
        for target in sorted(page.links | page.loads):
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if target in page.loads:
                    found.append(f"{place}: loads {target}, which is not of the site")
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not aim.exists():
                found.append(f"{place}: {target} leads to no file")
            elif parts.fragment and unquote(parts.fragment) not in anchors_of(pages.get(aim)):
                found.append(f"{place}: {target} leads to no heading")
    return found


def main() -> int:
    wrong = faults(Path(sys.argv[1]))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
