"""``malmoi serve MODEL``: a fine-tuned model, embeddings or a search index, and personal data, over HTTP with JSON.

```
POST /predict   {"texts": […]} → {"results": […]}   the results of `malmoi predict --json`
POST /embed     {"texts": […]} → {"results": […]}   the vectors of `malmoi embed encode`, for an embedding model
POST /search    {"texts": […]} → {"results": […]}   the passages of `malmoi embed search`, for an index
POST /pii       {"texts": […]} → {"results": […]}   the results of `malmoi pii detect`, with names if --names is given
GET  /health, /docs, /openapi.json
```
The answers come from the functions of the commands, so a text gets the same answer. One batch is computed at a time;
others wait. Nothing is written to the disk, and texts are not logged. Heavy imports wait until the command runs.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from unicodedata import normalize

import typer
from pydantic import BaseModel, Field, field_validator

from corpus.documents.errors import BadInput
from corpus.documents.section import problem_text
from launch.errors import LaunchError, require

log = logging.getLogger(__name__)
MAX_BYTES = 1 << 20  # of a request
MAX_ITEMS = 64
MAX_CHARACTERS = 10_000  # of a text, or of a record as JSON
SURROGATE = re.compile("[\ud800-\udfff]")
Answers = list[dict[str, Any]]


class Batch(BaseModel, extra="forbid"):
    """The body of a request."""

    texts: list[str | list[str] | dict[str, Any]] = Field(
        min_length=1, max_length=MAX_ITEMS, description="Texts, lists of columns (premise, hypothesis), or records."
    )

    @field_validator("texts")
    @classmethod
    def _are_short(cls, texts: list[Any]) -> list[Any]:
        for number, text in enumerate(texts, 1):
            written = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            if not written.isascii() and SURROGATE.search(written):
                raise ValueError(f"text {number} has half of a surrogate pair, which is no character")
            if (size := len(written)) > MAX_CHARACTERS:
                raise ValueError(f"text {number} has {size:,} characters; at most {MAX_CHARACTERS:,} are allowed")
        return texts


class Endpoint(NamedTuple):
    """A function on batches under a path, such as embeddings under ``/embed``."""

    path: str
    summary: str
    answer: Callable[[Sequence[Any]], Answers]


def serve(
    model: Annotated[str, typer.Argument(help="Fine-tuned model (folder or Hub name), embedding model, or index.")],
    names: Annotated[
        Path | None, typer.Option(help="Folder of a KLUE-NER model that also finds names of people in /pii.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on. Default: this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port. 0: any free one.")] = 8000,
    device: Annotated[Literal["auto", "cpu"], typer.Option(help="auto: the accelerator if there is one.")] = "auto",
) -> None:
    """Serve a fine-tuned model, an embedding model or a search index, and personal data in texts, over HTTP.

    A request has at most 64 texts of 10,000 characters and 1 MiB. There is no password: to serve other machines, put
    a proxy with authentication in front.

    Example:  malmoi serve runs/smoke/finetune/ynat/model/seed-1/model
    """
    require("serve", ("fastapi", "uvicorn", "torch", "transformers"))
    listener = listen(host, port)
    from uvicorn import Config, Server

    from launch.local_server import LOOPBACK, MAX_CONNECTIONS, ImpatientProtocol

    if host not in LOOPBACK:
        log.warning("%s: everyone who can reach this address can use the models; there is no password", host)
    app = make_app(endpoints_of(model, names, device), LOOPBACK if host in LOOPBACK else ())
    config = Config(
        app, http=ImpatientProtocol, ws="none", log_level="warning", limit_concurrency=MAX_CONNECTIONS, lifespan="off"
    )
    log.info("serving %s at http://%s:%d; documentation at /docs; Ctrl-C stops", model, *listener.getsockname()[:2])
    Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """The listening socket; ``LaunchError`` if the address cannot be used. It is bound before a model is loaded."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise LaunchError(f"{host}, port {port}: cannot be used ({error.strerror}); choose another --port") from None


def endpoints_of(model: str, names: Path | None, device: Literal["auto", "cpu"]) -> list[Endpoint]:
    """Load the models; the functions to serve."""
    from corpus.pii.extra.person_by_model import load_tagger

    first = endpoint_of(model, device)
    tagger = load_tagger(names, device=device) if names is not None else None

    def find(texts: Sequence[Any]) -> Answers:
        from corpus.pii.detect import find_pii
        from corpus.pii.types import ALL_TYPES

        return [
            {"text": text, "spans": [(s.start, s.end, s.type) for s in find_pii(text, ALL_TYPES, name_model=tagger)]}
            for text in plain_texts(texts, "/pii")
        ]

    return [first, Endpoint("/pii", "Personal data as spans", find)]


def endpoint_of(model: str, device: Literal["auto", "cpu"]) -> Endpoint:
    """The function of a model or an index, by the files of its folder."""
    folder = Path(model)
    if (folder / "index.json").is_file():
        from finetune.embed.index import Index

        index = Index(folder, device)

        def search(texts: Sequence[Any]) -> Answers:
            queries = plain_texts(texts, "/search")
            return [{"text": query, "hits": [hit._asdict() for hit in index.search(query)]} for query in queries]

        return Endpoint("/search", "The ten best passages for each text", search)
    if (folder / "modules.json").is_file():
        from finetune.embed.embedder import load_embedder

        embedder = load_embedder(folder, device)

        def embed(texts: Sequence[Any]) -> Answers:
            plain = plain_texts(texts, "/embed")
            vectors = embedder.encode(plain).tolist()
            return [{"text": text, "vector": vector} for text, vector in zip(plain, vectors, strict=True)]

        return Endpoint("/embed", "One vector of length 1 for each text", embed)
    from finetune.inference.predict import TaskModel
    from finetune.saved_models.load import load_model

    task_model = TaskModel(load_model(model, device))
    title = f"Predictions for {task_model.task.name}: {task_model.task.predicts}"
    return Endpoint("/predict", title, task_model.predict)


def plain_texts(texts: Sequence[Any], path: str) -> list[str]:
    """The texts in NFC; ``BadInput`` for a list or a record."""
    if not all(isinstance(text, str) for text in texts):
        raise BadInput(f"{path} takes texts, no lists or records")
    return [normalize("NFC", text) for text in texts]


def make_app(endpoints: Sequence[Endpoint], hosts: Sequence[str]) -> Any:
    """The FastAPI application; bad input gives status 422 and one sentence under ``detail``."""
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse

    from launch.local_server import RequestLimits

    app = FastAPI(title="malmoi", description="One result for each text, in order.")
    app.add_middleware(RequestLimits, hosts=hosts, max_bytes=MAX_BYTES)
    lock = threading.Lock()  # one batch at a time; FastAPI calls the functions in threads

    def add(endpoint: Endpoint) -> None:
        @app.post(endpoint.path, summary=endpoint.summary, operation_id=endpoint.path.strip("/"))
        def answer(batch: Batch) -> dict[str, Answers]:
            with lock:
                return {"results": endpoint.answer(batch.texts)}

    for endpoint in endpoints:
        add(endpoint)

    @app.get("/health", summary="Whether the server answers")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.exception_handler(BadInput)
    def refuse(request: Any, error: BadInput) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    def explain(request: Any, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:]))
        return JSONResponse({"detail": f"{place or 'body'}: {problem_text(first)}"}, 422)

    return app
