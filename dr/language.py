"""Text, Chinese or English -> its language, sentences, ranking terms, names, numbers; whether two questions repeat.

Pure: no file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from dr.sentences import CJK, is_cjk, sentences

__all__ = [
    "content_terms",
    "content_words",
    "detect",
    "fold",
    "names",
    "normalise",
    "numbers",
    "repeats",
    "sentences",
    "similar",
    "stem",
    "tokens",
]

SAME_QUESTION = 0.85  # similarity from which a question with the same numbers and names is a repetition

_LATIN_WORD = r"[A-Za-z\u00c0-\u024f\u0370-\u052f]+"

# Words that carry no content, those that ask included.
STOP_WORDS = frozenset(
    """a an the this that these those of in on at by for to from with without as into onto over under about between
    among is are was were be been being am do does did done have has had having can could will would shall should may
    might must and or nor but not no if then than so too also both either neither each every any all some such same
    other another it its it's he she his her hers him they their them theirs we our us you your i me my one ones there
    here up out down who whom whose what which when where why how whether many much name named called known s t say
    said says regard regarding
    please tell give find list describe explain state identify determine""".split()
)
QUESTION_WORDS = frozenset("who whom whose what which when where why how".split())
# Removed from Chinese text before it is cut into terms, longest first.
_CJK_STOP = sorted(
    """什么时候 什么地方 是什么 为什么 怎么样 是多少 有多少 有哪些 是哪些 哪一年 哪一个 哪一位 请问 请说明 请介绍
    什么 怎么 怎样 如何 多少 几个 几年 哪些 哪个 哪里 哪儿 哪位 哪年 哪家 哪种 哪国 哪所 哪部 哪座 哪本 哪支 哪条
    何时 何地 何人 为何 是否 是不是 有没有 以及 并且 而且 或者 还是 分别 各自 之间 其中 关于 有哪些说法 说法 对于 根据
     按照 通过 由于
    因为 所以 如果 但是 然后 它们 他们 她们 这个 那个 这些 那些 一个 一种 一位 一部 进行 可以 应该 能够
    的 了 是 在 和 与 及 或 吗 呢 吧 啊 也 都 就 而 被 把 对 从 到 由 于 以 为 之 其 该 这 那 它 他 她 谁 哪 几 何
    有 请 将 并 且""".split(),
    key=len,
    reverse=True,
)
_CJK_STOPS = "|".join(_CJK_STOP)
# Words that tell nobody what a question is about, though a text may be ranked by them.
_WEAK = frozenset(
    """according after before during since until while often usually always never ever still just only very really
    actually currently happen happens happened happening occur occurs occurred take takes took taken taking place get
    gets got make makes made making go goes went come comes came much more most less least long far there's per kind
    sort type way thing things exactly because due following using used use uses become became there yet again ago
    today now together first""".split()
)
_CJK_WEAK = "|".join(
    """实际上 实际 发生 之后 之前 以后 以前 经常 通常 大约 大概 目前 现在 当时 一共 总共 具体 主要
    情况 多久 多长 多大 多高 多远 多深 多重 多快 多少次 期间 时候 后来 曾经 已经 一直 仍然 怎么办 到底 究竟
    需要 使用 进行了 每年 每天 每月 每次""".split()
)
_CJK_SHOWN_STOPS = f"{_CJK_WEAK}|{_CJK_STOPS}"
_CJK_UNIT = "[年月日号天个次]"


def detect(text: str) -> str:
    """'zh' or 'en': whether CJK characters outnumber the words of other scripts."""
    return "zh" if sum(map(is_cjk, text)) > len(re.findall(_LATIN_WORD, text)) else "en"


# -- terms ------------------------------------------------------------------------------------------------------------

_PLAIN_WORD = r"[^\W_]+(?:['’][^\W_]+)*"
_WORD = rf"[{CJK}]+|(?:(?![{CJK}])[^\W_])+(?:['’](?:(?![{CJK}])[^\W_])+)*"


def _runs(text: str) -> list[str]:
    """The words of a folded text; of CJK text the runs between other characters."""
    return re.findall(_WORD if _has_cjk(text) else _PLAIN_WORD, text)


def _has_cjk(text: str) -> bool:
    return not text.isascii() and re.search(f"[{CJK}]", text) is not None


def fold(text: str) -> str:
    """NFKC, casefolded, without accents: the form in which words are compared."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    if re.search("[\u00c0-\u024f]", text):
        text = unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text)))
    return text


_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Light stem of a folded English word: plural, -ed, -ing and possessive endings gone."""
    if "'" in word or "’" in word:
        word = re.sub(r"['’]s?$", "", word)
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) > 2 and not _VOWELS.isdisjoint(root):
            if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
                root = root[:-1]
            word = root
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def tokens(text: str) -> list[str]:
    """Terms for ranking, in order and with repetition: stems; of CJK text every character and pair of characters."""
    text = fold(text)
    if not _has_cjk(text):
        return list(map(stem, re.findall(_PLAIN_WORD, text)))
    found: list[str] = []
    for run in re.findall(_WORD, text):
        if is_cjk(run):
            found += run
            found += map("".join, pairwise(run))
        else:
            found.append(stem(run))
    return found


_STOP_STEMS = STOP_WORDS | {stem(w) for w in STOP_WORDS}


def content_terms(text: str) -> list[str]:
    """Distinct terms that carry content, in order: no stop or question words; CJK text as pairs or lone characters."""
    found: dict[str, None] = {}
    for run in _runs(fold(text)):
        if not is_cjk(run):
            if run not in STOP_WORDS and (term := stem(run)) and term not in _STOP_STEMS:
                found[term] = None
            continue
        for part in filter(None, re.split(_CJK_STOPS, run)):
            found.update(dict.fromkeys([part] if len(part) == 1 else map("".join, pairwise(part))))
    return list(found)


def content_words(text: str) -> list[str]:
    """The distinct content words as a reader would name them: folded words, whole CJK runs between stop words."""
    found: dict[str, None] = {}
    runs = _runs(fold(text))
    for before, run in zip(["", *runs], runs, strict=False):
        counted = before.isdigit()  # the 年 behind a number is no part of the word after it
        if is_cjk(run):
            run = re.sub(rf"\A{_CJK_UNIT}", "", run) if counted else run
            found.update(dict.fromkeys(p for p in re.split(_CJK_SHOWN_STOPS, run) if p))
        elif run not in STOP_WORDS and run not in _WEAK and stem(run) not in _STOP_STEMS:
            found[run] = None
    return list(found)


# -- names and numbers ------------------------------------------------------------------------------------------------

_QUOTED = r"《([^《》]{1,60})》|“([^“”]{2,80})”|「([^「」]{1,60})」|『([^『』]{1,60})』|\"([^\"\n]{2,80})\""
_CAPITAL = r"[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f][\w'’.&-]*"
_LINK = r"(?:of|the|de|del|della|di|da|dos|du|des|la|le|van|von|der|den|zu|al|el|bin|ibn|for|in|on|to|&)"
_CAPITALS = rf"{_CAPITAL}(?:\s+(?:{_LINK}\s+){{0,2}}(?:{_CAPITAL}|\d+(?:st|nd|rd|th)?\b))*"
_CJK_LETTER = f"(?![的了是在和与及或吗呢被把从由于为其该这那谁哪几何将并且第])[{CJK}]"
_CJK_NAME = (
    rf"(?:{_CJK_LETTER}){{1,8}}(?:[·•](?:{_CJK_LETTER}){{1,8}})+"
    rf"|(?:{_CJK_LETTER}){{2,12}}"
    r"(?:公司|集团|大学|学院|研究所|研究院|银行|委员会|医院|机场|车站|大桥|运河|半岛|王朝|帝国|共和国|出版社|乐队)"
)


def names(text: str) -> list[str]:
    """Proper names in order, each once: quoted titles, capitalised words, Latin words in CJK text, CJK names."""
    found = [(m.start(), next(g for g in m.groups() if g)) for m in re.finditer(_QUOTED, text)]
    for match in re.finditer(_CAPITALS, re.sub(_QUOTED, lambda m: "\x00" * len(m.group()), text)):
        found += _trimmed(match, text)
    found += [(m.start(), m.group()) for m in re.finditer(_CJK_NAME, text)]
    if _has_cjk(text):
        found += [(m.start(), m.group()) for m in re.finditer(r"[A-Za-z][\w.+-]*", text)]
    kept: dict[str, str] = {}
    for _, name in sorted(found, key=lambda f: f[0]):
        kept.setdefault(fold(name), name)
    padded = {key: f" {' '.join(_runs(key))} " for key in kept}
    everything = "|".join(padded.values())
    return [name for key, name in kept.items() if everything.count(padded[key]) == 1]


def _trimmed(match: re.Match[str], text: str) -> list[tuple[int, str]]:
    """A run of capitalised words without the word that only begins the sentence."""
    words, start = match.group().split(), match.start()
    while words and words[0].casefold().rstrip(".") in STOP_WORDS and words[0] != "I":
        start += len(words.pop(0)) + 1
    while words and (re.fullmatch(_LINK, words[-1]) or (words[-1].isdigit() and len(words) == 1)):
        words.pop()
    name = " ".join(words).rstrip(".,-")
    if re.match(r"\s+\w", text[match.end() :]):  # owns what follows; at the end of a list it is part of the name
        name = re.sub(r"['’]s?$", "", name)
    opens = not text[: match.start()].strip() or text[: match.start()].rstrip()[-1] in ".?!:"
    alone = len(words) == 1 and opens and start == match.start() and name[1:].islower() and name.casefold() in _OPENERS
    return [] if len(name) < 2 or alone else [(start, name)]


_OPENERS = frozenset(
    "during after before since while although however according compare regarding considering given".split()
)

_NUMBER = r"\d+(?:[,，]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_CJK_NUMBER = r"第[〇零一二两三四五六七八九十百千万]+|[〇零一二两三四五六七八九十百千万亿]{2,}"
_NUMBER_WORDS = {
    word: str(value)
    for value, forms in enumerate(
        """one first|two second|three third|four fourth|five fifth|six sixth|seven seventh|eight eighth|nine ninth|ten
        tenth|eleven eleventh|twelve twelfth""".split("|"),
        start=1,
    )
    for word in forms.split()
}


def numbers(text: str) -> list[str]:
    """The numbers of `text` in order: digits without separators, English words as digits, CJK ones as written."""
    text = unicodedata.normalize("NFKC", text)
    found = [(m.start(), re.sub("[,，]", "", m.group())) for m in re.finditer(_NUMBER, text)]
    found += [(m.start(), m.group()) for m in re.finditer(_CJK_NUMBER, text)]
    found += [
        (m.start(), _NUMBER_WORDS[w])
        for m in re.finditer(_LATIN_WORD, text)
        if (w := m.group().lower()) in _NUMBER_WORDS
    ]
    return [number for _, number in sorted(found)]


# -- repetition -------------------------------------------------------------------------------------------------------


def normalise(text: str) -> str:
    """Folded, without punctuation and with single spaces; without any between CJK characters."""
    text = " ".join(_runs(fold(text)))
    return re.sub(rf"(?<=[{CJK}]) | (?=[{CJK}])", "", text)


def similar(a: str, b: str) -> float:
    """0 to 1: how much of the two normalised texts is the same, in the same order."""
    return _ratio(normalise(a), normalise(b), 0.0)


def _ratio(a: str, b: str, least: float) -> float:
    if a == b:
        return 1.0
    from difflib import SequenceMatcher  # only where questions are compared

    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()


def repeats(question: str, earlier: Iterable[str]) -> str | None:
    """The question of `earlier` that `question` repeats: equal after normalisation, or alike with the same numbers and
    names."""
    asked = normalise(question)
    key: tuple[list[str], list[str]] | None = None
    for other in earlier:
        known = normalise(other)
        if asked == known:
            return other
        if _ratio(asked, known, SAME_QUESTION) >= SAME_QUESTION:
            key = key or _facts(question)
            if key == _facts(other):
                return other
    return None


def _facts(text: str) -> tuple[list[str], list[str]]:
    return sorted(numbers(text)), sorted(fold(name) for name in names(text))
