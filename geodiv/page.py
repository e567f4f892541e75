"""One HTML page that needs nothing else: texts escaped, styles and scripts inside, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from .atomic import replacing
from .targets import check_ending

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def check_page(path: str | Path | None) -> None:
    """Raise a UsageError unless a page's name, if there is one, ends in .html or .htm."""
    check_ending("a page", path, (".html", ".htm"))


def text(value: Any) -> str:
    """A value as text that is safe between tags and in quoted attributes; control characters become U+FFFD.

    Examples
    --------
    >>> text('<b onclick="x">')
    '&lt;b onclick=&quot;x&quot;&gt;'
    """
    return html.escape(_CONTROL.sub("\ufffd", str(value)), quote=True)


def script_json(value: Any) -> str:
    """Plain values as JSON that is safe inside a ``<script>``: no tag can start and no line can end in it.

    Examples
    --------
    >>> print(script_json(["</script>"]))
    ["\\u003c/script\\u003e"]
    """
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[\ud800-\udfff]", "\ufffd", data.translate(_IN_SCRIPT))


def asset(name: str) -> str:
    """The text of a file of geodiv's own that pages carry."""
    return resources.files("geodiv").joinpath("assets", name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Page:
    """A page, before it is text.

    Parameters
    ----------
    title : str
        Not escaped yet.
    body : str
        HTML; whatever was put into it is escaped already.
    styles, scripts : sequence of str
        CSS and JavaScript that the page carries; each is named in the content security policy by its hash.
    data : mapping of str to plain values
        JSON blocks by their element id; data, never run.
    images : sequence of str
        Sources that images may come from: ``data:``, or the host of map tiles.
    notices : sequence of str
        Licences of what it carries, written as comments.
    """

    title: str
    body: str
    styles: Sequence[str] = ()
    scripts: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    images: Sequence[str] = ()
    notices: Sequence[str] = ()

    def policy(self) -> str:
        """The content security policy: nothing is allowed but what the page itself carries."""
        rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
        for name, texts in (("style-src", self.styles), ("script-src", self.scripts)):
            if texts:
                rules.append(f"{name} {' '.join(_hash(t) for t in texts)}")
        if self.images:
            rules.append(f"img-src {' '.join(self.images)}")
        return "; ".join(rules)

    def html(self) -> str:
        """The page as HTML."""
        head = [
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{text(self.policy())}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{text(self.title)}</title>",
            *(f"<style>{_whole(css)}</style>" for css in self.styles),
        ]
        foot = [
            *(
                f'<script type="application/json" id="{text(name)}">{script_json(value)}</script>'
                for name, value in self.data.items()
            ),
            *(f"<script>{_whole(code)}</script>" for code in self.scripts),
        ]
        notices = "".join(f"<!--\n{notice.replace('--', '- -').strip()}\n-->\n" for notice in self.notices)
        lines = [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            *head,
            "</head>",
            "<body>",
            self.body,
            *foot,
        ]
        return "\n".join([*lines, "</body>", f"{notices}</html>", ""])

    def write(
        self, path: str | Path, *, overwrite: bool = False, beside: Mapping[str | Path, str] | None = None
    ) -> None:
        """Write the page, and texts beside it, whole or not at all.

        Raises
        ------
        UsageError
            A file exists and `overwrite` is false, or the name is none of a page.
        WriteError
            It cannot be written; what stood there before still stands.
        """
        check_page(path)
        texts = {**(beside or {}), path: self.html()}
        with replacing(*texts, overwrite=overwrite) as files:
            for file, content in zip(files, texts.values(), strict=True):
                file.write_bytes(content.encode("utf-8", "replace"))


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "", numbers: int | None = None
) -> str:
    """An HTML table of texts and numbers, each escaped; the first cell of a row is its heading.

    Parameters
    ----------
    head : sequence of str
    rows : iterable of sequences
        Cells that are `Markup` are HTML already.
    caption : str
    numbers : int, optional
        Columns from this one on hold numbers and are set to the right.
    """
    right = len(head) if numbers is None else numbers
    side = [' class="number"' if i >= right else "" for i in range(len(head))]
    top = "".join(f'<th scope="col"{s}>{cell(h)}</th>' for h, s in zip(head, side, strict=True))
    lines = []
    for row in rows:
        first, *rest = [cell(value) for value in row]
        others = "".join(f"<td{s}>{value}</td>" for value, s in zip(rest, side[1:], strict=True))
        lines.append(f'<tr><th scope="row">{first}</th>{others}</tr>')
    name = f"<caption>{cell(caption)}</caption>" if caption else ""
    return f"<table>{name}<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def cell(value: Any) -> str:
    """A value as HTML: `Markup` as it is, null as a dash, anything else escaped."""
    if isinstance(value, Markup):
        return value
    return "–" if value is None else text(value)


def _hash(content: str) -> str:
    digest = hashlib.sha256(_whole(content).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _whole(content: str) -> str:
    """CSS or JavaScript as a page's parser hands it on: lines end in LF, and no tag ends in it."""
    content = content.replace("\r\n", "\n").replace("\r", "\n")
    if re.search(r"</(script|style)", content, flags=re.I):
        raise ValueError("a script or style that a page carries must not hold a closing tag")
    return content
