"""What tests of pages share: a reader that sees a page as a browser would."""

from html.parser import HTMLParser

import pytest

ADDRESSES = ("src", "href", "srcset", "action", "data", "poster", "xlink:href")


class Page(HTMLParser):
    """The elements of a page, and its text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.pieces, self.hidden = [], [], [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.hidden:
            self.pieces.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.pieces).split())

    @property
    def addresses(self):
        return [value for _, name, value in self.attributes if name in ADDRESSES]

    @property
    def handlers(self):
        return [name for _, name, _ in self.attributes if name.startswith("on")]


@pytest.fixture(scope="session")
def parsed():
    """Return the reader."""
    return Page
