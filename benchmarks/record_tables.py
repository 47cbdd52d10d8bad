"""``python -m benchmarks records``: Markdown tables from the record files in ``benchmarks/records/``.

A record is one CSV file with the result of one experiment. Its header lines state the title, the commands, the date,
the processor and the commit that added the result. Pages in ``docs/`` show a record between two markers; this
command renders the text between them::

    <!-- record speedrun/4x256-2h -->
    <!-- record speedrun/4x256-2h: candidate; seed; loss -->
    <!-- record speedrun/4x256-2h-klue: metric; difference | training examples=1000 -->
    <!-- end record -->

The second form selects columns, the third one also selects rows. ``benchmarks/records/README.md`` lists all records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "records"
INDEX = RECORDS / "README.md"
REQUIRED = ("title", "command", "date", "processor", "commit")
MARKER = re.compile(
    r"(<!-- record ([\w/.-]+)(?:: ([^|>]*?))?(?: \| ([^>]*?))? -->\n).*?(<!-- end record -->)", re.DOTALL
)
NUMBER = re.compile(r"[+-]?[\d.,e-]+\*?( [±(].*)?")
INDEX_HEAD = """# Records of experiments

Each file is the result of one experiment: a CSV table after header lines with title, command, date, processor and
commit (the commit that added the result). Commands use the current names of options. A note explains `*` after a value.
`benchmarks.record_tables.read_record` reads a file; in other programs, skip the lines that start with `# `.

`python -m benchmarks records` updates this list and the tables in `docs/`.

| record | title | date | processor |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Record:
    """A record file. ``header`` maps a key such as "command" or "note" to its lines."""

    name: str
    header: dict[str, list[str]]
    columns: list[str]
    rows: list[list[str]]


def read_record(path: Path) -> Record:
    """Read a record file.

    Raises:
        ValueError: a header key is missing, or a row has a different number of cells than the column names.
    """
    lines = path.read_text("utf-8").splitlines()
    header: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("# "):
            key, _, value = line[2:].partition(": ")
            header.setdefault(key, []).append(value)
    columns, *rows = csv.reader(line for line in lines if not line.startswith("# "))
    missing = [key for key in REQUIRED if not header.get(key, [""])[0]]
    if missing:
        raise ValueError(f"{path}: header lines are missing: {', '.join(missing)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            raise ValueError(f"{path}: row {number} has {len(row)} cells; expected {len(columns)}")
    return Record(path.relative_to(RECORDS).with_suffix("").as_posix(), header, columns, rows)


def read_all() -> list[Record]:
    """All records, sorted by name."""
    return [read_record(path) for path in sorted(RECORDS.glob("*/*.csv"))]


def select(record: Record, columns: str, filters: str) -> Record:
    """Select columns (``a; b``) and rows (``column=value; column=value``); an empty string selects all."""
    wanted = [column.strip() for column in columns.split(";")] if columns else record.columns
    conditions = dict(part.strip().split("=", 1) for part in filters.split(";")) if filters else {}
    positions = {column: i for i, column in enumerate(record.columns)}
    unknown = [column for column in (*wanted, *conditions) if column not in positions]
    if unknown:
        raise ValueError(f"{record.name} has no column {unknown[0]!r}; its columns are: {'; '.join(record.columns)}")
    rows = [row for row in record.rows if all(row[positions[c]] == value for c, value in conditions.items())]
    if not rows:
        raise ValueError(f"{record.name}: no row has {filters}")
    return Record(record.name, record.header, wanted, [[row[positions[c]] for c in wanted] for row in rows])


def render(record: Record) -> str:
    """Render a Markdown table and one line that says where it comes from."""
    numeric = [all(NUMBER.fullmatch(row[i]) for row in record.rows if row[i]) for i in range(len(record.columns))]
    lines = [_line(record.columns), "|" + "|".join("---:" if right else "---" for right in numeric) + "|"]
    lines += [_line(row) for row in record.rows]
    header = record.header
    source = f"`benchmarks/records/{record.name}.csv`: {header['date'][0]}, commit {header['commit'][0]}"
    return "\n".join([*lines, "", f"{source}; {header['processor'][0]}."]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def render_index(records: Sequence[Record]) -> str:
    """Render ``benchmarks/records/README.md``."""
    rows = [
        [f"[{r.name}]({r.name}.csv)", r.header["title"][0], r.header["date"][0], r.header["processor"][0]]
        for r in records
    ]
    return INDEX_HEAD + "\n".join(_line(row) for row in rows) + "\n"


def render_page(text: str) -> str:
    """Render the records between the markers of a page."""

    def replace(match: re.Match[str]) -> str:
        record = select(read_record(RECORDS / f"{match[2]}.csv"), match[3] or "", match[4] or "")
        return f"{match[1]}\n{render(record)}\n{match[5]}"

    return MARKER.sub(replace, text)


def outdated_pages() -> Iterator[tuple[Path, str]]:
    """Yield each page whose tables differ from the records, with its new text."""
    for page in (INDEX, *sorted((ROOT / "docs").rglob("*.md"))):
        old = page.read_text("utf-8") if page.is_file() else ""
        new = render_index(read_all()) if page == INDEX else render_page(old)
        if new != old:
            yield page, new


def run_records(check: bool) -> int:
    """Update all pages, or with ``check`` only name the outdated ones. Returns the exit code."""
    outdated = list(outdated_pages())
    for page, new in outdated:
        print(f"{page.relative_to(ROOT)}: {'outdated; run python -m benchmarks records' if check else 'updated'}")
        if not check:
            page.write_text(new, encoding="utf-8")
    return 1 if check and outdated else 0
