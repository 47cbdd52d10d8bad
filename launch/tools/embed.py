"""Tools of ``malmoi embed``: encode texts, build an index over documents, search it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import typer

from corpus.documents.errors import BadInput
from corpus.documents.escaping import escape_controls
from launch.errors import LaunchError, require

PASSAGE_CHARS = 600  # sentences are joined up to this length
SHOWN_CHARS = 160  # of a passage on the terminal
Device = Annotated[Literal["auto", "cpu"], typer.Option(help="auto: the accelerator if there is one.")]


def encode(
    model: Annotated[Path, typer.Argument(help="Embedding model: a folder that `malmoi embed` wrote.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Text file, one text a line.")],
    target: Annotated[Path, typer.Argument(metavar="OUTPUT.npy", help="NumPy file for the vectors, float32.")],
    device: Device = "auto",
) -> None:
    """Encode a text file: one vector of length 1 for each line, so that a dot product is a cosine.

    Example:  malmoi embed encode runs/smoke/embed/model titles.txt titles.npy
    """
    if target.suffix != ".npy":
        raise LaunchError(f"{target}: the output is a NumPy file; name it {target.stem}.npy")
    import numpy as np

    from corpus.documents.atomic_files import atomic_file
    from finetune.data.files import read_text
    from finetune.embed.embedder import load_embedder

    lines = [line.removesuffix("\r") for line in read_text(source).removesuffix("\n").split("\n")]
    if not any(map(str.strip, lines)):
        raise BadInput(f"{source}: no text here; expected at least one line")
    vectors = load_embedder(model, device).encode(lines)
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)
    typer.echo(f"{target}: {vectors.shape[0]:,} vectors of width {vectors.shape[1]}")


def index(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder to write; an older index is replaced.")],
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE…", help="Text files, or folders of document shards.")],
    field: Annotated[str, typer.Option(help="Key or column of the text, in JSON lines and Parquet.")] = "text",
    model: Annotated[str | None, typer.Option(help="Embedding model. Default: BM25 alone.")] = None,
    weight: Annotated[
        float | None, typer.Option(min=0.0, help="Weight of its cosines. Default: what `malmoi embed` chose, often 0.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Index documents for `malmoi embed search`: BM25 on character bigrams and, with --model, vectors.

    Example:  malmoi embed index my-index runs/smoke/corpus/documents
    """
    require("malmoi embed", ["bm25s", *(["torch", "transformers"] if model else [])])
    from finetune.embed.index import INDEX_NAME, build_index

    if folder.exists() and not (folder / INDEX_NAME).is_file():
        raise LaunchError(f"{folder}: exists and is no index; give another name")
    if weight is not None and model is None:
        raise LaunchError(f"--weight {weight}: of which vectors? add --model FOLDER")
    about = build_index(passages_of(sources, field), folder, model, weight, device)
    dense = f", cosines of {model} with weight {about['weight']}" if about["weight"] else ""
    typer.echo(f"{folder}: {about['passages']:,} passages, BM25 on character bigrams{dense}")


def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder that `malmoi embed index` wrote.")],
    query: Annotated[str, typer.Argument(help="Question or words.")],
    count: Annotated[int, typer.Option("--count", min=1, help="Number of passages.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines with id, score and whole text.")] = False,
    reranker: Annotated[
        str | None, typer.Option(help="Model of kind choice that puts the best passages of the index in order.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Search an index: the best passages with id and score.

    Example:  malmoi embed search my-index '보리밥 맛있는 집'
    """
    require("malmoi embed", ["bm25s"])
    from finetune.embed.index import Index

    if reranker is None:
        hits = Index(folder, device).search(query, count)
    else:
        from finetune.embed.retrieval import READ_AGAIN, Reranker

        model, candidates = Reranker(reranker, device), Index(folder, device).search(query, max(count, READ_AGAIN))
        scores = model.score([(query, hit.text) for hit in candidates]).tolist()
        again = [hit._replace(score=score) for hit, score in zip(candidates, scores, strict=True)]
        hits = sorted(again, key=lambda hit: -hit.score)[:count]
    for hit in hits:
        text = " ".join(hit.text.split())
        excerpt = text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
        plain = f"{hit.score:.3f}  {escape_controls(hit.id)}  {escape_controls(excerpt)}"
        typer.echo(json.dumps(hit._asdict(), ensure_ascii=False) if as_json else plain)
    if not hits and not as_json:
        typer.echo("nothing found")


def passages_of(sources: Iterable[str], field: str = "text") -> Iterator[tuple[str, str]]:
    """Ids and passages of folders with document shards, then of text files (all formats of ``corpus.inputs``)."""
    from corpus.documents.shards import read_documents, shard_paths
    from corpus.reading.inputs import find_inputs, plan_units
    from corpus.reading.read import NO_TEXT, RejectedRecord, read_unit
    from corpus.sentences.split import split_sentences

    shards = {source: shard_paths(Path(source)) for source in sources if any(Path(source).glob("shard-*.parquet"))}
    for shard in chain.from_iterable(shards.values()):
        for document in read_documents(shard):
            yield from join_sentences(document.id, document.sentences)
    for unit in plan_units(find_inputs([s for s in sources if s not in shards], {}, field), feed=False):
        for record in read_unit(unit, Counter()):
            if isinstance(record, RejectedRecord):
                problem = f"no text under {field!r}; name another key with --field, or" * (record.reason == NO_TEXT)
                problem = problem or f"{record.reason.replace('_', ' ')};"
                raise BadInput(f"{unit.input.path}, line {record.line}: {problem} correct or remove the line")
            yield from join_sentences(record.id, split_sentences(record.text))


def join_sentences(name: str, sentences: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Passages of whole sentences, about ``PASSAGE_CHARS`` long, named ``name#1`` and so on."""
    held, number = "", 1
    for sentence in sentences:
        if held and len(held) + len(sentence) >= PASSAGE_CHARS:
            yield f"{name}#{number}", held
            held, number = "", number + 1
        held = f"{held} {sentence}".strip()
    if held:
        yield f"{name}#{number}", held
