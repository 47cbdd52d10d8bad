"""Hashtags, brackets that lost what they held, placeholders of extractors, and blanks."""

from __future__ import annotations

import re

from corpus.noise.rule import NoiseRule

LAYOUT_RULES = (
    # a tag after a quote or bracket is a mention, #include and #ffeeaa are code
    NoiseRule("hashtag", "오늘은 #맛집 #서울_여행 다녀왔다", "오늘은 다녀왔다", (("#",),), re.compile(
        r"#(?<![\w&#/\\(\[<〈《'\"“‘=:;→]#)(?!(?:include|define|undef|if|ifn?def|elif|else|endif|pragma|(?:end)?region"
        r"|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{3})(?![A-Za-z0-9_]))[^\W\d_]\w*")),
    # main() and string[] are code, a <> b is a comparison; with a comma inside they are left by a template
    NoiseRule("empty_bracket", "백남준( , )은 태어났다[]", "백남준은 태어났다",
        ((")", "]", "}", ">", "〉", "》", "」", "』", "】", "”", "’"),), re.compile(
        r"\((?<![A-Za-z0-9_\]>=({,`]\()(?<![A-Za-z0-9_]\(\)\()(?<![=:] \()(?<![A-Z]{2} \()"
        r"(?!(?<=['\"]\()\)['\"]|\) ?=>)\s*\)"
        r"|\((?<![A-Za-z0-9_]\()(?![,;:·/]\))\s*[,;:·/][\s,;:·/]*\)"
        r"|\[(?<![A-Za-z0-9_)\]>=({,'\"`]\[)(?<![A-Za-z0-9_=:,] \[)(?!\[[,;:·/]\])[\s,;:·/]*\]|\{(?<=[가-힣]\{)\s*\}"
        r"|<(?<=[가-힣]<)\s*>|<(?<![A-Za-z0-9_>]<)\s*>(?=[가-힣])|〈\s*〉|《\s*》|「\s*」|『\s*』|【\s*】|“\s*”|‘\s*’")),
    NoiseRule("bracket_gap", "홍길동(, 1915년 ~ )은 시인이다.", "홍길동(1915년 ~ )은 시인이다.",
        (("(, ", ", )"),), re.compile(  # what an extractor emptied; also (發酵, )
        r"\((?=,)(?<=[\w\"'”’」』》 ]\()(?:, ?){1,9} ?(?=[\w\"'“‘《])"
        r"|,(?=(?: ?,){0,9} \))(?<=[가-힣\u3040-\u30ff\u3400-\u9fff],)[, ]{1,19}"),
        lambda match: match[0].rstrip(", ")),
    NoiseRule("wiki_placeholder", "공간 formula_38으로 간다.", "공간으로 간다.", (("_",), ("formula_", "codice_")),
        re.compile(  # of a formula or code
        r" ?(?<![A-Za-z0-9_.])(?:formula|codice)_\d{1,4}(?![A-Za-z0-9_(\[])")),
    NoiseRule("blanks", "여러  칸", "여러 칸", (("  ",),), re.compile("  +"), " "),
    NoiseRule("line_end", "앞 \n뒤", "앞\n뒤", ((" \n",),), re.compile(" \n"), "\n"),
    NoiseRule("line_edges", "앞\n\n \n뒤", "앞\n뒤", (("\n",),), re.compile("\n[ \n]+"), "\n"),
)  # fmt: skip
