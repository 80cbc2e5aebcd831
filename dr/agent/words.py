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
    "reader_failed": ("无法解析它的内容（{detail}）", "its content cannot be parsed ({detail})"),
    "html_broken": ("HTML 无法解析（{detail}）", "the HTML cannot be parsed ({detail})"),
    "all_failed": ("没有一个来源可读：{reasons}", "no source could be read: {reasons}"),
    # why a page cannot be fetched
    "scheme": ("只支持 http 和 https 地址，不支持 {scheme}", "only http and https are fetched, not {scheme}"),
    "bad_url": ("不是有效的网址", "it is no valid address"),
    "userinfo": ("网址里带有用户名或密码，不予访问", "the address holds a user name or password; it is not used"),
    "private": (
        "{host} 指向内网地址 {address}，默认拒绝访问（可用 allow_private 放行）",
        "{host} leads to the private address {address}, which is refused unless allow_private is set",
    ),
    "dns": ("找不到主机 {host}（域名解析失败）", "the host {host} was not found (DNS)"),
    "dns_again": ("域名服务器暂时没有回答（{host}）", "the name server gave no answer for {host}"),
    "connection": ("与 {host} 的连接失败（{detail}）", "the connection to {host} failed ({detail})"),
    "connect_timeout": ("{seconds} 秒内连不上 {host}", "no connection to {host} within {seconds} s"),
    "read_timeout": ("服务器 {seconds} 秒没有发来数据", "the server sent nothing for {seconds} s"),
    "total_timeout": ("{seconds} 秒内没有传完", "it was not complete within {seconds} s"),
    "tls": ("{host} 的 TLS 证书或加密连接有问题（{detail}）", "TLS with {host} failed ({detail})"),
    "http_401": ("需要登录（HTTP {status}）", "it asks for a login (HTTP {status})"),
    "http_402": ("需要付费（HTTP {status}）", "it asks for payment (HTTP {status})"),
    "http_403": ("服务器拒绝访问（HTTP {status}）", "the server refuses access (HTTP {status})"),
    "http_404": ("页面不存在（HTTP {status}）", "there is no such page (HTTP {status})"),
    "http_429": ("请求过多，被服务器限制（HTTP {status}）", "the server allows no more requests (HTTP {status})"),
    "http_5xx": ("服务器出错（HTTP {status}）", "the server failed (HTTP {status})"),
    "http_other": ("服务器没有给出页面（HTTP {status}）", "the server gave no page (HTTP {status})"),
    "redirects": ("重定向超过 {limit} 次", "it redirects more than {limit} times"),
    "redirected": ("它重定向到 {target}，未跟随", "it redirects to {target}, which was not followed"),
    "too_large_page": ("内容超过 {limit} MB 的上限", "it is larger than the limit of {limit} MB"),
    "not_text": ("不是文字内容（{media_type}）", "it is no text ({media_type})"),
    "encoding": ("无法解开的内容编码（{encoding}）", "its content encoding cannot be undone ({encoding})"),
    "encoding_broken": ("压缩内容已损坏（{encoding}）", "its packed content is broken ({encoding})"),
    "not_named": (
        "这个网址没有在问题、资料或搜索结果中出现过，不予访问",
        "this address stands neither in the question nor in the material or the results of a search; it is not fetched",
    ),
    "host_busy": ("其他节点一直在访问 {host}，等待超时", "other nodes kept {host} busy for too long"),
    "page_empty": ("页面里没有文字", "the page holds no text"),
    "needs_javascript": (
        "页面要靠 JavaScript 生成内容；{detail}",
        "the page needs JavaScript to show its text; {detail}",
    ),
    "browser_missing": ("没有找到 Chromium 或 Chrome 浏览器", "no Chromium or Chrome was found"),
    "browser_busy": ("浏览器正被占用（{holder}）", "the browser is in use ({holder})"),
    "browser_timeout": ("浏览器 {seconds} 秒内没有完成", "the browser was not done within {seconds} s"),
    "browser_failed": ("浏览器没有给出页面（{detail}）", "the browser gave no page ({detail})"),
    "browser_no_text": ("浏览器打开后也没有文字", "it holds no text in the browser either"),
    "snapshot_busy": ("另一个节点正在抓取同一页面，等待超时", "another node was fetching the same page for too long"),
    # why a search gives no page
    "no_search": (
        "来源不是网址，而没有配置搜索引擎：请设置 searxng_url，或 search_api_key，或安装 ddgs（pip install ddgs）",
        "the source is no URL and no search engine is configured: set searxng_url, or search_api_key, "
        "or install ddgs (pip install ddgs)",
    ),
    "search_json": (
        "{engine} 没有返回 JSON；SearXNG 需要在 settings.yml 的 search.formats 中加入 json",
        "{engine} did not answer in JSON; a SearXNG needs json among search.formats in its settings.yml",
    ),
    "search_key": ("{engine} 不接受这个密钥（HTTP {status}）", "{engine} does not accept the key (HTTP {status})"),
    "search_failed": ("{engine} 搜索失败（{detail}）", "the search with {engine} failed ({detail})"),
    "search_nothing": ("搜索“{query}”没有结果", "the search for {query!r} found nothing"),
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
    "web_next": (
        "检查网址或搜索设置，或换一个来源",
        "check the address or the search settings, or give another source",
    ),
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
        "未使用语言模型：以上各句均为来源原文的摘录。",
        "No language model was used: every sentence above is quoted from the sources as it stands.",
    ),
    "note": ("注：{text}", "Note: {text}"),  # protocol: dr/conclusion.py tells notes by how they begin
    # what the chat mind writes
    "model_by_code": (
        "模型没有写出可用的结论：以上由程序从已检查的步骤中选出。",
        "The model wrote no usable conclusion: the program chose the above from the checked steps.",
    ),
    "model_left_out": (
        "有 {count} 句未能通过核对，未列入。",
        "{count} sentence(s) could not be checked and were left out.",
    ),
    "words_at_most": ("{count} 字", "{count} words"),
    "known_of": ("{node} 的结论：", "Conclusion of {node}:"),
    "step_done": ("{step}：{plan}", "{step}: {plan}"),
    "written": ("写成的内容：", "What was written:"),
    "tool_said": ("{tool} 没有结果：{remark}", "{tool} gave no result: {remark}"),
    "tool_nothing": ("没有找到", "nothing was found"),
    "check_not_given": (
        "引用 {id} 不在给出的资料中：只能用资料前面的编号。",
        "Citation {id} is not among the material given: use only the ids that stand before it.",
    ),
    "check_no_opinion": (
        "模型没有给出可用的意见；程序的核对已通过。",
        "The model gave no usable opinion; the checks of the program passed.",
    ),
    "conclude_uncited": (
        "answer 没有引用任何编号。",
        "answer cites no id.",
    ),
    "conclude_long": ("太长，请压缩到 {words} 以内。", "It is too long; keep it under {words}."),
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
