"""Words that lead into a sentence or close it, so that plain sentences differ as they do between writers. Data only."""

from __future__ import annotations

from launch.sample.documents.telling import lines

NEWS = lines("""
한편
이런 가운데
[이날 나온 설명|발표 자료|현장 관계자|취재진]에 따르면
[취재 결과|본지 취재 결과|확인 결과|본지가 확인한 결과]
[아울러|또|이와 함께|이와 별도로]
[알려진 바에|전해진 바에] 따르면
""")
ABOUT_CITY = lines("""
{city} [관계자|주민들|안팎의 설명]에 따르면
""")
ABOUT_ORG = lines("""
{org} [측|관계자]에 따르면
[{day} |]{org} 발표[에 따르면|를 보면]
""")
ABOUT_PERSON = lines("""
{person} [측|쪽]에 따르면
{person:과} 가까운 [인사에 따르면|관계자에 따르면]
""")
REVIEW = (
    "솔직히",
    "진짜",
    "와",
    "음",
    "근데",
    "그리고",
    "개인적으로는",
    "일단",
    "확실히",
    "역시",
    "오",
    "참고로",
    "무엇보다",
)
GOOD_TAILS = (" ㅎㅎ", " ㅋㅋ", "!", "!!", "~", " ^^", ".", ".", ".", ".", ".", "~~", " ㅎ", " :)")
BAD_TAILS = (" ㅠㅠ", "...", " ㅠ", ";;", ".", ".", ".", ".", ".", "..", " ㅡㅡ", " ㅜㅜ")
