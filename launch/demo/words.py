"""The words of the page, English and Korean."""

from __future__ import annotations

WORDS = {
    "about": (
        "Type a sentence. Everything happens on this machine.",
        "문장을 입력하세요. 모든 처리는 이 컴퓨터 안에서만 이루어집니다.",
    ),
    "sentence": ("Sentence", "문장"),
    "pii": ("Personal data", "개인정보"),
    "pii_note": ("found by rules; 0 to 1: how telling the signs are", "규칙으로 찾음 · 0~1: 단서가 확실한 정도"),
    "tree_note": ("arrows lead from a head to its dependents", "화살표: 지배소에서 의존소로"),
    "no_pii": ("None found by the rules.", "규칙으로 찾은 개인정보가 없습니다."),
    "pieces_title": ("Pieces", "토큰"),
    "pieces": ("pieces", "토큰"),
    "unknown": ("unknown", "미등록"),
    "entries": ("entries", "어휘"),
    "fill": ("Fill [MASK]", "[MASK] 채우기"),
    "no_mask": (
        "Write [MASK] in place of a word to see what each model would put there.",
        "단어 자리에 [MASK]를 넣으면 모델이 예측한 토큰을 보여 줍니다.",
    ),
    "empty": ("Nothing typed yet.", "아직 입력한 문장이 없습니다."),
    "too_long": (
        "This has {n:,} characters; the page reads at most {most:,}. Shorten it.",
        "{n:,}자입니다. 최대 {most:,}자까지 볼 수 있으니 줄여 주세요.",
    ),
}
TASKS = {  # titles of panels; a user's own task has its name
    "klue-ner": ("Entities", "개체명"),
    "klue-dp": ("Dependency tree", "의존 구문 분석"),
    "ynat": ("Topic", "뉴스 주제"),
    "wos": ("Dialogue state", "대화 상태"),
}


def words_in(language: str) -> dict[str, str]:
    """The words in ``en`` or ``ko``."""
    return {name: pair[language == "ko"] for name, pair in WORDS.items()}


def task_title(task: str, language: str) -> str:
    """Of a task's panel."""
    return TASKS.get(task, (task, task))[language == "ko"]


EXAMPLES = (
    "문의는 한빛도서관 김하늘 팀장(010-0123-4567)에게 [MASK] 바랍니다.",
    "서울시는 다음 달부터 청년 주택 공급을 크게 늘리기로 했다.",
    "어제 [MASK]에서 열린 경기에서 손흥민이 두 골을 넣었다.",
)
