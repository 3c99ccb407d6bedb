"""Links between the pages of the documentation: those of the repository's files become those of the site."""
import html
import os
import re
import shutil
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

PICTURES = {".png", ".jpg", ".svg"}


def slug(heading):
    """The id that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Linker:
    def __init__(self, root, out, pages, tags):
        self.root, self.out, self.pages = root, out, pages
        self.shown = {}  # source files that pages link to, and their page
        self.headers = {}  # of the API: "tessera/ops/attention.h" -> its page
        for file in xml.parse(tags).getroot().findall("compound[@kind='file']"):
            path = (file.findtext("path") or "") + file.findtext("name")
            self.headers[path] = "api/" + file.findtext("filename")

    def rewritten(self, body, source):
        """The page's HTML, whose links and pictures lead to files of the site."""
        folder = Path(source).parent

        def link(match):
            name, target = match.group(1), html.unescape(match.group(2))
            return f'{name}="{html.escape(self.target(folder, target, source))}"'
        return re.sub(r'\b(href|src)="([^"]*)"', link, body)

    def target(self, folder, link, source):
        if link.startswith("#") or re.match(r"[a-z]+:", link):
            return link
        path, _, anchor = link.partition("#")
        file = os.path.normpath(folder / path)
        anchor = "#" + anchor if anchor else ""
        if file.endswith(".dot"):
            return Path(file).stem + ".svg"  # drawn by dot
        full = self.root / file
        if full.is_dir():
            file = os.path.normpath(Path(file) / "README.md")
        if file in self.pages:
            return self.pages[file].target + anchor
        if full.suffix in PICTURES and full.is_file():
            shutil.copy(full, self.out / self.flat(file))
            return self.flat(file)
        if not full.is_file():
            sys.exit(f"docs: {source} links to {link}, which there is not")
        for installed, page in self.headers.items():
            if file.endswith(installed.removeprefix("tessera/")):
                return page
        self.shown[file] = "source-" + self.flat(file) + ".html"
        return self.shown[file]

    @staticmethod
    def flat(file):
        return file.replace("/", "-")

    def write_sources(self, template):
        """Pages of the source files that others link to, as they are."""
        for file, page in self.shown.items():
            text = html.escape((self.root / file).read_text(encoding="utf-8", errors="replace"))
            values = {"title": file, "body": f"<h1>{file}</h1>\n<pre><code>{text}</code></pre>", "source": file,
                      "navigation": '<p><a href="index.html">All pages</a></p>', "neighbours": ""}
            filled = re.sub(r"\{\{(\w+)\}\}", lambda m, v=values: v[m.group(1)], template)
            (self.out / page).write_text(filled, encoding="utf-8")
