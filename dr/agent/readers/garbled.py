"""Whether extracted text is garbage: fonts without a character map, wrong charsets. Pure."""

from __future__ import annotations

import re

_LEAST = 80  # letters below which nothing can be told
_BAD = re.compile("[\ufffd\ue000-\uf8ff\x01-\x06\x0e-\x1f\x7f-\x9f]")
_CODES = re.compile(r"\(cid:\d+\)|/[A-Za-z]{1,3}\d{1,4}(?=/|\s|$)|/uni[0-9A-F]{4}|\\u[0-9a-f]{4}")
_TWICE_DECODED = re.compile("[ÃÂ][\x80-\xbf¡-¿]|â€[\x80-\xbf™œ“”¦˜\u201d]?|锟斤拷|烫烫|屯屯|ï¿½")
_HIGH_LATIN = re.compile("[\u00a1-\u00ff]")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("[\u3400-\u9fff]")
_KANA_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
# The commonest characters of Chinese, simplified and traditional; they make up about a sixth of any running text.
_COMMON = set(
    "的一是不了在人有我他这這中大来來上国國个個到说說们們为為子和你地出道也时時年得就那要下以生会會自着去之过過家学學对對"
)
_FUNCTION_WORDS = set(
    "the of and to in a is that for it as was with be by on not he his but at are this have from or an they which "
    "der die und das ist von den zu mit des im ein eine le la les de et des en un une du que est el los y se del las "
    "por con para una che di il per non è da os e do em um não het van een dat op te i w na z się".split()
)


def is_garbled(text: str) -> bool:
    """Whether nothing of `text` should be quoted. Short texts, tables of figures and code pass."""
    visible = len(re.sub(r"\s", "", text))
    if not visible:
        return False
    if len(_BAD.findall(text)) > 0.05 * visible:
        return True
    if sum(map(len, _CODES.findall(text))) > 0.3 * visible:
        return True
    if sum(map(len, _TWICE_DECODED.findall(text))) > max(4, 0.02 * visible):
        return True
    return _odd_chinese(text) or _odd_latin(text)


def _odd_chinese(text: str) -> bool:
    characters = _CJK.findall(text)
    if len(characters) < 4 * _LEAST or len(_KANA_HANGUL.findall(text)) > 0.05 * len(characters):
        return False
    return sum(c in _COMMON for c in characters) < 0.01 * len(characters)


def _odd_latin(text: str) -> bool:
    """Long Latin text without any function word, whose words are broken by digits, signs or missing vowels."""
    letters = [c for c in text if c.isalpha()]
    latin = [c for c in letters if c < "\u0250"]
    if len(latin) < _LEAST or len(latin) < 0.5 * len(letters):
        return False
    if len(_HIGH_LATIN.findall(text)) > 0.4 * len(latin):
        return True
    tokens = [token.casefold() for token in _WORD.findall(text)]
    if any(token in _FUNCTION_WORDS and len(token) > 1 for token in tokens) or len(tokens) < 20:
        return False
    words = [token for token in text.split() if sum(c.isalpha() for c in token) >= 2]
    odd = sum(1 for word in words if _odd_word(word))
    return odd > 0.5 * len(words)


def _odd_word(word: str) -> bool:
    core = word.strip("()[]{}<>.,;:!?\"'“”‘’-–—/*")
    broken = re.search(r"[A-Za-z][^A-Za-zÀ-ÿ'’\-./@_ ]+[A-Za-z]", core) is not None
    vowels = re.search(r"[aeiouyà-ü]", core.casefold()) is not None
    return broken or (len(core) > 3 and not vowels) or re.match(r"\d[A-Z]", core) is not None
