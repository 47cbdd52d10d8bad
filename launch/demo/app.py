"""The local page: gradio gives the box to type in and the event, everything shown is HTML made by ``panels``.

It answers on 127.0.0.1 alone and only under that name, so that no web site can reach it by a name of its own (DNS
rebinding). A content security policy lets the browser load from nowhere else; gradio's telemetry, history and links
are off.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.documents.errors import BadInput
from corpus.pii.detect import find_pii
from corpus.pii.types import ALL_TYPES
from launch.demo import panels
from launch.demo.models import MASK, Loaded, cut, fill, load, look
from launch.demo.tree import draw_tree
from launch.demo.words import EXAMPLES, task_title, words_in
from launch.errors import LaunchError, require

if TYPE_CHECKING:
    from finetune.saved_models.load import SavedModel

log = logging.getLogger(__name__)
HOST = "127.0.0.1"
NAMES = [HOST, "localhost"]
MOST_CHARACTERS = 500
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'self'"
)
QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}  # read when they are imported


def serve(folders: Sequence[Path], port: int, language: str, *, opens: bool = False) -> None:
    """Load what the folders hold and serve the page until Ctrl-C.

    Raises:
        LaunchError: a folder that is nothing of ours, no gradio, or the port is taken; before anything is loaded.
        BadInput: a model that cannot be loaded.
    """
    found = look(folders)
    check_port(port)
    require("demo", ("gradio", "torch", "transformers"))
    page = start(load(found), port, language)
    log.info("the page is at http://%s:%d, on this machine only; Ctrl-C ends it", HOST, port)
    try:
        if opens:
            import webbrowser

            webbrowser.open(f"http://{HOST}:{port}")
        threading.Event().wait()
    except KeyboardInterrupt:
        log.info("the page is closed")
    finally:
        page.close(verbose=False)


def check_port(port: int) -> None:
    """Refuse a port that something else answers on, or that only an administrator may take, and name a free one."""
    with socket.socket() as probe, socket.socket() as other:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            other.bind((HOST, 0))
            why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({os.strerror(error.errno or 0)})"
            raise LaunchError(f"port {port} on {HOST} {why}; a free one: --port {other.getsockname()[1]}") from None


def start(loaded: Loaded, port: int, language: str) -> Any:
    """The running page (gradio ``Blocks``), served from threads of its own; ``close`` ends it."""
    os.environ.update(QUIET)
    # a proxy for the web is none for this machine
    os.environ["NO_PROXY"] = ",".join(filter(None, (os.environ.get("NO_PROXY"), *NAMES)))
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    page, looks = build(loaded, language)
    page.launch(
        server_name=HOST, server_port=port, share=False, inbrowser=False, quiet=True, prevent_thread_lock=True,
        footer_links=[], run_history=False, ssr_mode=False, pwa=False, mcp_server=False, enable_monitoring=False,
        app_kwargs={"middleware": [
            Middleware(TrustedHostMiddleware, allowed_hosts=NAMES), Middleware(LoadsFromHereOnly),
        ]}, **looks,
    )  # fmt: skip
    return page


class LoadsFromHereOnly:
    """ASGI middleware: the browser is told to load from this server alone."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_policy(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start":
                event["headers"] = [*event.get("headers", ()), (b"content-security-policy", POLICY.encode())]
            await send(event)

        await self.app(scope, receive, send_with_policy)


def build(loaded: Loaded, language: str) -> tuple[Any, dict[str, Any]]:
    """The page as gradio ``Blocks``, and what its ``launch`` takes for the looks."""
    import gradio as gr

    words = words_in(language)
    show: Callable[[str], str] = lambda text: view(text, loaded, language)  # noqa: E731
    with gr.Blocks(title="말모이", analytics_enabled=False) as page:
        gr.HTML(
            f'<header class="top"><h1>말모이</h1><p>{panels.escape(words["about"])}</p></header>',
            padding=False,
            apply_default_css=False,
        )
        box = gr.Textbox(
            EXAMPLES[0], label=words["sentence"], show_label=False, lines=2, max_lines=6, elem_id="sentence",
            container=False, autofocus=True,
        )  # fmt: skip
        with gr.Row(elem_id="examples"):
            examples = [gr.Button(example, size="sm", min_width=0) for example in EXAMPLES]
        shown = gr.HTML(padding=False, elem_id="shown", apply_default_css=False)
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_name": False}
        page.load(show, box, shown, **quiet)
        # not `input`, which comes with keys alone: Hangul is composed and sentences are pasted without any
        box.change(show, box, shown, trigger_mode="always_last", **quiet)
        for button, example in zip(examples, EXAMPLES, strict=True):
            button.click(lambda example=example: example, None, box, **quiet)
    fonts = ["Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic", "sans-serif"]
    theme = gr.themes.Base(font=fonts, font_mono=["D2Coding", "NanumGothicCoding", "monospace"])
    return page, {"theme": theme, "css": Path(__file__).with_name("page.css").read_text("utf-8")}


def view(typed: str, loaded: Loaded, language: str) -> str:
    """All panels for what was typed, as HTML."""
    words = words_in(language)
    # half characters that no encoding can write may come from a browser, too
    text = unicodedata.normalize("NFC", typed.encode("utf-8", "replace").decode("utf-8")).strip()
    if not text or len(text) > MOST_CHARACTERS:
        why = words["too_long"].format(n=len(text), most=MOST_CHARACTERS) if text else words["empty"]
        return panels.panel(words["sentence"], panels.message(why))
    spans = find_pii(text, ALL_TYPES)
    found = panels.personal_data(text, spans, language)
    found += "" if spans else panels.message(words["no_pii"])
    shown = [panels.panel(words["pii"], found, words["pii_note"], kind="wide")]
    if loaded.pretrained:
        shown.append(panels.panel(words["fill"], _fillings(text, loaded, words["no_mask"]), kind="wide"))
    shown += _of_kept(text, loaded, language)
    cuts = [cut(name, tokenizer, text) for name, tokenizer in loaded.tokenizers.items()]
    shown.append(panels.panel(words["pieces_title"], panels.pieces(cuts, words), kind="wide"))
    return f'<div class="panels" lang="{language}">{"".join(shown)}</div>'


def _fillings(text: str, loaded: Loaded, without_mask: str) -> str:
    if MASK not in text:
        return panels.message(without_mask)
    return panels.side_by_side({name: _filling(text, *pair) for name, pair in loaded.pretrained.items()})


def _filling(text: str, model: Any, tokenizer: Any) -> str:
    try:
        return panels.candidates(fill(model, tokenizer, text))
    except LaunchError as error:
        return panels.message(str(error))


def _of_kept(text: str, loaded: Loaded, language: str) -> list[str]:
    """A panel for each task, entities first, as they need the width."""
    found: dict[str, dict[str, str]] = {}
    for name, kept in loaded.kept.items():
        found.setdefault(kept.task.name, {})[name] = _predicted(kept, text, language)
    notes, kinds = {"klue-dp": words_in(language)["tree_note"]}, {"klue-ner": "wide"}
    return [
        panels.panel(
            task_title(task, language), panels.side_by_side(found[task]), notes.get(task, ""), kinds.get(task, "")
        )
        for task in sorted(found, key=lambda task: (task != "klue-ner", task != "klue-dp", task))
    ]


def _predicted(kept: SavedModel, text: str, language: str) -> str:
    """The prediction as HTML by what is in it, so that tasks of a user's own are shown as well."""
    from finetune.inference.predict import format_lines, predict_texts

    try:
        [result] = predict_texts(kept, [text])
    except BadInput as error:
        return panels.message(str(error))
    if "entities" in result:
        places = [(entity["start"], entity["end"], entity["type"]) for entity in result["entities"]]
        return panels.entities(result["text"], places, language)
    if "words" in result:
        return draw_tree(result["words"], result["prediction"]["heads"], result["prediction"]["types"], text)
    if "likeliest" in result:
        return panels.bars(list(result["likeliest"].items()))
    return panels.plain(format_lines(kept.task.inference, result))
