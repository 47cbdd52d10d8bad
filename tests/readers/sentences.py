"""Sentences that programs which read a tokenizer could take apart differently: invented, and always the same ones.

Words of everyday Korean with something odd between them or grown together with them. A fifth of the mixed sentences is
in NFD, or as NFKC makes them. Left out is what no folder can make alike (``READ_DIFFERENTLY``), and lone surrogates,
which are no text.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator

WORDS = """
나는 학교에서 친구들과 점심을 먹었다 연구자는 새로운 모형을 만들었고 결과가 좋았다고 말했다 오늘 서울의 날씨가
맑아서 공원으로 산책을 갔다 배송이 너무 늦어요 화면은 정말 예쁘네요 영화를 보다가 울었습니다 값이 싸지만 넓고 밝은
집이다 대통령이 국회에 출석하여 예산안을 설명하였다 닭을 삶아 꿇고 앉아 괜찮아 읽었던 훑어보니 않겠다 그랬쟎아
안녕 현아 주인 까지 이던 the model BERT is 2,000원 3.5% (주) "인용" 'ㅇㅋ' A/S e-mail
"""
ODD = """
comments: ㅋㅋㅋ ㅎㅎㅎㅎ ㅠㅠ ㅜㅜ ㅇㅇ ㄴㄴ ㄱㅅ ㅋㅋㅋㅋㅋㅋㅋㅋㅋㅋ ㅏㅏ
comments: ㅇㅅㅇ ㄹㅇㅋㅋ 넵ㅋ 헐ㅠ ㅡㅡ; ^^; ㅗ ㅄ ㄳ ㅘㅖ
emoji: 😀 😂😂 🥲 ❤ ♥ ★☆ ☎ 👍🏽 👩🏻 ☺ ✂ 🫠
emoji: 😀안녕 웃음😀웃음
joined emoji: 👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 🧑🏽\u200d💻 👩\u200d❤\ufe0f\u200d💋\u200d👨 🇰🇷
joined emoji: 🇰🇷🇺🇸 🇰 🏴\U000e0067\U000e0062\U000e007f 1\ufe0f\u20e3 #\ufe0f\u20e3 ❤\ufe0f ➡\ufe0f ☎\ufe0e ㊗\ufe0f
rare syllables: 뷁 쀍 햏햏 꿻 뛣 쭳은 밟힣 긁갉 샾 펲시 똠방 홣 걝 뿞다 궭 힣힣힣
circled: ① ②번 ⑧까지 ⓐ ㉠ ㉮는 ㈀ ㊀ ㊙ ❶ ⑳ ➀ ㋀ ㏠
compatibility jamo: ㄱ ㄳ ㄵ ㄶ ㄺ ㅀ ㄸ ㅃ ㅉ ㅐ ㅒ ㅚ ㅢ ㅣ ㆍ ㆎ ㅿ ㆁ ㅸ ㅹ ㆅ \u3164 ﾡ ﾢ ￂ ﾾ
conjoining jamo: \u1100 \u1112\u1112 \u1161 \u11a8 \u1100\u1161\u11a8\u11a8 \u110f\u110f\u110f \u1161\u1100
conjoining jamo: 가\u11a8 각\u11a8 \u1100가 \u115f\u1161 \u1100\u1160 \u11bc다
old Hangul: ᄒᆞᆫ글 ᄀᆞᄅᆞᆷ 나랏말ᄊᆞ미 ᄠᅳᆷ ᅀᅵ ᅌᅵ ᄫᅳᆯ ꥠᅡ ᄀힰ 가ퟋ 듀ᇰ귁 ㆍ래아 \u302e가 국\u302f
Hanja: 漢字 大韓民國 金(김) 美國産 北韓에서 樂 \uf914 \uf9bf \u3400 々 〇 中文字 㐂 \u2f00 ⺀
full-width: Ａｂｃ １２３ ！？ ，。 （주） ｶﾞｷﾞ ￦1,000 ～ 〜 ㈜ ㎏ ㎡당 ℃ №1 Ⅷ ⅲ
invisible: \u200b \u200c \u200d \ufeff \u2060 \u00ad \u200e \u202a\u202c \u061c \u034f \ufffd \x00 \x07 \x7f \u180e
invisible: \ue000 \U000e0001 \U000f0000
special tokens: [MASK] [SEP] [CLS] [PAD] [UNK] [mask] [MASK]는 나[SEP]너 [unused0] [unused1]도 <s> </s> <mask> ##는 ##
special tokens: [MASK][MASK] [[MASK]] [UNK]가
kana: が ガンダム カタカナ ひらがな パ ゔ ヷ ー っ ｱ が학교 도쿄タワー か\u3099 は\u309a
Cyrillic, Greek: привет Москва й ё Ї αβγ Ω ά ϊ Σίσυφος σς 학교й α파
accents: café naïve Ångström İstanbul ı ß ẞ Ø ñ über Việt ệ e\u0301 a\u0308\u0323 가\u0301 é학교 é\u0301 \u0301가
accents: ㅋ\u0301 q\u0307\u0323 ł đ æ Ǆ \u0344 \u1e9b\u0323 ำ
ligatures, fractions: ﬁ ﬂ ﬃ ½ ⅓ ² ³승 ₂ ™ ® ½컵 ﬁ파 ﷺ ℡ ㍿ ㍻ ａ
symbols: ※ ○○ ■ → ↔ ▶보기 ♬ ∼ … ‥ · ‧ ・ 「말」 『책』 《글》 〈시〉 ― – ‘인용’ “인용”
symbols: € £ ₩ ￡ ∑ ≤ √ ° ′ ″ ¡ ¿ § ¶ ` ´ ¨ ˜ ＾ | ￨ ¦ + ＋ < > = $ ^
other scripts: สวัสดี नमस्ते שָׁלוֹם مَرحبا ქართული հայ 𝐀𝐁 𝒳 🄰 ᚠ Ꭰ ꭰ ដូ অ্যা தமிழ் మ ก็ བོད
"""
BLANKS = ("\u3000", "\u00a0", "\u2003", "\u2009", "\u202f", "\u205f", "\u1680", "\u2028", "\u2029", "\t", "\x85", "  ")
LONG = (
    "가" * 34, "각" * 33, "각" * 34, "한" * 51, "뷁" * 101, "a" * 100, "a" * 101, "ㅋ" * 100, "ㅋ" * 101, "1" * 150,
    "漢" * 120, "!" * 120, "가" * 50 + "😀", "é" * 60, "각" * 33 + "a",
)  # fmt: skip
OFTEN = ("comments", "emoji", "rare syllables", "circled")  # drawn twice as often, as people write them

READ_DIFFERENTLY = {
    "JavaScript": ("\U00020000영화", "冬결과"),  # knows Han up to U+FFFF only: further ones grow together with words
    "BertTokenizer of transformers 4, slow": ("🪿", "\ufdd0가"),  # drops what Python's own tables do not know
}


def make_sentences(count: int, seed: int = 14) -> list[str]:
    """N sentences without line feeds: every unusual text alone, then between and inside words."""
    kinds: dict[str, list[str]] = {"blanks": list(BLANKS), "long": list(LONG)}
    for line in ODD.strip().split("\n"):
        kind, _, texts = line.partition(": ")
        kinds.setdefault(kind, []).extend(texts.split(" "))
    alone = [text for texts in kinds.values() for text in texts]
    mixed = _mix(kinds, random.Random(seed))
    return [*alone, *(next(mixed) for _ in range(count - len(alone)))][:count]


def _mix(kinds: dict[str, list[str]], rng: random.Random) -> Iterator[str]:
    words, drawn = WORDS.split(), [*kinds, *OFTEN]
    while True:
        parts = rng.choices(words, k=rng.randint(2, 9))
        for _ in range(rng.randint(1, 4)):
            odd, place = rng.choice(kinds[rng.choice(drawn)]), rng.randrange(len(parts))
            word = parts[place]
            cut = rng.choice((0, len(word), rng.randint(0, len(word))))
            parts[place] = word[:cut] + rng.choice(("", " ")) + odd + rng.choice(("", " ")) + word[cut:]
        sentence, form = " ".join(parts), rng.random()
        yield sentence if form > 0.2 else unicodedata.normalize("NFD" if form > 0.05 else "NFKC", sentence)
