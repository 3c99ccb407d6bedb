#!/usr/bin/env python3
"""Checks every link and picture of a folder of HTML pages: its file is there, and the place in it that it names.

    apps/docs/check_links.py build-docs/site

Addresses of the web are not visited. Exits with 1 after naming each link that leads nowhere.
"""
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


# Doxygen 1.9 links to the list of a class's nested classes, also where all of them are private and no list is made.
DOXYGENS_OWN = "nested-classes"


class Document(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)


def broken_links(folder):
    documents = {path: Document(path.read_text(encoding="utf-8", errors="replace")) for path in folder.rglob("*.html")}
    for path, document in sorted(documents.items()):
        for link in document.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(folder)}: no {link}"
            elif place and place != DOXYGENS_OWN and target in documents and place not in documents[target].places:
                yield f"{path.relative_to(folder)}: no place {link}"
    if not documents:
        yield f"{folder}: no pages"


def main():
    folder = Path(sys.argv[1]).resolve()
    broken = list(broken_links(folder))
    for each in broken:
        print(each)
    print(f"docs: {len(broken)} broken links in {len(list(folder.rglob('*.html')))} pages")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
