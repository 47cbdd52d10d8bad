"""``malmoi demo MODEL…``: a local gradio page. Type a sentence; see tokens, fillings for [MASK] and predictions.

The page answers on 127.0.0.1 only, and only its own page may use it (``launch.local_server``). Uploads are off. A
content security policy lets the browser load from this server only; gradio's telemetry, history and links are off. The
components of gradio show text without interpreting it. Heavy imports wait until the command runs.

| in the folder | it is |
|---|---|
| ``malmoi.json`` | a saved fine-tuned model |
| ``config.json`` | a pretrained model; without a masked-LM head only its tokenizer is used |
| ``tokenizer.json`` or ``vocab.txt`` | a tokenizer |
| ``tokenizer/``, ``model/``, ``finetune/`` | a run: all of the above in it |

Finding them needs no torch, so a wrong folder is reported at once.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput
from launch.config import LaunchConfig
from launch.errors import LaunchError, require

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from finetune.saved_models.load import SavedModel

log = logging.getLogger(__name__)
HOST = "127.0.0.1"
MAX_CHARACTERS = 500
MAX_BYTES = 1 << 16  # of a request
Kind = Literal["saved", "pretrained", "tokenizer"]
MASK = "[MASK]"
MAX_MASKS, CANDIDATES = 4, 5
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'self'"
)
FONTS = ["Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic", "sans-serif"]
WORDS = {
    "pii": ("Personal data, found by rules", "개인정보(규칙으로 찾음)"),
    "fill": ("Predictions for [MASK]: {name}", "[MASK] 예측: {name}"),
    "tokens": ("Tokens: {name}", "토큰: {name}"),
    "no_mask": ("Write [MASK] in place of a word.", "단어 자리에 [MASK]를 넣어 보세요."),
}
EXAMPLES = (
    "문의는 한빛도서관 김하늘 팀장(010-0123-4567)에게 [MASK] 바랍니다.",
    "서울시는 다음 달부터 청년 주택 공급을 크게 늘리기로 했다.",
    "어제 [MASK]에서 열린 경기에서 손흥민이 두 골을 넣었다.",
)
HIGHLIGHT = {"combine_adjacent": False, "show_legend": True}
COMPONENTS: dict[str, tuple[str, dict[str, Any]]] = {  # kind of a view: class of gradio, settings
    "spans": ("HighlightedText", HIGHLIGHT),
    "tokens": ("HighlightedText", {**HIGHLIGHT, "show_inline_category": False}),
    "labels": ("Label", {}),
    "lines": ("Textbox", {"lines": 2, "max_lines": 40, "interactive": False}),
}


class View(NamedTuple):
    """One component of the page."""

    title: str
    kind: str
    value_of: Callable[[str], Any]  # from the text to what the component shows


def show_page(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help="Run, tokenizer, pretrained or fine-tuned model; repeatable.")
    ],
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 7860,
    language: Annotated[
        Literal["auto", "en", "ko"], typer.Option(help="Language of the page. auto: as the locale.")
    ] = "auto",
) -> None:
    """Show a local page: type a sentence, see its tokens, the predictions for [MASK] and those of fine-tuned models.

    The page is served on this machine only (127.0.0.1). It needs no network and sends nothing.

    Example:  malmoi demo runs/smoke
    """
    kinds = find_models(models)
    require("demo", ("gradio", "torch", "transformers"))
    views = load_views(kinds, LaunchConfig(language=language).resolve_language())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # files are removed then, too
    with TemporaryDirectory(prefix="malmoi-demo-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder  # read when gradio is imported
        page = start(views, port)
        log.info("the page is at http://%s:%d, on this machine only; Ctrl-C stops it", HOST, port)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            page.close(verbose=False)
            log.info("the page is closed")


def start(views: Sequence[View], port: int) -> Any:
    """The running page (gradio ``Blocks``), served from its own threads; ``close`` stops it."""
    os.environ.update({"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"})  # before the imports
    os.environ["NO_PROXY"] = ",".join(filter(None, (os.environ.get("NO_PROXY"), HOST)))  # no proxy for this machine
    import gradio as gr
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware

    from launch.local_server import LOOPBACK, MAX_CONNECTIONS, ImpatientProtocol, RequestLimits

    page = build(views)
    theme = gr.themes.Base(font=FONTS, font_mono=["D2Coding", "NanumGothicCoding", "monospace"])
    limits = Middleware(RequestLimits, hosts=LOOPBACK, max_bytes=MAX_BYTES, refused=("/upload",))
    middleware = [limits, Middleware(BaseHTTPMiddleware, dispatch=add_policy)]
    try:
        page.launch(
            server_name=HOST, server_port=port, share=False, inbrowser=False, quiet=True, prevent_thread_lock=True,
            footer_links=[], run_history=False, ssr_mode=False, pwa=False, mcp_server=False, enable_monitoring=False,
            theme=theme, app_kwargs={"middleware": middleware},
        )  # fmt: skip
    except OSError:
        raise LaunchError(f"port {port} on {HOST} cannot be used; choose another with --port") from None
    page.server.config.http_protocol_class = ImpatientProtocol  # of connections from now on
    page.server.config.limit_concurrency = MAX_CONNECTIONS
    return page


async def add_policy(request: Any, call_next: Callable[[Any], Any]) -> Any:
    """Middleware: the browser may load from this server only."""
    response = await call_next(request)
    response.headers["content-security-policy"] = POLICY
    return response


def build(views: Sequence[View]) -> Any:
    """The page: a text box, examples, and one component for each view."""
    import gradio as gr

    with gr.Blocks(title="말모이", analytics_enabled=False) as page:
        gr.Markdown("# 말모이")
        box = gr.Textbox(EXAMPLES[0], show_label=False, lines=2, max_length=MAX_CHARACTERS, elem_id="sentence")
        gr.Examples([[example] for example in EXAMPLES], box)
        components = []
        for view in views:
            component, settings = COMPONENTS[view.kind]
            components.append(getattr(gr, component)(label=view.title, elem_classes="view", **settings))
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        update = partial(update_views, views)
        page.load(update, box, components, **quiet)
        # not `input`, which fires on keys only: Hangul is composed and sentences are pasted without any
        box.change(update, box, components, trigger_mode="always_last", **quiet)
    return page


def load_views(kinds: Mapping[Path, Kind], language: str) -> list[View]:
    """Load all models on the CPU. Views: personal data, predictions, tokens (once for tokenizers with equal rules)."""
    from finetune.encoder.loading import load_tokenizer
    from finetune.inference.predict import predict_texts
    from finetune.saved_models.load import load_model

    words = {key: pair[language == "ko"] for key, pair in WORDS.items()}
    views, tokens, known = [View(words["pii"], "spans", personal_data)], [], set()
    for path, kind in kinds.items():
        name = str(path)
        log.info("loading %s (%s)", name, kind)
        if kind == "saved":
            saved = load_model(path, "cpu")
            tokenizer, task = saved.tokenizer, saved.task.name
            if reads_a_sentence(saved):
                [example] = predict_texts(saved, [EXAMPLES[1]])
                shape = "spans" if "entities" in example else "labels" if "likeliest" in example else "lines"
                views.append(View(f"{task}: {name}", shape, partial(predict, saved, shape)))
            else:
                log.info("%s: only its tokenizer is shown; %s needs more than a sentence (malmoi predict)", name, task)
        else:
            tokenizer = load_tokenizer(name)
            if kind == "pretrained" and (model := load_masked_lm(path, tokenizer)) is not None:
                views.append(View(words["fill"].format(name=name), "lines", partial(fill, model, tokenizer, words)))
            elif kind == "pretrained":
                log.info("%s: only its tokenizer is shown; it has no masked-LM head", name)
        if (rules := rules_of(tokenizer)) not in known:
            known.add(rules)
            tokens.append(View(words["tokens"].format(name=name), "tokens", partial(tokenize, tokenizer)))
    return views + tokens


def personal_data(text: str) -> list[tuple[str, str | None]]:
    """The text with the personal data that the rules find."""
    from corpus.pii.detect import find_pii
    from corpus.pii.types import ALL_TYPES

    return highlight(text, [(span.start, span.end, span.type) for span in find_pii(text, ALL_TYPES)])


def fill(model: Any, tokenizer: Any, words: Mapping[str, str], text: str) -> str:
    """The most likely tokens for each [MASK], one line each."""
    places = fill_masks(model, tokenizer, text) if MASK in text else []
    lines = [", ".join(f"{token} {100 * share:.1f} %" for token, share in place) for place in places]
    return "\n".join(lines) or words["no_mask"]


def predict(saved: SavedModel, kind: str, text: str) -> Any:
    """The prediction of a fine-tuned model as marked text, labels with probabilities, or lines."""
    from finetune.inference.predict import format_lines, predict_texts

    [result] = predict_texts(saved, [text])
    if kind == "spans":
        return highlight(result["text"], [(one["start"], one["end"], one["type"]) for one in result["entities"]])
    return result["likeliest"] if kind == "labels" else "\n".join(format_lines(saved.task.inference, result))


def highlight(text: str, spans: Sequence[tuple[int, int, str]]) -> list[tuple[str, str | None]]:
    """The text in parts, each with the type of its span or None; spans are sorted and do not overlap."""
    parts: list[tuple[str, str | None]] = []
    end = 0
    for start, stop, kind in spans:
        parts += [(text[end:start], None), (text[start:stop], kind)]
        end = stop
    return [(part, kind) for part, kind in [*parts, (text[end:], None)] if part]


def update_views(views: Sequence[View], typed: str) -> list[Any]:
    """The value of each view, or what is wrong; None for all if no text is typed."""
    # browsers may send single surrogates, which no encoding can write
    text = unicodedata.normalize("NFC", typed.encode("utf-8", "replace").decode("utf-8")).strip()[:MAX_CHARACTERS]
    values: list[Any] = []
    for view in views if text else ():
        try:
            values.append(view.value_of(text))
        except BadInput as error:
            values.append({"lines": str(error), "labels": {str(error): 0.0}}.get(view.kind, [(str(error), None)]))
    return values or [None for _ in views]


def find_models(folders: Sequence[Path]) -> dict[Path, Kind]:
    """The tokenizers and models in the folders, in order; ``LaunchError`` for a folder without any."""
    from finetune.config import MODEL_INFO_NAME

    models: dict[Path, Kind] = {}
    for folder in folders:
        saved = sorted(path.parent for path in folder.glob(f"finetune/*/*/seed-*/*/{MODEL_INFO_NAME}"))
        places = [folder] if _kind_of(folder) else [folder / "tokenizer", folder / "model", *saved]
        kinds = {path: kind for path in places if (kind := _kind_of(path))}
        if not kinds:
            what = "no tokenizer, no model and no run in this folder" if folder.exists() else "no such folder"
            raise LaunchError(f"{folder}: {what}; give a tokenizer, a model, or the folder of a run")
        models |= kinds
    return models


def _kind_of(path: Path) -> Kind | None:
    from finetune.config import MODEL_INFO_NAME

    if (path / MODEL_INFO_NAME).is_file():
        return "saved"
    if (path / "config.json").is_file():
        return "pretrained"
    files = (path / "tokenizer.json", path / "vocab.txt", path)
    return "tokenizer" if any(file.is_file() and file.suffix in (".json", ".txt") for file in files) else None


def reads_a_sentence(saved: SavedModel) -> bool:
    """Whether the task of a model needs one sentence only; others are for ``malmoi predict``."""
    try:
        return saved.task.inference.parse("한 문장", "page") is not None
    except BadInput:
        return False


def load_masked_lm(path: Path, tokenizer: Tokenizer) -> Any | None:
    """A pretrained model; None without a trained masked-LM head, because a random one gives meaningless words."""
    from transformers import AutoModelForMaskedLM

    from finetune.encoder.loading import check_encoder, load_pretrained

    names = read_json_object(path / "config.json", "save the model again").get("architectures") or []
    has_head = (str(name).endswith(("ForMaskedLM", "ForPreTraining")) for name in names)
    if not any(has_head) or "ElectraForPreTraining" in names:  # which detects replaced tokens and fills no masks
        return None
    check_encoder(str(path))
    return load_pretrained(AutoModelForMaskedLM, str(path), tokenizer).eval()


def rules_of(tokenizer: Tokenizer) -> str:
    """The rules that decide where text is split, without tokens that a task added."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    return json.dumps([rules.get(part) for part in ("normalizer", "pre_tokenizer", "model")], sort_keys=True)


def tokenize(tokenizer: Tokenizer, text: str) -> list[tuple[str, str]]:
    """The tokens of a text with their kinds; an unknown token, or one of bytes or jamo, shows the text it replaces."""
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = encoded["input_ids"], encoded["offset_mapping"]
    special, tokens, last = set(tokenizer.all_special_ids), [], None
    for number, token, place in zip(ids, tokenizer.convert_ids_to_tokens(ids), places, strict=True):
        covered = "…" if place == last else text[slice(*place)].strip()
        kind = "continues" if token.startswith("##") else "starts a word"
        if number == tokenizer.unk_token_id:
            kind, token = "unknown", covered
        elif number in special:
            kind = "special"
        elif token.removeprefix("##").lstrip("▁Ġ") not in text:
            token = "##" * (kind == "continues") + covered
        tokens.append((token, kind))
        last = place
    return tokens


def fill_masks(model: Any, tokenizer: Tokenizer, text: str) -> list[list[tuple[str, float]]]:
    """The most likely tokens for each ``[MASK]``, with probabilities; ``BadInput`` if the text is too long."""
    import torch

    from finetune.encoder.loading import has_segments, max_input_tokens

    batch = tokenizer(text.replace(MASK, tokenizer.mask_token), return_tensors="pt")
    length, limit = batch["input_ids"].shape[1], max_input_tokens(model.config)
    if limit is not None and length > limit:
        raise BadInput(f"the text has {length} tokens; this model reads at most {limit}")
    if not has_segments(model.config):
        batch.pop("token_type_ids", None)
    places = (batch["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:MAX_MASKS, 0]
    with torch.inference_mode():
        logits_MV = model(**batch).logits[0, places].float()
    best = logits_MV.softmax(dim=-1).topk(CANDIDATES)
    return [
        list(zip(tokenizer.convert_ids_to_tokens(ids), shares, strict=True))
        for ids, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
