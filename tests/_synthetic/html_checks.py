"""What a page must hold to be read by everyone, checked with the standard library's parser alone."""

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"br", "img", "link", "meta"}
WORDS = {"a", "body", "caption", "code", "figcaption", "figure", "h1", "h2", "h3", "head", "header", "html", "li"}
WORDS |= {"main", "nav", "p", "span", "strong", "style", "table", "tbody", "td", "th", "thead", "title", "tr", "ul"}
INSIDE = {  # a tag, and the only ones that it may stand directly in
    "caption": {"table"},
    "figcaption": {"figure"},
    "li": {"ol", "ul"},
    "tbody": {"table"},
    "td": {"tr"},
    "th": {"tr"},
    "thead": {"table"},
    "tr": {"tbody", "thead"},
}
CLOSES_P = {"figure", "h1", "h2", "h3", "li", "ol", "p", "table", "ul"}


@dataclass
class Page(HTMLParser):
    """`faults` are sentences; `text` is what is said, without markup."""

    faults: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in WORDS | VOID:
            self.faults.append(f"<{tag}> is not expected")
        if tag in INSIDE and self._open[-1] not in INSIDE[tag]:
            self.faults.append(f"<{tag}> stands in <{self._open[-1]}>")
        if tag in CLOSES_P and "p" in self._open:
            self.faults.append(f"<{tag}> stands in <p>")
        if len({name for name, _ in attrs}) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def all(self, *names: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name in names]


def page(text: str) -> Page:
    """The page, with every fault of it."""
    found = Page()
    found.feed(text)
    found.close()
    found.faults += [f"<{tag}> is not closed" for tag in found._open]
    found.faults += list(_structure(found))
    if not text.startswith("<!DOCTYPE html>\n"):
        found.faults.append("the doctype does not come first")
    return found


def _structure(found: Page) -> list[str]:
    """Language, headings in order, alternatives, scopes, links that lead somewhere, nothing from the network."""
    ids = Counter(attributes["id"] for _, attributes in found.tags if "id" in attributes)
    faults = [f"the id {name} stands twice" for name, count in ids.items() if count > 1]
    faults += ["no language is set"] * (found.all("html")[0].get("lang") != "en")
    levels = [int(tag[1]) for tag, _ in found.tags if tag in {"h1", "h2", "h3"}]
    faults += ["there is not one h1, first"] * (levels[:1] != [1] or levels.count(1) != 1)
    faults += [f"h{after} follows h{before}" for before, after in pairwise(levels) if after > before + 1]
    faults += ["an image has no alternative"] * any(len(image.get("alt", "")) < 20 for image in found.all("img"))
    faults += ["a header cell has no scope"] * any(cell.get("scope") not in {"col", "row"} for cell in found.all("th"))
    faults += ["a table has no caption"] * (len(found.all("caption")) != len(found.all("table")))
    targets = [link["href"] for link in found.all("a")]
    faults += [f"{name} leads nowhere" for name in targets if name.startswith("#") and name[1:] not in ids]
    addresses = [*targets, *(image["src"] for image in found.all("img"))]
    faults += [f"{name} is on a network" for name in addresses if "//" in name.partition(",")[0]]
    return faults
