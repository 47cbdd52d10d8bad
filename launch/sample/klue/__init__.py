"""The eight KLUE tasks of the embedded sample, in the official file formats.

Everything is told about the invented world that the sample's documents tell about, in other words than theirs; the
layout is that of the KLUE repository, so the same readers take these files and the official ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from launch.sample.entities import World
from launch.sample.klue.dp import write_dp
from launch.sample.klue.facts import facts_by_side
from launch.sample.klue.mrc import write_mrc
from launch.sample.klue.ner import write_ner
from launch.sample.klue.nli import write_nli
from launch.sample.klue.relations import write_relations
from launch.sample.klue.sts import write_sts
from launch.sample.klue.wos import write_wos
from launch.sample.klue.ynat import write_ynat

SIZES: Mapping[str, Mapping[str, int]] = {  # examples; questions for mrc, dialogues for wos
    "ynat": {"train": 1_050, "dev": 280},
    "klue-sts": {"train": 700, "dev": 200},
    "klue-nli": {"train": 900, "dev": 240},
    "klue-ner": {"train": 800, "dev": 250},
    "klue-re": {"train": 900, "dev": 240},
    "klue-dp": {"train": 700, "dev": 200},
    "klue-mrc": {"train": 600, "dev": 200},
    "wos": {"train": 150, "dev": 40},
}


def write_klue(world: World, seed: int, out: Path) -> dict[str, int]:
    """Write a folder laid out like the KLUE repository: ``out/ynat-v1.1/ynat-v1.1_train.json`` and so on.

    Same world and seed, same bytes. No example of a train file is in the dev file.

    Returns:
        Examples by file, e.g. ``{"ynat_train": 1050, "ynat_dev": 280, …}``; questions for mrc, dialogues for wos.
    """
    facts = facts_by_side(world)
    write_ynat(world, seed, out / "ynat-v1.1", SIZES["ynat"])
    write_sts(facts, seed, out / "klue-sts-v1.1", SIZES["klue-sts"])
    write_nli(facts, seed, out / "klue-nli-v1.1", SIZES["klue-nli"])
    write_ner(world, facts, seed, out / "klue-ner-v1.1", SIZES["klue-ner"])
    write_relations(world, seed, out / "klue-re-v1.1", SIZES["klue-re"])
    write_dp(world, seed, out / "klue-dp-v1.1", SIZES["klue-dp"])
    write_mrc(world, seed, out / "klue-mrc-v1.1", SIZES["klue-mrc"])
    write_wos(world, seed, out / "wos-v1.1", SIZES["wos"])
    return {f"{task}_{side}": count for task, sides in SIZES.items() for side, count in sides.items()}
