"""The subagent's own words, Chinese and English side by side: say(lang, key, **facts) -> str. Pure."""

from __future__ import annotations

LANGUAGES = ("zh", "en")

# key -> (Chinese, English). Both sides name the same {facts}; a test holds that.
WORDS: dict[str, tuple[str, str]] = {
    # what was tried, when a source fails
    "tried_read": ("读取 {place}", "read {place}"),
    "tried_answer": ("回答“{question}”", "answer {question!r}"),
    "tried_node": ("运行 {type} 节点", "run a {type} node"),
    "the_sources": ("来源", "the sources"),
    # why a source cannot be read
    "missing": ("没有这个文件或文件夹", "there is no such file or folder"),
    "no_source": ("没有给出来源", "no source was given"),
    "not_regular": ("不是普通文件", "it is not a regular file"),
    "denied": ("无法打开（{detail}）", "it cannot be opened ({detail})"),
    "outside": ("符号链接指向来源之外，未读取", "a symlink leads outside the source; it was not read"),
    "other_node": ("这是另一个节点的文件夹，不得读取", "it is another node's folder, which must not be read"),
    "too_large": ("文件太大（{size} MB，上限 {limit} MB）", "it is too large ({size} MB, the limit is {limit} MB)"),
    "too_many": (
        "文件夹里的文件太多，只读了前 {limit} 个",
        "the folder holds too many files; only the first {limit} were read",
    ),
    "too_much": (
        "来源总量太大，读到 {limit} MB 为止",
        "the sources are too large together; reading stopped at {limit} MB",
    ),
    "empty": ("文件里没有文字", "it holds no text"),
    "no_files": ("文件夹里没有可读的文件", "the folder holds no file that can be read"),
    "binary": ("不是文本，也不是支持的格式（{detail}）", "it is neither text nor a supported format ({detail})"),
    "pdf_broken": ("PDF 已损坏（{detail}）", "the PDF is broken ({detail})"),
    "pdf_encrypted": ("PDF 已加密，需要密码", "the PDF is encrypted and needs a password"),
    "pdf_scanned": (
        "PDF 是扫描件，{pages} 页都没有文字层，需要先做文字识别",
        "the PDF is scanned: none of its {pages} page(s) has a text layer; it needs character recognition first",
    ),
    "pdf_garbled": (
        "PDF 的文字是乱码（字体没有字符映射），不予引用",
        "the text of the PDF is garbled (its fonts lack a character map) and is not quoted",
    ),
    "pdf_pages": (
        "{pages} 页中有 {lost} 页没有可用的文字",
        "{lost} of {pages} pages hold no usable text",
    ),
    "docx_broken": ("DOCX 已损坏（{detail}）", "the DOCX is broken ({detail})"),
    "docx_bomb": ("DOCX 解压后太大（超过 {limit} MB）", "the DOCX is too large when unpacked (over {limit} MB)"),
    "html_broken": ("HTML 无法解析（{detail}）", "the HTML cannot be parsed ({detail})"),
    "all_failed": ("没有一个来源可读：{reasons}", "no source could be read: {reasons}"),
    "memory_missing": ("没有记忆文件夹", "there is no memory folder"),
    # why a node fails
    "nothing_answers": (
        "来源中没有任何内容能回答这个问题",
        "nothing in the sources answers this question",
    ),
    "type_unavailable": (
        "此版本不支持 {type} 节点",
        "{type} nodes are not available in this version",
    ),
    "type_unavailable_next": (
        "换用 LOCAL 或 MEMORY 节点，或换用其他子代理",
        "use a LOCAL or MEMORY node, or another subagent",
    ),
    "unavailable_next": ("检查来源的路径和格式", "check the path and the format of the source"),
    "nothing_next": ("换一个来源，或换一种问法", "give another source, or ask in other words"),
    # plans of the offline mind
    "goal": ("回答：{question}", "Answer: {question}"),
    "step_find": ("找出直接回答“{question}”的段落并引用原文", "Find and quote the passages that answer: {question}"),
    "step_item": ("查找编号条目“{item}”", "Look up the numbered item {item}"),
    "step_follow": (
        "沿着已引段落中的线索，补充与“{question}”有关的段落",
        "Follow what the quoted passages mention to further passages on: {question}",
    ),
    "step_cover": ("检查问题中的关键词是否都有出处：{question}", "See which terms are covered: {question}"),
    # what the offline mind writes
    "step_nothing_new": ("没有更多相关段落。", "No further passage is relevant."),
    "step_covered": ("问题中的关键词都已出现在引用的段落里。", "The quoted passages cover every term of the question."),
    "step_uncovered": ("引用的段落没有提到：{terms}。", "The quoted passages do not mention: {terms}."),
    "item_missing": ("来源中没有找到{item}。", "The sources hold no {item}."),
    "no_model": (
        "（未使用语言模型：以上各句均为来源原文的摘录。）",
        "(No language model was used: every sentence above is quoted from the sources as it stands.)",
    ),
    "uncovered": ("来源中没有找到关于以下内容的段落：{terms}。", "No passage was found on: {terms}."),
    "unread": ("未能读取：{reasons}。", "Could not be read: {reasons}."),
    "unread_more": ("另有 {count} 个", "and {count} more"),
    "brief": ("简答", "Brief answer"),
    "leads": ("线索：{names}", "Leads: {names}"),
    "separator": ("；", "; "),
    "comma": ("、", ", "),
    # remarks of the check
    "check_pass": ("内容完整，引用均可核对。", "Complete; every citation could be checked."),
    "check_empty": ("内容为空：请引用至少一个段落。", "The content is empty: quote at least one passage."),
    "check_unknown_id": (
        "引用 {id} 不在 evidence.jsonl 中：请改用已有的编号。",
        "Citation {id} is not in evidence.jsonl: use an id that is there.",
    ),
    "check_unlisted_id": (
        "正文引用了 {id}，但没有列入 citations。",
        "The content cites {id}, which is not listed among its citations.",
    ),
    "check_unused_id": (
        "列出的引用 {id} 没有出现在正文中。",
        "Citation {id} is listed but does not appear in the content.",
    ),
    "check_uncited": ("这一句没有引用：“{sentence}”", "This sentence has no citation: {sentence!r}"),
    "check_quote": (
        "引句不在 {id} 的原文中：“{sentence}”",
        "This quote does not stand in the passage of {id}: {sentence!r}",
    ),
    "check_number": (
        "{id} 的原文中没有这些数字：{numbers}",
        "The passage of {id} does not hold these numbers: {numbers}",
    ),
}


def say(lang: str, key: str, /, **facts: object) -> str:
    """The words of `key` in `lang` ('zh' or 'en') with the facts filled in; KeyError and ValueError as dr.words.say."""
    return WORDS[key][LANGUAGES.index(lang)].format(**facts)
