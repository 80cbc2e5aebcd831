"""What is said about scripts, Chinese and English side by side: say(lang, key, **facts), statement(...). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from dr.agent.words import LANGUAGES

# key -> (Chinese, English). Both sides name the same {facts}; a test holds that.
WORDS: dict[str, tuple[str, str]] = {
    # aspects of the sandbox
    "time": ("运行时间", "running time"),
    "cpu": ("CPU 时间", "CPU time"),
    "memory": ("内存", "memory"),
    "processes": ("进程数", "number of processes"),
    "file_size": ("文件大小", "file size"),
    "disk": ("磁盘用量", "disk use"),
    "open_files": ("打开文件数", "open files"),
    "output": ("输出量", "size of the output"),
    "environment": ("环境变量", "environment variables"),
    "network": ("网络访问", "network access"),
    "reading": ("读取其他文件", "reading other files"),
    "writing": ("写入其他位置", "writing elsewhere"),
    "others": ("干预其他进程", "reaching other processes"),
    "leftovers": ("残留进程", "processes left behind"),
    "statement": (
        "脚本的运行限制：{enforced}。此处未能限制：{not_enforced}（{why}）。",
        "Held while the script ran: {enforced}. Not held here: {not_enforced} ({why}).",
    ),
    "statement_all": ("脚本的运行限制：{enforced}。", "Held while the script ran: {enforced}."),
    # why there is no full isolation
    "not_linux": ("bubblewrap 只用于 Linux", "bubblewrap is for Linux only"),
    "not_installed": ("没有安装 bubblewrap", "bubblewrap is not installed"),
    "not_usable": ("bubblewrap 在这里不能用", "bubblewrap does not work here"),
    "not_wanted": ("没有使用 bubblewrap", "bubblewrap was not used"),
    # a run
    "record": ("{script}：退出码 {code}。", "{script}: exit code {code}."),
    "record_files": ("写出的文件：{files}。", "Files written: {files}."),
    "record_left_out": ("未收录的文件：{files}。", "Files not kept: {files}."),
    "file": ("{name}（{size} 字节）", "{name} ({size} bytes)"),
    "output_of": ("{script} 的输出", "Output of {script}"),
    "errors_of": ("{script} 的错误输出", "Error output of {script}"),
    "run_of": ("{script} 的运行", "Run of {script}"),
    "more": ("另有 {count} 个", "and {count} more"),
    # plan of a CODE node
    "goal": ("运行 {script} 并摘录回答问题的输出", "Run {script} and quote the output that answers"),
    "step_run": ("在沙箱中运行 {script}", "Run {script} in the sandbox"),
    "step_quote": ("摘录 {script} 的输出中与问题有关的行", "Quote the lines of {script}'s output that answer"),
    "step_record": ("记录 {script} 的退出码和写出的文件", "Record the exit code and the files of {script}"),
    # why a CODE node fails
    "tried": ("运行 {script}", "run {script}"),
    "tried_node": ("运行 CODE 节点", "run a CODE node"),
    "failed_exit": ("退出码 {code}", "exit code {code}"),
    "failed_signal": ("被信号 {signal} 终止", "killed by signal {signal}"),
    "failed_time": ("超过 {timeout:g} 秒，已终止", "not done after {timeout:g} s; it was ended"),
    "failed_cpu": ("CPU 时间超限，已终止", "it used too much CPU time and was ended"),
    "failed_memory": ("内存超限，已终止", "it used too much memory and was ended"),
    "failed_processes": ("进程太多，已终止", "it started too many processes and was ended"),
    "failed_output": ("输出太多，已终止", "it printed too much and was ended"),
    "failed_disk": ("写出的文件太多或太大，已终止", "it wrote too many or too large files and was ended"),
    "failed_file_size": ("文件太大，已终止", "it wrote too large a file and was ended"),
    "failed_silent": ("没有任何输出", "it printed nothing"),
    "failed_silent_files": ("没有任何输出（写出了 {files}）", "it printed nothing (it wrote {files})"),
    "failed_unquotable": ("输出中没有可以引用的内容", "its output holds nothing that can be quoted"),
    "stderr_tail": ("错误输出末尾：{tail}", "last lines of stderr: {tail}"),
    "next_fix": ("修正脚本后重试", "correct the script, then retry the node"),
    "next_time": (
        "让脚本更快，或调大 agents.code_agent.timeout",
        "make it faster, or raise agents.code_agent.timeout",
    ),
    "next_print": ("让脚本把结果打印出来", "let the script print its result"),
    "no_code": (
        "没有给出脚本，问题里也没有 ```python 代码块",
        "no script was given, and the question holds no ```python block",
    ),
    "next_code": ("在来源里给出一个 .py 文件", "give a .py file as source"),
    "missing": ("没有这个文件：{path}", "there is no such file: {path}"),
    "other_node": ("{path} 属于另一个节点，不得使用", "{path} belongs to another node and must not be used"),
    "not_runnable": (
        "{path} 不是 Python 文件（.py），也不是带 #! 行的可执行文件",
        "{path} is no Python file (.py) and no executable file with a #! line",
    ),
    "next_runnable": (
        "给出 Python 脚本，或加上 #! 行并设为可执行",
        "give a Python script, or add a #! line and make it executable",
    ),
    "disabled": ("code_agent 已关闭", "the code_agent is switched off"),
    "next_enable": ("设置 agents.code_agent.enabled: true", "set agents.code_agent.enabled: true"),
    "comma": ("、", ", "),
    "clause": ("；", "; "),
}


def say(lang: str, key: str, /, **facts: object) -> str:
    """The words of `key` in `lang` ('zh' or 'en') with the facts filled in; KeyError for an unknown key or fact."""
    return WORDS[key][LANGUAGES.index(lang)].format(**facts)


def statement(enforced: Sequence[str], not_enforced: Sequence[str], why_not: str, lang: str) -> str:
    """What a script was held from and what not, in plain words."""

    def named(aspects: Sequence[str]) -> str:
        return say(lang, "comma").join(say(lang, aspect) for aspect in aspects)

    if not not_enforced:
        return say(lang, "statement_all", enforced=named(enforced))
    why = say(lang, why_not or "not_usable")
    return say(lang, "statement", enforced=named(enforced), not_enforced=named(not_enforced), why=why)
