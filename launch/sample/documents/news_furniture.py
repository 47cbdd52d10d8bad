"""What surrounds news text on the web: bylines, captions, links, copyright lines, remnants of mark-up. Data only.

The corpus stage's noise rules are to find these; real sentences that look alike (기자회견, 사진을 찍었다) must survive.
"""

from __future__ import annotations

from launch.sample.documents.telling import lines

BYLINES = lines("""
({city_short}={media}) {reporter} 기자 =
[{media} {reporter} 기자]
[{city_short}={media}] {reporter} 기자 =
{media} {reporter} 기자 =
【{city_short}={media}】 {reporter} 기자 =
{reporter} 기자 =
""")
CAPTIONS = lines("""
[사진={media}]
[사진={org_or_city} 제공]
(사진={media})
/사진={media}
▲ {caption} [사진={media}]
▲ {caption} ⓒ{media}
""")
TAILS = lines("""
무단전재 및 재배포 금지
<저작권자 ⓒ {media}, 무단전재 및 재배포 금지>
저작권자 © {media}. 무단 전재-재배포 금지
Copyright ⓒ {media}. All rights reserved.
▶ 관련기사: {other}
▶ 포털에서 {media} 구독하기
☞ {media} 바로가기
▷ 많이 본 기사: {other}
#{tag1} #{tag2} #{tag3}
#{tag1} #{topic}뉴스
<br>
<p>{other}</p>
&nbsp;&nbsp;
(끝)
[{media} 온라인뉴스팀]
■ 제보하기 ▷ 기사제보 및 보도자료
""")
# look like furniture, are text
SURVIVORS = lines("""
{day} [기자회견에는|기자회견장에는] [취재진|기자] [50여|30여|100명 가까운] [명이|사람이] [몰렸다|모였다].
[{city}에서 만난 |이날 |현장의 ][참석자들은|방문객들은] [휴대전화로|저마다] 사진을 찍으며 [순간을 남겼다|추억을 남겼다].
[{city} |현장 |이날 ][관계자는|담당자는] [발표|통계|조사] 자료의 출처를 [분명히|거듭] 밝혔다.
[{city}|{day}] [현장을 지킨|현장에 있던] 한 기자는 [분위기가 예상보다 차분했다고|열기가 뜨거웠다고] 전했다.
""")
