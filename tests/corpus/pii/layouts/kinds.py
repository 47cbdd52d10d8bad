"""The layouts: each draws one to five values and the text around them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.corpus.pii.layouts.texts import (
    ENDINGS,
    LABELS,
    NAMES,
    OPENINGS,
    PROSE_ENDINGS,
    SEPARATORS,
    WRAPS,
    Case,
    Piece,
    any_writing,
    build,
    draw_label,
    fits_wrap,
    glue,
    goes_between,
    particle,
    telling_writing,
    writing_of,
)
from tests.corpus.pii.layouts.values import Value, draw_value

MAX_VALUES = 5
TRIES = 12


def listed(rng: Random) -> Case:
    """Values one after the other, any separator, any brackets; labels before some or none."""
    name = rng.choice(tuple(SEPARATORS))
    share = rng.choice((0, 0, 50, 100))
    wrap = rng.choice(WRAPS) if rng.randrange(4) == 0 else ""
    opened, closed = wrap[: len(wrap) // 2], wrap[len(wrap) // 2 :]
    pieces: list[Piece] = [rng.choice(OPENINGS)]
    last: Value | None = None
    announced = ""
    for _ in range(rng.randrange(1, MAX_VALUES + 1)):
        for _ in range(TRIES):
            is_labelled = rng.randrange(100) < share
            writing = any_writing(rng) if is_labelled else telling_writing(rng, is_clear=bool(announced))
            value = draw_value(rng, writing)
            label = draw_label(rng, value.type) if is_labelled else ""
            if fits_wrap(value, wrap) and (wrap or goes_between(last, SEPARATORS[name], value, label)):
                break
        else:
            break
        pieces += [SEPARATORS[name] if last else "", label]
        pieces += [_other_glue(rng, label, value, SEPARATORS[name]) if label else ""]
        pieces += [opened, value, closed]
        last, announced = value, label or announced
    pieces += [_tail(rng, last, wrap)] if last else []
    kind = {0: "none", 50: "some before", 100: "before"}[share]
    return build(pieces, f"list {name}" + (f" {wrap}" if wrap else ""), kind if announced else "none")


def labels_behind(rng: Random) -> Case:
    """Each value with its label in brackets behind; a single one also without brackets."""
    count = rng.randrange(1, MAX_VALUES + 1)
    name = rng.choice(
        ("comma", "comma blank", "slash blanks", "newline", "CRLF", "semicolon blank", "tab", "pipe blanks", "·")
    )
    pieces: list[Piece] = [rng.choice(OPENINGS)]
    for number in range(count):
        value = draw_value(rng, any_writing(rng))
        form = rng.choice((" ({})", " [{}]") if value.type in ("URL", "MENTION") else ("({})", " ({})", "[{}]"))
        if count == 1 and value.type not in ("ADDRESS", "URL", "MENTION"):
            form = rng.choice((form, " {}", "로 적힌 {}", "/{}"))
        if count == 1 and value.type == "ACCOUNT":
            form = rng.choice((form, "로 입금", "으로 이체해 주세요", " 카카오뱅크 홍길동", " 신한"))
        pieces += [SEPARATORS[name] if number else "", value, form.format(draw_label(rng, value.type))]
    return build([*pieces, rng.choice(ENDINGS)], f"list {name}" if count > 1 else "one", "behind")


def one_label_for_all(rng: Random) -> Case:
    """A label and a list of values of its type."""
    kind = any_writing(rng).type
    name = rng.choice(tuple(SEPARATORS))
    label = draw_label(rng, kind)
    values: list[Value] = []
    for _ in range(TRIES):
        value = draw_value(rng, writing_of(rng, kind))
        if goes_between(values[-1] if values else None, SEPARATORS[name], value):
            values.append(value)
        if len(values) == 4:
            break
    if not values:
        values = [draw_value(rng, writing_of(rng, kind))]
    pieces: list[Piece] = [rng.choice(OPENINGS), label, _other_glue(rng, label, values[0], SEPARATORS[name])]
    for value in values:
        pieces += [value, SEPARATORS[name]]
    return build([*pieces[:-1], _tail(rng, values[-1], "")], f"list {name}", "one for all")


def header_table(rng: Random) -> Case:
    """A row of column names and one to five rows below, as CSV, TSV, Markdown and HTML have it."""
    style = rng.choice(tuple(TABLES))
    left, between, right, rule = TABLES[style]
    possible = [kind for kind in LABELS if kind != "URL" or between != " / "]  # a URL continues after a slash
    kinds = rng.sample(possible, rng.randrange(1, 4))
    columns = ["name", *kinds, *rng.choice((["note"], []))] if rng.randrange(2) else ["number", *kinds]
    columns = columns if rng.randrange(5) else kinds
    heads = [
        {"name": "이름", "note": "비고", "number": "번호"}.get(c) or draw_label(rng, c, is_column=True) for c in columns
    ]
    rows: list[list[Piece]] = [list(heads)]
    for number in range(rng.randrange(1, MAX_VALUES // len(kinds) + 1)):
        fill = {"name": rng.choice(NAMES), "note": rng.choice(("", "확인", "-")), "number": str(number + 1)}
        rows.append([fill.get(c) or ("" if c == "note" else _cell(rng, c, between)) for c in columns])
    pieces: list[Piece] = [rng.choice(("", "", "명단입니다.\n"))]
    for number, row in enumerate(rows):
        start, middle, end = (part.replace("td>", "th>") if number == 0 else part for part in (left, between, right))
        pieces += [start]
        for place, cell in enumerate(row):
            pieces += [middle if place else "", cell]
        pieces += [end]
        pieces += ["|" + "---|" * len(columns) + "\n"] if rule and number == 0 else []
    return build(pieces, f"table {style}", "header")


TABLES = {
    "csv": ("", ",", "\n", False),
    "csv blank": ("", ", ", "\n", False),
    "csv quoted": ('"', '","', '"\n', False),
    "csv CRLF": ("", ",", "\r\n", False),
    "tsv": ("", "\t", "\n", False),
    "semicolon": ("", ";", "\n", False),
    "pipe": ("", "|", "\n", False),
    "pipe blanks": ("", " | ", "\n", False),
    "slash": ("", " / ", "\n", False),
    "markdown": ("| ", " | ", " |\n", True),
    "markdown tight": ("|", "|", "|\n", True),
    "html": ("<tr><td>", "</td><td>", "</td></tr>\n", False),
}


def _cell(rng: Random, kind: str, between: str) -> Value:
    while True:
        value = draw_value(rng, writing_of(rng, kind))
        if goes_between(value, between, value, "가") or len(between.strip()) > 1:
            return value


def label_cells(rng: Random) -> Case:
    """Label and value in neighbouring cells, definition lists and bold type."""
    style = rng.choice(
        ("<td>{}</td><td>", "<tr><th>{}</th>\n<td>", "<dt>{}</dt><dd>", "<li><b>{}</b> ", "| {} | ", "|{}|", "**{}**: ",
         "- {}: ", "[{}] ", "【{}】", "■ {} : ", "({}) ", "{}\t", "{}\n", "  {}:\n    ", "<p>{} : ")
    )  # fmt: skip
    end = {"<td>": "</td>", "<dd>": "</dd>", "</b> ": "</li>", "| ": " |\n", "|": "|\n", " : ": "</p>"}
    closing = next((close for open_, close in end.items() if style.startswith("<") and style.endswith(open_)), "\n")
    closing = " |\n" if style == "| {} | " else "|\n" if style == "|{}|" else closing
    pieces: list[Piece] = [rng.choice(("", "", "안녕하세요.\n"))]
    for _ in range(rng.randrange(1, MAX_VALUES + 1)):
        value = draw_value(rng, any_writing(rng))
        pieces += [style.format(draw_label(rng, value.type)), value, closing]
    return build(pieces, f"cells {style}".replace("\n", "⏎").replace("\t", "⇥"), "before")


def json_in_text(rng: Random) -> Case:
    """JSON objects and lists, compact or not, also with single quotes."""
    is_list = rng.randrange(4) == 0
    mark = rng.choice(('"', '"', "'"))
    colon, comma = rng.choice(((": ", ", "), (":", ","), (": ", ",\n  ")))
    opening, ending = rng.choice((("", ""), ("로그 ", " 확인"), ("보낸 내용은 ", "입니다."), ("[정보] ", "\n")))
    pieces: list[Piece] = [opening, "[" if is_list else "{"]
    if not is_list:
        pieces += [f"{mark}이름{mark}{colon}{mark}{rng.choice(NAMES)}{mark}", comma]
    for number in range(rng.randrange(1, MAX_VALUES + 1)):
        value = draw_value(rng, telling_writing(rng) if is_list else any_writing(rng))
        pieces += [comma if number else ""]
        pieces += [mark] if is_list else [f"{mark}{draw_label(rng, value.type)}{mark}{colon}{mark}"]
        pieces += [value, mark]
    return build([*pieces, "]" if is_list else "}", ending], f"json {mark}", "none" if is_list else "before")


def key_value(rng: Random) -> Case:
    """``key=value&key=value``."""
    pieces: list[Piece] = [rng.choice(("", "보낸 값: ", "이름=홍길동&", "id=7&"))]
    for number in range(rng.randrange(1, MAX_VALUES + 1)):
        writing = any_writing(rng)
        value = draw_value(rng, writing if writing.type != "URL" else writing_of(rng, "TEL"))
        pieces += ["&" if number else "", f"{draw_label(rng, value.type)}=", value]
    return build([*pieces, rng.choice(("", "\n", "&이름=홍길동"))], "key=value&", "before")


def prose(rng: Random) -> Case:
    """Clauses with particles glued on; after a label of another type only values that are unmistakable."""
    pieces: list[Piece] = [rng.choice(OPENINGS)]
    announced = False
    share = rng.choice((0, 50, 100))
    for _ in range(rng.randrange(1, MAX_VALUES + 1)):
        is_labelled = rng.randrange(100) < share
        value = draw_value(rng, any_writing(rng) if is_labelled else telling_writing(rng, is_clear=announced))
        label = draw_label(rng, value.type)
        owner = rng.choice(("", "", "제 ", f"{rng.choice(NAMES)}의 "))
        pieces += (
            [owner, label, rng.choice((" ", "는 ", "가 ", ": ")) if label[-1] >= "가" else " "] if is_labelled else []
        )
        pieces += [
            value,
            particle(rng, value),
            rng.choice(PROSE_ENDINGS[:-2] if value.type == "URL" else PROSE_ENDINGS),
        ]
        announced |= is_labelled
    return build(pieces, "prose", {0: "none", 50: "some before", 100: "before"}[share])


def _tail(rng: Random, value: Value, wrap: str) -> str:
    glued = particle(rng, value) if rng.randrange(3) == 0 else ""
    return glued + rng.choice(ENDINGS)


def _other_glue(rng: Random, label: str, value: Value, separator: str) -> str:
    """A glue that is not the separator too, unless cells go like that."""
    drawn = glue(rng, label, value)
    same = drawn.strip(" ") == separator.strip(" ") and drawn.strip(" ") not in ("", "|", "\t", "\n")
    return " " if same else drawn


LAYOUTS: tuple[Callable[[Random], Case], ...] = (
    listed, listed, listed, labels_behind, one_label_for_all, header_table, header_table, label_cells, json_in_text,
    key_value, prose, prose,
)  # fmt: skip
