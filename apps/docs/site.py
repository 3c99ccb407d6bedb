#!/usr/bin/env python3
"""Builds the documentation as one folder of static pages: the guide, every README, and the reference of the API.

    apps/docs/site.py --program build/tessera --api build-docs/api --out build-docs/site

Pages are Markdown (rendered by cmark-gfm, as GitHub does). pages/contents.json names those of the guide, in their order;
every other .md of the repository is a page too, so that links between them hold. A line `<!-- run: ... -->` becomes what
the program prints, `<!-- help -->` the help of all subcommands: neither can differ from the program.
"""
import argparse
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import links
import search

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "apps" / "docs"


class Page:
    def __init__(self, source):
        self.source = source  # from the repository's root, "apps/recipes/KEYS.md"
        name = Path(source)
        guide = name.parts[:3] == ("apps", "docs", "pages")
        self.target = (name.stem if guide else "-".join(name.with_suffix("").parts)) + ".html"
        if source == "README.md":
            self.target = "README.html"
        self.text = (ROOT / source).read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", self.text, re.M)
        if not title:
            sys.exit(f"docs: {source} has no title, a line '# ...'")
        self.title = re.sub(r"[`*]", "", title.group(1))


def tracked(pattern):
    """Files of the repository; without git, of a folder as an archive unpacks."""
    command = ["git", "ls-files", "-co", "--exclude-standard", pattern]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return sorted(name for name in listed.stdout.split("\n") if name and (ROOT / name).is_file())
    found = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob(pattern))
    return sorted(name for name in found if not name.startswith(("build", "runs", ".")))


def output_of(program, arguments):
    done = subprocess.run([program] + arguments, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"docs: tessera {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


def help_of_all(program):
    """The help of each subcommand and of those nested in it, each under a heading of its own."""
    def names(text):
        part = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
        return re.findall(r"^  (\w[\w-]*) ", part.group(1), re.M) if part else []

    def section(path, level):
        text = output_of(program, path + ["--help"])
        head = f"\n{'#' * level} tessera {' '.join(path)}\n\n```text\n{text.strip()}\n```\n" if path else ""
        return head + "".join(section(path + [name], min(level + 1, 3)) for name in names(text))
    return section([], 1)


def with_output(text, program):
    """Replaces the lines that ask for the program's output."""
    def run(match):
        arguments = shlex.split(match.group(2))
        if arguments[:1] != ["tessera"]:
            sys.exit(f"docs: '{match.group(0)}' runs something else than tessera")
        output = output_of(program, arguments[1:]).rstrip()
        return f"```text\n{output}\n```" if match.group(1) == "text" else output
    text = re.sub(r"^<!-- help -->$", lambda _: help_of_all(program), text, flags=re.M)
    return re.sub(r"^<!-- (run|text): (.+) -->$", run, text, flags=re.M)


def rendered(text):
    command = ["cmark-gfm", "--unsafe", "-e", "table", "-e", "strikethrough", "-e", "autolink"]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def with_anchors(body):
    """Gives each heading the id that GitHub gives it, and "key-NAME" to a row that begins with a name."""
    seen = {}

    def heading(match):
        name = links.slug(html.unescape(re.sub(r"<[^>]+>", "", match.group(2))))
        count = seen[name] = seen.get(name, -1) + 1
        anchor = f"{name}-{count}" if count else name
        return f'<h{match.group(1)} id="{anchor}">{match.group(2)}</h{match.group(1)}>'
    body = re.sub(r"<h([1-6])>(.*?)</h\1>", heading, body, flags=re.S)
    body = re.sub(r"<table>.*?</table>", lambda m: f'<div class="scroll">{m.group(0)}</div>', body, flags=re.S)
    return re.sub(r"<tr>\n<td><code>([\w.\[\]]+)</code></td>", r'<tr id="key-\1">' "\n" r"<td><code>\1</code></td>", body)


def navigation(contents, pages, current):
    parts = []
    for group in contents:
        items = []
        for source in group["pages"]:
            page = pages[source]
            here = ' aria-current="page"' if page is current else ""
            items.append(f'<li><a href="{page.target}"{here}>{html.escape(page.title)}</a></li>')
        if group.get("api"):
            items.append('<li><a href="api/index.html">Reference of the C++ API</a></li>')
        opened = " open" if not group.get("folded") or current.source in group["pages"] else ""
        parts.append(f'<details{opened}><summary>{group["title"]}</summary><ul>{"".join(items)}</ul></details>')
    return "\n".join(parts)


def neighbours(contents, pages, current):
    """Links to the page before and after this one, in the order of the contents."""
    order = [source for group in contents for source in group["pages"]]
    at = order.index(current.source)
    parts = []
    for step, arrow, name in ((-1, "← {}", "prev"), (1, "{} →", "next")):
        if 0 <= at + step < len(order):
            page = pages[order[at + step]]
            text = arrow.format(html.escape(page.title))
            parts.append(f'<a rel="{name}" href="{page.target}">{text}</a>')
    return "".join(parts)


def draw(out):
    """Draws the pictures of pages/*.dot."""
    for source in sorted((DOCS / "pages").glob("*.dot")):
        subprocess.run(["dot", "-Tsvg", source, "-o", out / (source.stem + ".svg")], check=True)


def read_contents(sources):
    contents = json.loads((DOCS / "pages" / "contents.json").read_text(encoding="utf-8"))
    named = {source for group in contents for source in group["pages"]}
    missing = sorted(named - set(sources))
    if missing:
        sys.exit(f"docs: pages/contents.json names {', '.join(missing)}, which there is not")
    rest = [s for s in sources if s not in named]
    forgotten = [s for s in rest if s.startswith("apps/docs/pages/")]
    if forgotten:
        sys.exit(f"docs: pages/contents.json does not name {', '.join(forgotten)}")
    contents.append({"title": "The code, room by room", "folded": True, "pages": rest})
    return contents


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "tessera")
    parser.add_argument("--api", type=Path, required=True, help="Doxygen's folder, with html/ and tags.xml")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    program, out = str(options.program.resolve()), options.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    shutil.copytree(options.api / "html", out / "api")
    for name in ("site.css", "search.js"):
        shutil.copy(DOCS / name, out)
    draw(out)

    sources = tracked("*.md")
    contents = read_contents(sources)
    pages = {source: Page(source) for source in sources}
    linker = links.Linker(ROOT, out, pages, options.api / "tags.xml")
    template = (DOCS / "template.html").read_text(encoding="utf-8")
    index = search.Index(options.api / "tags.xml")
    for page in pages.values():
        body = with_anchors(rendered(with_output(page.text, program)))
        body = linker.rewritten(body, page.source)
        index.add_page(page, body)
        values = {"title": html.escape(page.title), "body": body, "source": page.source,
                  "navigation": navigation(contents, pages, page), "neighbours": neighbours(contents, pages, page)}
        text = re.sub(r"\{\{(\w+)\}\}", lambda m: values[m.group(1)], template)
        (out / page.target).write_text(text, encoding="utf-8")
    linker.write_sources(template)
    index.write(out / "search-index.js")
    print(f"docs: {len(pages)} pages: {os.path.relpath(out / 'index.html')}")


if __name__ == "__main__":
    main()
