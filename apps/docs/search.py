"""The index that search.js reads: every section of every page, every key of a config, every name of the API."""
import html
import json
import re
import xml.etree.ElementTree as xml

KINDS = {"class", "struct", "function", "enumeration", "typedef", "variable"}


def plain(fragment):
    """The text of HTML, on one line."""
    text = re.sub(r"<(script|style).*?</\1>", " ", fragment, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


class Index:
    def __init__(self, tags):
        self.entries = []  # [title, page or kind, address, text]
        self.add_names(tags)

    def add_page(self, page, body):
        """One entry a section, and one a row of a table that has an address."""
        parts = re.split(r'(?=<h[1-6] id=")', body)
        for part in parts:
            head = re.match(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>', part, re.S)
            title = plain(head.group(2)) if head else page.title
            address = page.target + ("#" + head.group(1) if head and not part.startswith("<h1") else "")
            text = plain(part[head.end():] if head else part)
            if text or head:
                self.entries.append([title, page.title, address, text])
        for key, row in re.findall(r'<tr id="key-([^"]+)">(.*?)</tr>', body, re.S):
            self.entries.append([key, page.title, f"{page.target}#key-{key}", plain(row)])

    def add_names(self, tags):
        for compound in xml.parse(tags).getroot().findall("compound"):
            kind, name = compound.get("kind"), compound.findtext("name")
            if kind in KINDS:
                self.entries.append([name.removeprefix("tessera::"), kind, "api/" + compound.findtext("filename"), ""])
            seen = set()
            for member in compound.findall("member"):
                own = member.findtext("name")
                if kind not in ("class", "struct", "namespace") or member.get("kind") not in KINDS or own in seen:
                    continue
                seen.add(own)
                full = own if kind == "namespace" else f"{name.removeprefix('tessera::')}::{own}"
                address = f"api/{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                self.entries.append([full, member.get("kind"), address, ""])

    def write(self, path):
        entries = json.dumps(self.entries, ensure_ascii=False, separators=(",", ":"))
        path.write_text(f"'use strict';\nconst searchIndex = {entries};\n", encoding="utf-8")
