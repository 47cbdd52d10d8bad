"""Which release a data file is: KLUE v1.1 known by its SHA-256, a copy from the Hub by what was written beside it.

The digests are of the unpacked files of github.com/KLUE-benchmark/KLUE (``klue_benchmark``, v1.1); those of train and
dev as jeongukjae/tfds-korean records them in its checksums.tsv. A reduced or edited copy is "unknown", never refused.
"""

from __future__ import annotations

import json
from pathlib import Path

from corpus.documents.errors import BadInput

OFFICIAL = "official v1.1"
UNKNOWN = "unknown"
SOURCE_NAME = "source.json"  # in a benchmark folder that was not copied file by file: {"source": …}

SHA256 = {
    "ynat-v1.1_train.json": "e1ceadbcfc654bfbd241ac8170fe825ceeb6e7c0686f05181befeaef778d0031",
    "ynat-v1.1_dev.json": "608c7cab523aea7c3bab25c5dd4adba2458d4cae77322c523617ed3c4712433b",
    "klue-sts-v1.1_train.json": "9fd1d5d3af73bd06648283be00c87d1b6f6eee90e4854f285df68d0bd5ae91d8",
    "klue-sts-v1.1_dev.json": "b6a0ae0c370e21687f7eef0fdea872a328bb2ecbdb020c546cb870d28606bf80",
    "klue-nli-v1.1_train.json": "8d32e7e4ff97804a23f277fee8740f1341ac82e1c0c7b34f1be21952e4813996",
    "klue-nli-v1.1_dev.json": "0699db82be17766b26e199864e6260443e17ec6e91d1870e876419e388f245b1",
    "klue-ner-v1.1_train.tsv": "34b9d3d9f9ce9e064abc6ba4c27af43b4b70f2d6cde62c076a28e8aaa17cc544",
    "klue-ner-v1.1_dev.tsv": "0f4d5e818f7b82d299c3a87856fc40a706f5943207580ddb252397e387050a54",
    "klue-re-v1.1_train.json": "10101fa3059b340f9971286dd5639daccb5889324182aed31679f038bca05bc4",
    "klue-re-v1.1_dev.json": "d150873430e592a5c569d35b20d88fbbbfba751dae0ffa4d8cbfb6b7321dea14",
    "relation_list.json": "74b9b50540891b21711418a996d3fe3adb92d5d904c6e7c7f4fa7d16be83ed13",
    "klue-dp-v1.1_train.tsv": "0e549204078481f9abe35b5978a07376202ee69b037380b2a22f3eab93d1ca9d",
    "klue-dp-v1.1_dev.tsv": "eb0d8532c0234934e058db0d31f2b01f093128715d6ae51f534a448434a48f01",
    "klue-mrc-v1.1_train.json": "c52c7b82a6015c09ea8be1fea49c912e73012d8b44d3653256d91c65d519c3df",
    "klue-mrc-v1.1_dev.json": "b31bb073e47cdeb19f2f1bae03d916ecabf945140334c75842d6994f700d4f47",
    "wos-v1.1_train.json": "0f92b70451c595fe3cca9f78468c6a175bd3967c6c632446dddcfca5cea3187c",
    "wos-v1.1_dev.json": "36fff54197eb873fcaf825e0170c67590bb8eec966f43e9e7c31bb4da9142431",
    "ontology.json": "d3145ac33dbac0592823af92909c5cbd7c505361cb8145859f3656712c13b6f7",
}


_NAME_OF = {digest: name for name, digest in SHA256.items()}


def version_of(path: Path, digest: str) -> str:
    """``official v1.1``, what ``source.json`` two folders up says (``Hub klue/klue``), or ``unknown``.

    Args:
        path: the data file, ``<benchmark folder>/ynat-v1.1/ynat-v1.1_dev.json``, plain or ``.zst``.
        digest: SHA-256 of its unpacked content, in hex.

    Raises:
        BadInput: the content is another official file's, such as that of train under the name of dev.
    """
    name = path.name.removesuffix(".zst")
    official = _NAME_OF.get(digest, name)
    if official != name:
        raise BadInput(f"{path}: its content is that of the official {official}; put the right file there")
    if digest in _NAME_OF:
        return OFFICIAL
    try:
        source = json.loads((path.parent.parent / SOURCE_NAME).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return UNKNOWN
    found = source.get("source") if isinstance(source, dict) else None
    return found if isinstance(found, str) else UNKNOWN
