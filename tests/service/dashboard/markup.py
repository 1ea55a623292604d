"""Reading a page: its text, its links, and whether its markup is whole."""

from html.parser import HTMLParser

VOID = frozenset(("meta", "link", "input", "br", "wbr", "img"))
INLINE = frozenset(("a", "bdi", "code", "span", "wbr", "time", "abbr"))


class Reader(HTMLParser):
    """Collects text and links; `problems` says where elements are not closed in order, or carry script or style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.problems: list[str] = []
        self._text: list[str] = []
        self.feed(page)
        self.close()
        if self.open:
            self.problems.append(f"left open: {self.open}")

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join("".join(self._text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in INLINE:
            self._text.append(" ")
        for name, value in attrs:
            if name == "href" and tag == "a":
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            if name == "style" or name.startswith("on"):
                self.problems.append(f"{tag} has {name}")
        if tag == "script" and not dict(attrs).get("src"):
            self.problems.append("a script inside the page")
        if tag == "style":
            self.problems.append("a style inside the page")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        self._text.append(data)
