"""A question -> the smaller questions that can be asked apart, and which of them needs the answer of another. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dr.language import detect, names

MOST = 6  # aspects of a question; more is a questionnaire, its rest stays together


@dataclass(frozen=True)
class Aspect:
    """A question of its own. after: the index of the aspect whose answer it speaks of ("... where did she study?")."""

    question: str
    after: int | None = None


_ASKS_EN = r"(?:what|who|whom|whose|when|where|why|how|which)"
_SPLITS = re.compile(
    rf"(?<=[?？])\s+|(?<=[？；])|;\s+|,\s+and\s+(?={_ASKS_EN}\b)|\s+and\s+(?=(?:what|how|why)\b)"
    rf"|,\s+(?=(?:what|when|where|why|how)\s+(?:is|are|was|were|did|does|do|has|have|had|many|much)\b)"
    r"|[，,](?=[^，,]*(?:什么|谁|哪|何|多少|几|怎|为什么|吗|是否))",
    re.I,
)
_ASKS = re.compile(
    rf"\b{_ASKS_EN}\b|^(?:is|are|was|were|do|does|did|can|could|has|have|had|compare|list|name|describe|explain)\b"
    r"|什么|谁|哪|何|多少|几|怎|为什么|吗|是否|比较|对比|介绍|说明|列出",
    re.I,
)
_BACK = re.compile(
    r"\b(?:he|she|it|its|they|his|her|their|them|him|that|those|this|these)\b|[他她它其该此]|这[个家位部座种]", re.I
)
_WHAT_IS_ASKED = re.compile(rf"^\s*(?:(?:in|on|at|of|for|to|from|by)\s+)?{_ASKS_EN}\b", re.I)


def aspects(question: str) -> list[Aspect]:
    """The questions that `question` is made of; itself when it is one."""
    text = " ".join(question.split())
    found: list[Aspect] = []
    for clause in _clauses(text):
        parts = _compared(clause) or _listed(clause) or [clause]
        after = len(found) - 1 if found and _speaks_of_earlier(clause) else None
        if after is not None:
            parts = [_with_context(part, found[after].question) for part in parts]
        found += [Aspect(_closed(part), after) for part in parts]
    return found if 1 < len(found) <= MOST else [Aspect(text)]


def _clauses(text: str) -> list[str]:
    """Clauses that ask something; those that only tell stay with the question after them."""
    clauses: list[str] = []
    held = ""
    for part in filter(None, (p.strip() for p in _SPLITS.split(text))):
        if _too_short(part) and clauses:
            clauses[-1] = f"{clauses[-1]} {part}"
        elif _ASKS.search(part) and not _too_short(part):
            clauses.append(f"{held}{part}")
            held = ""
        else:
            held += part + ("，" if detect(text) == "zh" else ", ")
    if held and clauses:
        clauses[-1] = f"{clauses[-1]} {held.rstrip(' ,，')}"
    return clauses if clauses else [text]


def _too_short(part: str) -> bool:
    return len(part) < 4 if detect(part) == "zh" else len(part.split()) < 3


def _speaks_of_earlier(clause: str) -> bool:
    bare = detect(clause) == "zh" and len(clause) <= 8  # 成本如何？
    return (bare or _BACK.search(clause) is not None) and not names(clause)


def _with_context(part: str, earlier: str) -> str:
    """`part` for a reader who does not see the question before it."""
    earlier = earlier.rstrip("?？。. ")
    return (
        f"{part.rstrip('?？。. ')}（承接：{earlier}）"
        if detect(part) == "zh"
        else f"{part.rstrip('?. ')} (after: {earlier})"
    )


def _closed(part: str) -> str:
    """A sentence with its mark at the end and a capital at the beginning."""
    part = part.strip(" ,，;；")
    if part and part[-1] not in "?？.。!！":
        part += "？" if detect(part) == "zh" else "?"
    return part[:1].upper() + part[1:]


# -- comparisons ------------------------------------------------------------------------------------------------------

_JOIN_EN = re.compile(r"(?:\s*,\s*(?:and|or)?|\s+(?:and|or|vs\.?|versus|nor|than|with|to)|\s*/)\s*(?:the\s+)?$", re.I)
_COMPARES_EN = re.compile(
    r"\b(?:both|compare|compared|comparison|differ\w*|same|common|respectively|versus|vs|than|each of|either"
    r"|which (?:one|of)|who (?:is|was) \w+er)\b|\b(?:older|younger|larger|smaller|higher|lower|earlier|later|first"
    r"|bigger|longer|shorter|taller|more|most|less|fewer|farther|further|closer|better|faster|newer|oldest|largest)\b",
    re.I,
)
_PLURAL_EN = re.compile(r"\s+(?:are|were|have|do|did)\s+(?:what|which|both|all)?\b", re.I)
_ALTERNATIVES = re.compile(
    r"(?:,\s*|:\s*|\bbetween\s+)(?P<list>(?:[^,:?]{2,60},\s*){0,2}?[^,:?]{2,60}?,?\s+or\s+[^:?]{2,60}?)\s*\?*\s*$"
)
_COMPARE = re.compile(
    r"(?:compare|contrast|(?:how|what)\b.{0,30}\bdiffer\w*\s+between|difference\s+between)\s+(?P<list>.+?"
    r"\s+(?:and|with|to|versus|vs\.?)\s+.+?)(?P<tail>\s+(?:in|for|with regard to|regarding|during)\s+.+?)?[?.]?\s*$",
    re.I,
)


def compared(question: str) -> list[str]:
    """The two to four things that `question` compares; empty when it compares none."""
    return _compared_zh(question)[0] if detect(question) == "zh" else _compared_en(question)[0]


def _compared(question: str) -> list[str]:
    """A question for each thing compared."""
    if detect(question) == "zh":
        things, rest = _compared_zh(question)
        own = [_asked_of(thing, rest, "关于{thing}有哪些说法", "：") for thing in things]
    else:
        things, rest = _compared_en(question)
        own = [_asked_of(thing, rest, "What is said about {thing}", ": ") for thing in things]
    return own


def _asked_of(thing: str, rest: str, words: str, colon: str) -> str:
    if "{}" in rest:
        return rest.replace("{}", thing)
    return words.replace("{thing}", thing) + (f"{colon}{rest}" if rest else "")


def _compared_en(question: str) -> tuple[list[str], str]:
    """Names joined by and, or, a comma, in a question that compares; and what is asked of each."""
    listed = _ALTERNATIVES.search(question)
    if listed and (listed[0].startswith(",") or _COMPARES_EN.search(question[: listed.start()])):
        left, _, right = listed["list"].rpartition(" or ")
        things = [thing for thing in (*re.split(r",\s*", left), right) if thing.strip()]
        if 2 <= len(things) <= 4 and all(len(thing.split()) <= 7 for thing in things):
            return things, _rest_en(question, listed.start("list"), listed.end("list"))
    found, position = [], 0
    for name in names(question):
        start = question.find(name, position)
        if start < 0:
            continue
        position = start + len(name)
        found.append((start, position, name))
    groups: list[list[tuple[int, int, str]]] = []
    for start, end, name in found:
        if groups and _JOIN_EN.fullmatch(question[groups[-1][-1][1] : start]):
            groups[-1].append((start, end, name))
        else:
            groups.append([(start, end, name)])
    for group in groups:
        if 2 <= len(group) <= 4 and _compares(question, group[0][0], group[-1][1]):
            return [name for _, _, name in group], _rest_en(question, group[0][0], group[-1][1])
    return _compare_en(question)


def _compare_en(question: str) -> tuple[list[str], str]:
    """Compare the cost of A and B in C; the difference between A and B."""
    found = _COMPARE.match(question)
    if found is None:
        return [], ""
    head, of, items = found["list"].rpartition(" of ")
    things = re.split(r"\s+(?:and|with|to|versus|vs\.?)\s+", items, flags=re.I)
    if len(things) != 2 or any(len(thing.split()) > 6 for thing in things):
        return [], ""
    return things, f"{head}{of}{{}}{found['tail'] or ''}" if head else (found["tail"] or "").strip()


def _compares(question: str, start: int, end: int) -> bool:
    """Whether the question compares what stands from `start` to `end`, or only mentions it."""
    group, before, after = question[start:end], question[:start], question[end:]
    if re.search(r"\bor\b", group):
        return True
    if re.search(r"\b(?:both|either|between)\b(?:\s+of)?(?:\s+the)?(?:\s+[a-z]\w*|\s+two){0,2}\s*$", before, re.I):
        chosen = re.search(r"\bboth|\beither|\bdiffer|\bcompar", before, re.I)
        return chosen is not None or re.match(r"\s*,?\s*(?:which|who)\b", after) is not None
    if re.match(r"\s+(?:both|share)\b", after, re.I):
        return True
    if not before.strip():
        return _PLURAL_EN.match(after) is not None
    outside = f"{before} {after}"
    asks_first = re.match(r"\s*(?:which|who|are|were|do|did|does|is|compare|what)\b", question, re.I)
    near = re.search(r"\b(?:of|between|compare|are|were|do|did|is|does)\s+(?:the\s+)?$", before, re.I)
    return bool(asks_first and near and _COMPARES_EN.search(outside))


def _rest_en(question: str, start: int, end: int) -> str:
    before, after = question[:start], question[end:]
    if re.search(r"\b(?:respectively|each)\b", after, re.I):
        plain = re.sub(r",?\s*\b(?:respectively|each)\b", "", after, flags=re.I)
        return f"{before}{{}}{plain}".strip()
    words = re.compile(
        rf"^\s*(?:{_ASKS_EN}|is|are|was|were|do|does|did|has|have|had|both|either|of|the|between|compare)\b", re.I
    )
    best = max((before, after), key=lambda part: len(part.split())).strip(" ,.?:")
    while words.match(best):
        best = words.sub("", best).strip()
    return re.sub(r"[\s,:]*\b(?:the|of|between|both|is|are|was|were|,)*$", "", best)


_ITEM_ZH = r"(?:《[^》]{1,40}》|[^，。？?！；：、和与跟及或谁哪]{1,20}?)"
_JOIN_ZH = r"(?:以及|还是|和|与|跟|及|或|\s*vs\s*)"
_GROUP_ZH = re.compile(
    rf"(?:请问|请|试|在|比较一下|比较|对比)*(?P<list>{_ITEM_ZH}(?:、{_ITEM_ZH}){{0,2}}{_JOIN_ZH}{_ITEM_ZH})"
    r"(?=(?:两者|二者|这?[两三四]\w{0,3})?(?:之间)?(?:的|在|哪|谁|孰|分别|各|都|是否|是不是|有何|有什么|相比|之间|中|，|,|？|\?|$))"
)
_COMPARES_ZH = re.compile(
    r"哪[个一位家座部者种]|谁|孰|比较|对比|区别|不同|差异|相同|共同|分别|各自|各有|都是|都有|相比|更|异同|还是"
)
_APART_ZH = re.compile(r"分别|各自|各")


def _compared_zh(question: str) -> tuple[list[str], str]:
    group = _GROUP_ZH.search(question)
    if group is None or not (
        _COMPARES_ZH.search(question[group.end() :]) or re.search("比较|对比|哪", question[: group.start("list")])
    ):
        return [], ""
    things = [t.strip() for t in re.split(f"、|{_JOIN_ZH}", group["list"]) if t.strip()]
    if not 2 <= len(things) <= 4 or any("的" in thing for thing in things):
        return [], ""
    before, after = question[: group.start()], question[group.end() :]
    if _APART_ZH.search(after):
        return things, f"{before}{{}}{_APART_ZH.sub('', after)}"
    rest = re.sub(r"^(?:的|两者|二者|之间|中|，|,|在|相比)+", "", after).strip("？?。，, ")
    return things, re.sub(
        r"^哪[个一位家座部者种]+|有(?:何|什么|哪些)?(?:区别|不同|差异|异同)|的?(?:区别|不同|差异|异同)", "", rest
    )


# -- lists of aspects -------------------------------------------------------------------------------------------------

_LIST_EN = re.compile(
    r"(?P<before>.*?\b(?:the|describe|explain|list|compare)\s+)(?P<list>[a-z][\w-]*(?:\s[a-z][\w-]*)?"
    r"(?:,\s+(?:the\s+)?[a-z][\w-]*(?:\s[a-z][\w-]*)?)*,?\s+and\s+(?:the\s+)?[a-z][\w-]*(?:\s[a-z][\w-]*)?)"
    r"\s+(?P<after>(?:of|for|in)\s+.+)"
)
_LIST_ZH = re.compile(
    r"(?P<before>.*?[^，。？]{1,40}的)(?P<list>[^，。？?、和与及的]{2,8}(?:、[^，。？?、和与及的]{2,8})*(?:和|与|及|以及)"
    r"[^，。？?、和与及的]{2,8}?)(?P<after>(?:分别|各自|各|都)?(?:是|为|有|怎|如何|多少)[^和与]*)$"
)


def _listed(question: str) -> list[str]:
    """A question for each of several things asked of one: the length and the width of X; X的营收和利润."""
    chinese = detect(question) == "zh"
    found = (_LIST_ZH if chinese else _LIST_EN).match(question)
    if found is None or (not chinese and not _ASKS.search(found["before"])):
        return []
    items = re.split(
        r"、|和|与|以及|及" if chinese else r",\s+(?:and\s+)?(?:the\s+)?|\s+and\s+(?:the\s+)?", found["list"]
    )
    items = [item for item in items if item]
    after = _APART_ZH.sub("", found["after"])
    before = re.sub(r"\bare\s+the\s+$", "is the ", found["before"])
    return [f"{before}{item}{'' if chinese else ' '}{after}" for item in items] if len(items) > 1 else []
