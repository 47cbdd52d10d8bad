"""Pages that MkDocs adds to the site at build time.

The README files, CHANGELOG, CONTRIBUTING and SECURITY live at the top of the repository, and the reference pages are
made from the code (``docs/reference.py``). Links between them are rewritten to the places that they have on the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))  # MkDocs runs this file from a path, without its package

from reference import render_commands, render_settings  # noqa: E402

TOP_PAGES = {
    "README.md": "index.md",
    "README.ko.md": "ko/index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/records/README.md": "records.md",
}
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from the top of the repository and the reference pages."""
    pages = {"reference/settings.md": render_settings(), "reference/commands.md": render_commands()}
    for source, page in TOP_PAGES.items():
        pages[page] = with_site_links((ROOT / source).read_text("utf-8"), ROOT / source, page)
    for page, text in pages.items():
        if committed := files.get_file_from_path(page):  # docs/reference/ says where the pages come from
            files.remove(committed)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite links of a page in ``docs/`` that leave this folder."""
    if page.file.generated_by:
        return markdown
    return with_site_links(markdown, ROOT / "docs" / page.file.src_uri, page.file.src_uri)


def with_site_links(markdown: str, source: Path, page: str) -> str:
    """``markdown`` of the file ``source`` with links as they have to be on ``page`` of the site.

    A link to a file that is not on the site, such as a record of a benchmark, becomes the name of this file.
    """

    def replace(match: re.Match[str]) -> str:
        target = (source.parent / match[1]).resolve()
        if not target.is_relative_to(ROOT):
            return match[0]
        name = target.relative_to(ROOT).as_posix()
        on_site = TOP_PAGES.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else None)
        if on_site is None:
            return f"] (`{name}`)"
        up = "../" * page.count("/")
        return f"]({up}{on_site}{match[2] or ''})"

    return re.sub(r"\[([^\]]*)\] \((`[^)]*`)\)", r"\1 (\2)", LINK.sub(replace, markdown))
