"""The embed stage: one training for each seed, scores next to the baselines, one folder to use.

```
data.json                                what the pairs are, and what decontamination dropped
choices.jsonl                            for search: questions with a right and a wrong passage, to train a reranker
<purpose>/<encoder>/seed-<n>/            training.json, model/; a checkpoint while it trains
<set>/<system>/seed-<n>/                 scores.json, predictions.jsonl, of trained models and baselines
model/                                   the model of the first seed, to use and to publish
```
The first seed is used, not the best one, so its scores are not selected on the sets that they are from.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpus.documents.accelerator import PrecisionName, choose_precision, find_device
from corpus.documents.atomic_files import atomic_dir, atomic_write, read_json_object, write_json
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.embed import embedder as embedding
from finetune.embed import evaluate
from finetune.embed.config import EmbedConfig
from finetune.embed.data import NOTHING_TO_SCORE, EvaluationSet, Item, read_evaluation, read_items
from finetune.embed.retrieval import Reranker, mine_negatives, rank_again, rank_baselines, rank_trained, write_choices
from finetune.embed.train import train
from finetune.encoder.loading import check_encoder, load_config
from finetune.queue.jobs import Job, digest
from finetune.queue.pool import one_thread
from finetune.queue.progress import failures
from finetune.run import finish_jobs
from finetune.score.scores import installed_versions
from finetune.train.trainer import seed_everything

log = logging.getLogger(__name__)

MODEL_NAME, TRAINING_NAME, DATA_NAME = "model", "training.json", "data.json"
NOT_TRAINING = {"seeds", "device", "evaluate", "distractors", "train", "max_pairs", "model", "negatives_by", "reranker"}
STATIC_WIDTH, STATIC_RATE, STATIC_TOKENS = 512, 3e-2, 1024  # whole passages cost next to nothing
Find = Callable[[Sequence[str], Sequence[str]], set[int]]


class EmbedInputs(NamedTuple):
    """What the stage reads.

    Fields:
        documents: folder of document shards; ``klue``: folder of official files; None: there are none.
        encoder: folder or Hub name of ``config.model``.
        find_contaminated: ``(evaluation texts, texts)`` to the numbers of the texts that contain one of the former.
    """

    documents: Path | None
    klue: Path | None
    encoder: str
    find_contaminated: Find


class Prepared(NamedTuple):
    items: list[Item]
    sets: list[EvaluationSet]
    counts: dict[str, Any]
    digest: str  # of the items

    @property
    def texts(self) -> list[str]:
        """Texts of the items and passages, in which the weight of a token is counted."""
        passages = [text for part in self.sets for text in part.passages.values()]
        return [*(text for item in self.items for text in item.texts), *passages]


def run(config: EmbedConfig, inputs: EmbedInputs, out: Path, *, workers: int = 1) -> dict[str, Any]:
    """Train and score all seeds; finished trainings are kept. Returns counts for the manifest.

    ``BadInput``: nothing to train or to score on, an encoder that does not fit, or failed jobs (at the end).
    """
    check_encoder(inputs.encoder)
    check_widths(config, load_config(inputs.encoder).hidden_size)
    prepared = prepare(config, inputs)
    write_json(out / DATA_NAME, prepared.counts)
    write_choices(prepared.items, out)
    device = find_device(config.device, "embed.device")
    precision = choose_precision("auto", "embed.device", device).precision if device.type != "cpu" else "fp32"
    jobs = [Job(config.purpose, config.model, inputs.encoder, seed, FinetuneConfig()) for seed in config.seeds]
    work = partial(train_one, config=config, prepared=prepared, precision=precision, out=out)
    settings = FinetuneConfig(device=config.device)
    results, failed = finish_jobs(jobs, 0, work, out, settings, device=device, workers=workers)
    if failed:
        raise BadInput(failures(failed, len(jobs)))
    score_baselines(config, inputs.encoder, prepared, out)
    with atomic_dir(out / MODEL_NAME) as folder:
        shutil.copytree(jobs[0].folder(out) / MODEL_NAME, folder, dirs_exist_ok=True)
    info = read_json_object(out / MODEL_NAME / embedding.INFO_NAME, "train again")
    _write_info(out / MODEL_NAME, info, sorted(results, key=lambda result: int(result["seed"])))
    return {"trainings": len(results), **prepared.counts}


def prepare(config: EmbedConfig, inputs: EmbedInputs) -> Prepared:
    """Evaluation sets, and training examples none of whose texts contains an evaluation text."""
    sets = read_evaluation(config, inputs.documents, inputs.klue)
    if not sets:
        raise BadInput(NOTHING_TO_SCORE)
    items = read_items(config, inputs.documents, inputs.klue)
    texts = list(dict.fromkeys(text for item in items for text in item.texts))
    held = {texts[i] for i in inputs.find_contaminated([text for part in sets for text in part.texts], texts)}
    clean_items = [item for item in items if not held.intersection(item.texts)]
    if not clean_items:
        raise BadInput("embed: every training pair contains an evaluation text; give other files in embed.train")
    if config.purpose == "search":
        miner = embedding.load_embedder(Path(config.negatives_by), config.device) if config.negatives_by else None
        clean_items = mine_negatives(clean_items, miner.encode if miner else None)
    read, left = (Counter(item.source for item in each) for each in (items, clean_items))
    dropped = {source: read[source] - left[source] for source in read}
    log.info("%d training examples; %d contain an evaluation text and are dropped", left.total(), sum(dropped.values()))
    counts = {
        "examples": dict(left), "contaminated": dropped,
        "evaluation": {part.name: len(part.guids) for part in sets},
    }  # fmt: skip
    state = hashlib.blake2b(json.dumps(clean_items, ensure_ascii=False).encode(), digest_size=16)
    return Prepared(clean_items, sets, counts, state.hexdigest())


def train_one(
    job: Job, *, parts: int, config: EmbedConfig, prepared: Prepared, precision: PrecisionName, out: Path
) -> dict[str, Any]:
    """Train and score one seed, or find it finished; returns the content of its ``training.json``."""
    folder = job.folder(out)
    settings = config.model_dump(mode="json", exclude=NOT_TRAINING)
    trained_by = _digest(settings, prepared.digest, digest(job.encoder), job.seed, precision)
    scored_by = _digest(trained_by, [part._asdict() for part in prepared.sets])
    done = _read(folder / TRAINING_NAME)
    if done.get("fingerprint") != trained_by or not (folder / MODEL_NAME / embedding.INFO_NAME).is_file():
        done = _train(job, folder, config, prepared, precision, parts, trained_by)
    if done.get("scored") != scored_by:
        embedder = embedding.load_embedder(folder / MODEL_NAME, config.device)
        encoders: dict[str, evaluate.Encode] = {job.model: partial(embedder.encode, precision=precision)}
        for width in config.dimensions:
            encoders[f"{job.model}, {width} wide"] = partial(encoders[job.model], dimensions=width)
        results, weight = score_trained(prepared.sets, encoders, job.seed, out, fingerprint=trained_by)
        scores = {
            r["task"] + r["model"].removeprefix(job.model): {k: r[k] for k in ("scores", "intervals", "n")}
            for r in results if r["model"] in encoders
        }  # fmt: skip
        done |= {"scored": scored_by, "scores": scores, "weight": weight, "log_line": f"{job}: {_line(scores)}"}
        info = {key: done[key] for key in done if key not in ("log_line", "scored", "fingerprint")}
        _write_info(folder / MODEL_NAME, info, [info])
        write_json(folder / TRAINING_NAME, done)
    for leftover in folder.glob("checkpoint-*"):
        shutil.rmtree(leftover)
    return done


def _train(
    job: Job, folder: Path, config: EmbedConfig, prepared: Prepared, precision: PrecisionName, parts: int, key: str
) -> dict[str, Any]:
    began = time.process_time()
    seed = seed_everything(job.seed, "embed")
    net, tokenizer = embedding.build_net(job.encoder, config.pooling)
    net.to(find_device(config.device, "embed.device"))
    checkpoint = folder / f"checkpoint-{key[:8]}"
    query, passage = config.prompts.get("query", ""), config.prompts.get("passage", "")
    items = [item._replace(texts=(query + item.texts[0], *(passage + text for text in item.texts[1:])))
             for item in prepared.items]  # fmt: skip
    about = train(net, tokenizer, items, config, seed, checkpoint, precision=precision, parts=parts)
    embedder = embedding.Embedder(net, tokenizer, config.max_tokens, config.prompts)
    name = Path(job.model).name if Path(job.model).is_dir() else job.model
    info = {
        "format": 1, "for": config.purpose, "encoder": name, "seed": job.seed, "pooling": config.pooling,
        "max_tokens": config.max_tokens, "data": prepared.counts, **about, "precision": precision,
        "settings": config.model_dump(mode="json", include={"batch_size", "epochs", "graded_epochs", "lr"}),
        "cpu_seconds": round(time.process_time() - began, 1), "versions": installed_versions(*evaluate.PACKAGES),
    }  # fmt: skip
    embedding.save_embedder(folder / MODEL_NAME, embedder, info, embedding.embedding_card(info, [info]))
    return info | {"fingerprint": key}


def check_widths(config: EmbedConfig, width: int) -> None:
    """``BadInput`` if a shortened vector would be as long as those of the encoder."""
    if wide := [number for number in config.dimensions if number >= width]:
        raise BadInput(f"embed.dimensions: {wide[0]}, but vectors of {config.model} have {width} numbers; give fewer")


def score_trained(
    sets: Sequence[EvaluationSet], encoders: Mapping[str, evaluate.Encode], seed: int, out: Path, **about: Any
) -> tuple[list[dict[str, Any]], float]:
    """Write the results of a trained model, the first of ``encoders``, alone and with counting, and those of its
    shortened vectors; returns them, and the weight next to BM25."""
    results, weight, name = [], 0.0, next(iter(encoders))
    for part in sets:
        if part.kind == "ranking":
            by_system, weight = rank_trained(part, encoders)
        else:
            systems = evaluate.pair_systems(part, encoders, name)
            by_system = {
                system: evaluate.rows_of_pairs(part, scores)
                for system, scores in systems.items()
                if system != evaluate.TFIDF
            }
        results += [evaluate.write_result(out, part, system, seed, rows, **about) for system, rows in by_system.items()]
    return results, weight


def score_baselines(config: EmbedConfig, encoder: str, prepared: Prepared, out: Path) -> None:
    """The encoder without training, and vectors of tokens trained on the same pairs, unless they are there."""
    reranker = Reranker(config.reranker, config.device) if config.reranker else None
    sets, again = [part._asdict() for part in prepared.sets], digest(config.reranker) if config.reranker else ""
    key = _digest(prepared.digest, digest(encoder), sets, again, config.max_tokens, STATIC_WIDTH, STATIC_RATE)
    last = [out / part.name / evaluate.STATIC / f"seed-{config.seeds[-1]}" / "scores.json" for part in prepared.sets]
    if all(_read(path).get("fingerprint") == key for path in last):
        return
    device = find_device(config.device, "embed.device")
    with one_thread():
        net, tokenizer = embedding.build_net(encoder, config.pooling)
        untrained = embedding.Embedder(net.to(device), tokenizer, config.max_tokens)
        faster = config.model_copy(update={"lr": STATIC_RATE, "micro_batch": None, "max_tokens": STATIC_TOKENS})
        seed_everything(config.seeds[0], "embed")
        static = embedding.EmbeddingNet(
            embedding.StaticEncoder(tokenizer, prepared.texts, STATIC_TOKENS, STATIC_WIDTH), "mean"
        )
        folder = out / config.purpose / evaluate.STATIC
        train(static.to(device), tokenizer, prepared.items, faster, config.seeds[0], folder)
        shutil.rmtree(folder, ignore_errors=True)
        encoders: dict[str, evaluate.Encode] = {
            evaluate.STATIC: embedding.Embedder(static, tokenizer, STATIC_TOKENS).encode,
            evaluate.UNTRAINED: untrained.encode,
        }  # fmt: skip
        for part in prepared.sets:
            if part.kind == "ranking":
                by_system = (
                    rank_baselines(part, partial(tokenizer.tokenize, verbose=False)) | rank_trained(part, encoders)[0]
                )
                by_system |= rank_again(part, reranker) if reranker else {}
            else:
                by_system = {
                    name: evaluate.rows_of_pairs(part, scores)
                    for name, scores in evaluate.pair_systems(part, encoders).items()
                }
            for system, rows in by_system.items():
                for seed in config.seeds:
                    evaluate.write_result(out, part, system, seed, rows, fingerprint=key)


def _write_info(folder: Path, info: dict[str, Any], seeds: Sequence[dict[str, Any]]) -> None:
    write_json(folder / embedding.INFO_NAME, info)
    atomic_write(folder / "README.md", embedding.embedding_card(info, seeds))


def _line(scores: dict[str, Any]) -> str:
    """One metric of each set: Spearman for graded pairs, else the first."""
    parts = []
    for name, result in scores.items():
        metric = "spearmanr" if "spearmanr" in result["scores"] else next(iter(result["scores"]))
        value = result["scores"][metric]
        parts.append(f"{name} {metric} {'undefined' if value is None else f'{value:.2f}'}")
    return ", ".join(parts)


def _digest(*values: Any) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    return read_json_object(path, "delete it and run again") if path.is_file() else {}
