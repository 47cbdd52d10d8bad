"""Clauses about people, by relation; see ``telling.py``. Data only."""

# ruff: noqa: E501 - a Hangul syllable counts as two columns
from __future__ import annotations

from launch.sample.documents.telling import blocks

PERSON = blocks("""
# definition
{s} [대한민국의|한국의] {occupation}
{s} {birthplace} 출신[의|인] [대한민국 |]{occupation}
{s} {residence}[{:을} 무대로|에서] 활동하는 {occupation}
# definition_dead
{s} [대한민국의|한국의] {occupation:이었}
{s} {birthplace} 출신의 {occupation:으로} [살았|활동했]
{s} [평생|오랫동안] {residence}에서 활동한 {occupation:으로} [기억되고 있|알려져 있]
# born
{s} {date} {birthplace}에서 [태어났|출생했]
{s} {date} {birthplace} [태생|출생]
{s} {date}[에|,] {birthplace}의 [평범한 가정에서|한 마을에서|작은 동네에서] 태어났
[생일은|생년월일은] {date}[이며|이고] [고향은|출생지는] {birthplace}
{s} {year}년 {birthplace}에서 [태어나|나] [그곳에서 자랐|어린 시절을 보냈]
{birthplace}에서 나고 자랐[고|으며] 생년월일은 {date}
{s} {birthplace:이} [고향이며|고향이고] {date} [태어났|출생했]
{s} {date} {birthplace} [땅에서|한 마을에서] 첫울음을 터뜨렸
# died
{s} {died} {place_of_death}에서 [세상을 떠났|별세했|숨졌|눈을 감았]
{died} {place_of_death}에서 향년 {age}세로 [별세했|세상을 떠났|영면했]
{s} {age}세이던 {died} {place_of_death}에서 [생을 마감했|숨을 거뒀]
[지병으로 투병하다|노환으로] {died} {place_of_death}에서 [눈을 감았|타계했|별세했]
# school
{s} {school:을} [졸업했|나왔|마쳤]
{school}에서 [공부했|수학했|학창 시절을 보냈]
[최종 학력은|출신 학교는] {school}
{s} {school} 출신
학업은 {school}에서 마쳤
{s} [고향을 떠나|스무 살에] {school}에 [진학했|입학해 학업을 마쳤]
{s} {school} 재학 [시절|중에] [진로를 정했|처음 이 길에 들어섰|평생의 스승을 만났]
# employer
{s} [현재 |]{employer}에서 {title:으로} [일하고 있|재직하고 있]
{s} {employer}의 {title:을} 맡[고 있|아 왔]
{employer} {title:으로} 재직 중
[소속은|직장은] {employer}[이며|이고] 직함은 {title}
{s} {employer}에 [몸담고 있|소속돼 있]
{s} {employer} {title:으로} [널리 |]알려져 있
# spouse
{s} {spouse_job} {spouse:과} [결혼했|부부의 연을 맺었|가정을 꾸렸]
[배우자는|{spouse_word:은}] {spouse_job} {spouse}
{s} {spouse:과} 결혼해 [가정을 이뤘|함께 살고 있|{residence}에 살고 있]
{spouse_job} {spouse:이} {spouse_word}[이며|이고] [두 사람은 동료의 소개로 만났|둘은 오랜 친구였]
{s} {spouse:을} 만나 [결혼했|부부가 됐]
# father
[아버지는|부친은] {father_job} {father}
{s} {father:과} {mother} 사이에서 [태어났|자랐]
{father_job} {father}의 [자녀|{child_word}]
{father:이} [아버지|부친], {mother:이} [어머니|모친]
[부모는|양친은] {father:과} {mother}
{father_job} {father:을} 아버지로 [두었|뒀]
# mother
[어머니는|모친은] {mother_job} {mother}
{mother_job}{:이던} 어머니 {mother:의} 영향을 [많이 |]받았
{s} 어머니 {mother:에게서} [음악을|책 읽기를|성실함을|글쓰기를] 배웠[다고 전해지고 있|]
# children
{children:을} 자녀로 [두었|두고 있]
{s} [슬하에|자녀로] {children:을} [두었|뒀]
[자녀는|자녀로는] {children:이} 있
# sibling_brother
{sibling_job} {sibling:이} [형제|동기]
[형제인|형제로는] {sibling}[{:은} {sibling_job}|{:이} 있]
{s} {sibling_job} {sibling}[{:과} 형제 사이|{:과} 한집에서 자란 형제]
# sibling_other
{sibling_job} {sibling:과} 남매 사이
{sibling:과는} [어릴 때부터 각별한|우애가 깊은] 남매
{s} 남매인 {sibling:과} 함께 [자랐|{birthplace}에서 어린 시절을 보냈]
# sibling_sister
{sibling_job} {sibling:과} 자매 사이
{sibling:과는} [어릴 때부터 각별한|우애가 깊은] 자매
{s} 자매인 {sibling:과} 함께 [자랐|{birthplace}에서 어린 시절을 보냈]
# stage
{s} ‘{alternate}’[{:이라는}|라는 이름의] [예명으로|활동명으로] [활동했|더 잘 알려져 있|이름을 알렸]
[예명은|활동명은|무대에서 쓰는 이름은] ‘{alternate}’
본명보다 ‘{alternate}’{:이라는} 이름이 [더 친숙하다는 평을 받았|널리 알려져 있]
# pen
[호는|필명은|아호는] ‘{alternate}’
{s} ‘{alternate}’{:이라는} [호를|필명을] [썼|사용했|즐겨 썼]
‘{alternate}’{:이라는} [필명으로|호로] [널리 알려져 있|작품을 발표했]
# residence
[지금은|현재|결혼 뒤에는] {residence}에 [살고 있|거주하고 있]
[거주지는|사는 곳은] {residence}
{s} {residence}에 [터를 잡고 살고 있|보금자리를 마련했|정착했]
# religion
종교는 {religion}
{s} [독실한|신실한] {religion} 신자[{:으로} 알려져 있|]
{religion} 신앙을 [가지고 있|지켜 왔]
# work
{s} {work_kind} ‘{work}’{:을} [내놓았|선보였|남겼]
대표작[은|으로는] {work_kind} ‘{work}’[|{:이} 꼽혀 왔]
{s} {year}년 {work_kind} ‘{work}’{:을} [선보이며|내놓으며] [주목받았|호평을 얻었|이름을 알렸]
{year}년 [작인|선보인] {work_kind} ‘{work}’{:으로} [평단의 호평을 받았|대중의 사랑을 받았|자리를 굳혔]
# role
{s} {work_kind} ‘{work}’에 출연했
{year}년 {work_kind} ‘{work}’에서 [인상 깊은 연기를 보여 줬|중요한 역할을 맡았|섬세한 감정 연기로 호평받았]
{work_kind} ‘{work}’{:을} 통해 [연기 폭을 넓혔|관객에게 얼굴을 알렸|주목받았]
[출연작으로는|대표작에는] {work_kind} ‘{work}’{:이} 있
# band
{s} [밴드|음악 그룹] {band}의 {title}
{band}에서 {title:을} 맡고 있
{year}년 {band:을} 결성해 {title:으로} [활동해 왔|무대에 섰]
{s} {band} [멤버로|구성원으로] [활동하고 있|이름을 알렸]
# founder
{s} {year}년 {org:을} [창업했|설립했|세웠]
{field} [분야의|] {org:을} [세운|일으킨|만든] [인물|사람]
{s} {org} [설립자|창업자]
{year}년 {city}에서 {org}의 문을 열었
{s} [동료들과 함께|사재를 털어|빌린 돈으로] {org:을} [세웠|설립했]
# character
{s} [소탈한|꼼꼼한|과묵한|낙천적인|겸손한] 성품으로 [알려져 있|존경받았]
취미는 [등산이며|낚시이며|목공이며|바둑이며|텃밭 가꾸기이며] [책 읽기도 즐겼|새벽에 일어나는 습관이 있]
[젊은 시절|한때] [빵집에서 일했|신문을 배달했|시골 학교에서 아이들을 가르쳤|배를 탔]던 [경험이|일이] [삶의 밑거름이 됐|훗날 큰 도움이 됐]
[주변에서는|동료들은] [말보다 행동이 앞서는|약속을 어기는 법이 없는|늘 먼저 손을 내미는|질문이 많은] 사람이라고 [입을 모았|이야기했|기억하고 있]
[해마다|꾸준히] [모교에 책을|고향에 쌀을|지역 병원에 성금을|보육원에 학용품을] [보내 왔|전해 왔|기부해 왔]
[힘든 시기마다|고비 때마다] [가족의 응원이|스승의 조언이|오랜 벗의 도움이] [힘이 됐|버팀목이 됐]다고 [말했|밝혔]
""")
