"""Words that lead into a sentence or close it, so that plain sentences differ as they do between writers. Data only."""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from launch.sample.documents.telling import lines

NEWS = lines("""
한편
이에 따라
이런 가운데
[관계자|당국|현장 관계자]에 따르면
[취재 결과|본지 취재 결과|확인 결과]
[이날|당일] [오전|오후|저녁][까지|에]
[{day}|{day} 현재]
{city}에서는
{city} [안팎에서는|일대에서는|시민들에게 알려진 대로]
[지난해|지난달|지난주|올해 초]와 [비교하면|달리]
무엇보다
[다만|하지만|그러나]
[아울러|또|이와 함께|이어]
[알려진 바로는|들리는 이야기로는]
[앞서|당초] [알려진 것과 달리|예고된 대로|발표된 대로]
[전문가들에 따르면|업계에 따르면|주민들에 따르면]
""")
ABOUT_ORG = lines("""
{org} [측|관계자]에 따르면
{org} [안팎에서는|주변에서는]
[{day} |]{org} 발표[에 따르면|를 보면]
{org:과} 관련해
""")
ABOUT_PERSON = lines("""
{person} [측|쪽]에 따르면
{person:과} 관련해
[{day} |]{person:을} 둘러싸고
""")
REVIEW = (
    "솔직히", "진짜", "와", "음", "아니", "근데", "그리고", "개인적으로는", "일단", "확실히", "역시", "오", "참고로", "무엇보다", "제 기준으로는",
    "저는", "나는", "친구도 그러는데", "같이 간 사람 말로는", "다시 생각해도", "막상 겪어 보니", "하나 말하자면", "굳이 따지면", "다들 그렇듯", "의외로",
    "결론부터 말하면", "아 맞다", "두말할 것 없이", "가족들 말로는", "늘 그렇지만", "이번에도", "생각해 보면",
)  # fmt: skip
REVIEW_TAILS = (" ㅎㅎ", " ㅋㅋ", "!", "!!", "~", " ^^", "...", " ㅠㅠ", " ㅋㅋㅋ", ".", ".", ".", ".", ".", "~~", " ㅎ", "..", " :)", ";;")
