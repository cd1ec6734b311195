"""Programs that are run in this process and reported, and pages as a reader finds them."""

from __future__ import annotations

import gc
import textwrap
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from clfuse.config import override
from clfuse.tools.report.collector import Collector
from clfuse.tools.report.summary import Circumstances, Summary, summarized

VOID = frozenset(["meta", "br", "link", "img", "input", "line"])


def reported(
    text: str, folder: Path, *, host_us: int = 0, prepare: Callable[[Collector], None] | None = None
) -> Summary:
    """The summary of a program that is run here; kernels compute all of it, and are built at
    once."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    script = str(path)
    collector = Collector(lambda file: file == script)
    code = compile(path.read_text(encoding="utf-8"), script, "exec")
    gc.collect()  # the memory of programs before this one
    with override(host_us=host_us, build_after_ms=0, background="off"):
        collector.start()
        if prepare is not None:
            prepare(collector)
        try:
            exec(code, {"__name__": "__main__", "__file__": script})
        finally:
            collector.stop()
    return summarized(collector, Circumstances("program.py", script, copy_rate=1e10))


class Page(HTMLParser):
    """A page's elements, with attributes and text, in order; tags that are closed in another order
    than they were opened are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, [tag for tag, _, _ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = tag, dict(attrs), []
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open:
            texts.append(data)

    def find(self, tag: str, **wanted: str) -> list[tuple[dict[str, str | None], str]]:
        """Attributes and text of the elements of a tag that have these attributes."""
        return [
            (attributes, "".join(texts))
            for found, attributes, texts in self.elements
            if found == tag and all(attributes.get(key) == value for key, value in wanted.items())
        ]
