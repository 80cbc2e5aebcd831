"""All words that reports, progress lines and node reasons use, Chinese and English side by side.

say(lang, key, **facts) -> str. Pure: no file.
"""

from __future__ import annotations

LANGUAGES = ("zh", "en")

# key -> (Chinese, English). Both sides name the same {facts}; a test holds that.
WORDS: dict[str, tuple[str, str]] = {
    # the report: title and headings
    "title_completed": ("{question}", "{question}"),
    "title_partial": ("【部分完成】{question}", "[Partial] {question}"),
    "title_failed": ("【失败】{question}", "[Failed] {question}"),
    "title_unfinished": ("【未完成】{question}", "[Unfinished] {question}"),
    "heading_answer": ("答案", "Answer"),
    "heading_findings": ("各节点的发现", "Findings"),
    "heading_contradictions": ("矛盾之处", "Contradictions"),
    "heading_open": ("尚未解决的问题及原因", "What is open, and why"),
    "heading_references": ("参考来源", "References"),
    "heading_made": ("报告的产生方式", "How this report was made"),
    "heading_tried": ("尝试过什么", "What was tried"),
    # the report: answer
    "answer_extractive": (
        "没有使用语言模型综合：以下是从各节点结论中原样摘录的、与问题最相关的句子。",
        "No language model wrote this answer: these are the sentences of the nodes' conclusions that fit the "
        "question best, quoted as they stand.",
    ),
    "answer_uncited": (
        "答案中有 {count} 句没有引用来源。",
        "Sentences of the answer without a citation: {count}.",
    ),
    "answer_gap": ("来源没有提到：{terms}。", "The sources do not mention: {terms}."),
    "answer_conflict": ("来源说法不一：{values}。", "Sources disagree: {values}."),
    "answer_conflict_on": ("来源说法不一（{quantity}）：{values}。", "Sources disagree ({quantity}): {values}."),
    "answer_none": (
        "没有答案：{nodes} 个节点都没有得到结论。",
        "There is no answer: none of the {nodes} nodes came to a conclusion.",
    ),
    "answer_no_plan": ("没有答案：没有得到可执行的计划。", "There is no answer: there was no plan to carry out."),
    # the report: findings
    "finding_heading": ("{node}（{type}）：{question}", "{node} ({type}): {question}"),
    "finding_sources": ("来源：{numbers}", "Sources: {numbers}"),
    "finding_note": ("注：{text}", "Note: {text}"),
    "finding_reservation": ("保留意见：{reservations}", "Reservation: {reservations}"),
    "finding_above": ("（上文已引：{numbers}）", "(quoted above: {numbers})"),
    "finding_cut": (
        "（内容已截断，完整结论见 {file}）",
        "(cut here; the whole conclusion is in {file})",
    ),
    "finding_empty": ("结论中没有正文。", "The conclusion has no text."),
    # reservations of a conclusion that is usable but weak; codes are kept in process.json
    "reservation_one_sentence": ("结论只有一句话", "the conclusion is a single sentence"),
    "reservation_over_long": ("结论超过规定长度", "the conclusion is longer than asked for"),
    "reservation_no_source": ("结论没有列出来源", "the conclusion names no source"),
    "reservation_no_marker": (
        "结论没有标记，取自整段文字",
        "the conclusion had no marker and was taken from the whole text",
    ),
    "reservation_unknown": ("{code}", "{code}"),
    # the report: contradictions
    "conflict_none": (
        "在各结论中没有发现同一数量取不同数值的情况。",
        "No quantity was found with different values in the conclusions.",
    ),
    "conflict_quantity": ("{quantity}：", "{quantity}:"),
    "conflict_value": ("{value} {number}", "{value} {number}"),
    # the report: what is open
    "coverage": (
        "{nodes} 个节点中 {answered} 个有结论，{failed} 个失败，{skipped} 个被跳过。",
        "{answered} of {nodes} nodes answered, {failed} failed, {skipped} skipped.",
    ),
    "coverage_unfinished": ("另有 {count} 个节点没有运行完。", "Not finished: {count}."),
    "open_node": (
        "{node}（{state}，尝试 {attempts} 次）：{question} 原因：{reason}",
        "{node} ({state}, attempts: {attempts}): {question} Why: {reason}",
    ),
    "open_terms": (
        "问题中的这些词没有出现在任何结论里：{terms}。",
        "Terms of the question that no conclusion mentions: {terms}.",
    ),
    "open_contradicted": (
        "引用 {number} 与它自己的原文不符：{reason}",
        "Reference {number} does not agree with its own passage: {reason}",
    ),
    "open_nothing": ("没有已知的缺口。", "No gap is known."),
    "open_why_ended": ("运行结束的原因：{reason}。", "Why the run ended: {reason}."),
    "state_pending": ("未开始", "not started"),
    "state_running": ("运行中", "running"),
    "state_done": ("完成", "done"),
    "state_failed": ("失败", "failed"),
    "state_skipped": ("跳过", "skipped"),
    "why_unknown": ("没有记录", "not recorded"),
    "why_parents": ("它依赖的 {nodes} 没有结论", "{nodes}, on which it depends, came to no conclusion"),
    "why_skipped": ("被手工或计划跳过", "skipped by hand or by the plan"),
    "why_not_reached": ("运行结束前没有轮到它", "the run ended before its turn"),
    # reasons of a run's end (SPEC: status / reason)
    "reason_goal_met": ("所有节点都已处理完", "every node was dealt with"),
    "reason_step_budget": ("步数预算用完", "the budget of steps was spent"),
    "reason_replan_budget": ("重新规划的预算用完", "the budget of replans was spent"),
    "reason_time_budget": ("时间预算用完", "the time budget was spent"),
    "reason_token_budget": ("令牌预算用完", "the token budget was spent"),
    "reason_no_findings": ("没有任何节点得到结论", "no node came to a conclusion"),
    "reason_no_plan": ("没有得到计划", "there was no plan"),
    "reason_planner_error": ("规划器出错", "the planner failed"),
    "reason_aborted": ("按设置在失败后中止", "it was aborted after a failure, as set"),
    "reason_interrupted": ("被用户中断", "it was interrupted by the user"),
    "reason_unknown": ("{reason}", "{reason}"),
    # the report: references
    "reference_page": ("第 {value} 页", "p. {value}"),
    "reference_line": ("第 {value} 行", "line {value}"),
    "reference_section": ("“{value}”一节", "section “{value}”"),
    "reference_other": ("{name} {value}", "{name} {value}"),
    "reference_check": ("核对：{check}", "Check: {check}"),
    "reference_check_why": ("核对：{check}（{reason}）", "Check: {check} ({reason})"),
    "reference_nodes": ("引用它的节点：{nodes}", "Cited by {nodes}"),
    "reference_counts": (
        "共 {count} 条来源：{supported} 条与原文相符，{contradicted} 条与原文不符，{unchecked} 条无法核对。",
        "References: {count}; {supported} supported by the stored passage, {contradicted} contradicted by it, "
        "{unchecked} not checked.",
    ),
    "reference_dropped": (
        "有 {count} 处引用标记没有对应的来源，已从正文删去。",
        "Citation marks that led to no source and were removed from the text: {count}.",
    ),
    "reference_none": ("没有来源。", "There are no references."),
    "check_supported": ("相符", "supported"),
    "check_contradicted": ("不符", "contradicted"),
    "check_not checked": ("未核对", "not checked"),
    # the report: how it was made
    "made_mind": ("思考方式：{mind}", "Mind: {mind}"),
    "made_mind_offline": ("思考方式：offline（没有使用语言模型）", "Mind: offline (no language model was used)"),
    "made_agent": ("子代理：{agent}", "Subagent: {agent}"),
    "made_foreign_agent": (
        "每个子代理只能用其节点类型的工具这一限制，对这个子代理仅由提示词要求，没有由代码强制。",
        "That a subagent uses only the tools of its node's type was asked of this one by its prompt, "
        "not enforced by code.",
    ),
    "made_rounds": ("轮数：{count}", "Rounds: {count}"),
    "made_revisions": ("计划修订：{count}", "Revisions of the plan: {count}"),
    "made_revision": (
        "修订 {revision}：删除 {removed}；新增 {added}；修改 {revised}",
        "Revision {revision}: removed {removed}; added {added}; revised {revised}",
    ),
    "made_seconds": ("用时：{seconds} 秒", "Seconds: {seconds}"),
    "made_tokens": ("令牌：{tokens}", "Tokens: {tokens}"),
    "made_no_tokens": ("令牌：0（没有调用模型）", "Tokens: 0 (no model was called)"),
    "made_unknown_tokens": ("令牌：没有记录", "Tokens: not recorded"),
    "made_times": ("开始 {started}，结束 {ended}", "Started {started}, ended {ended}"),
    "none": ("无", "none"),
    # README.md of a run folder
    "readme_title": ("本次研究的运行文件夹", "Run folder of one research task"),
    "readme_intro": (
        "本文件夹记录了一次研究做了什么、为什么这样做。文件如下：",
        "What one research task did, and why. The files:",
    ),
    "readme_dag": (
        "计划：节点、依赖、来源、状态；可以手工修改，运行中也可以",
        "the plan: nodes, dependencies, sources, states; may be edited by hand, also while the run is on",
    ),
    "readme_run": ("运行的设置、状态、轮次、修订和用量", "settings, status, rounds, revisions and usage of the run"),
    "readme_events": ("发生过的事，每行一件", "what happened, one event a line"),
    "readme_report": ("报告：先看这里", "the report: start here"),
    "readme_report_html": (
        "同一份报告的网页，可以点开每条引用的原文",
        "the same report as a page whose citations open their passage",
    ),
    "readme_result": ("同一份结果，供程序读取", "the same result for programs"),
    "readme_conflicts": ("同一数量在不同来源中的不同数值", "quantities that sources give different values for"),
    "readme_index": ("运行中的实时页面", "live page while the run is on"),
    "readme_sources": (
        "取回的网页和文件的快照，各节点共用",
        "snapshots of fetched pages and files, shared by the nodes",
    ),
    "readme_context": ("子代理得到的任务（恰好五个键）", "what the subagent was given (exactly five keys)"),
    "readme_input": ("给子代理的目标和约束", "goal and constraints for the subagent"),
    "readme_output": ("子代理写下的原文", "what the subagent wrote, untouched"),
    "readme_logs": ("子代理的日志", "the subagent's logs"),
    "readme_process": ("进程：命令行、起止时间、退出码、结果", "the process: command line, times, exit code, outcome"),
    "readme_conclusion": ("清洗后的结论，报告由它组成", "the cleaned conclusion, of which the report is made"),
    "readme_evidence": ("节点可以引用的原文段落，每行一段", "the passages the node may cite, one a line"),
    "readme_memory": ("我们的子代理的工作记录", "our own subagent's working record"),
    "readme_attempts": ("以前各次尝试的文件", "files of earlier attempts"),
    # progress on the terminal; one line an event
    "line_planned": (
        "任务 {task}：计划了 {nodes} 个节点，思考方式 {mind}",
        "task {task}: nodes planned: {nodes}, mind: {mind}",
    ),
    "line_attempt.start": ("{node} 开始：{question}", "{node} started: {question}"),
    "line_attempt.adopted": ("{node} 仍在运行，接手", "{node} is still running, taken over"),
    "line_attempt.end_done": ("{node} 完成（{seconds} 秒）", "{node} done ({seconds} s)"),
    "line_attempt.end_retry": ("{node} 再试一次：{reason}", "{node} is tried again: {reason}"),
    "line_attempt.end_failed": ("{node} 失败：{reason}", "{node} failed: {reason}"),
    "line_attempt.end_ended": ("{node} 已终止：{reason}", "{node} was ended: {reason}"),
    "line_attempt.end_interrupted": ("{node} 被中断", "{node} was interrupted"),
    "line_step.skip": ("{step_id} 跳过：{why}", "{step_id} skipped: {why}"),
    "line_plan.append": ("追加节点：{why}", "nodes appended: {why}"),
    "line_plan.diff": (
        "计划修订 {revision}：删除 {removed}；新增 {added}；修改 {revised}",
        "plan revision {revision}: removed {removed}; added {added}; revised {revised}",
    ),
    "line_deepen.end": ("不再深化：{why}", "no further deepening: {why}"),
    "line_edit": (
        "dag.md 被手工修改：新增 {added}；删除 {removed}；修改 {revised}；标记 {marks}",
        "dag.md was edited: added {added}; removed {removed}; revised {revised}; marks {marks}",
    ),
    "line_edit.invalid": (
        "dag.md 的手工修改无效，继续使用上一个有效计划：{errors}",
        "dag.md as edited is no valid plan, the last valid one goes on: {errors}",
    ),
    "line_run.interrupted": ("已中断，可以继续", "interrupted; it can be resumed"),
    "line_run.end": ("结束：{status} / {reason}", "ended: {status} / {reason}"),
    "plan_bounds": (
        "节点 {nodes} 个，最多 {max_nodes} 个；最多启动 {max_attempts} 次",
        "nodes: {nodes}, at most {max_nodes}; attempts: at most {max_attempts}",
    ),
    "line_browser.wait": ("{node} 等待浏览器：{holder} 正在使用", "{node} waits for the browser, which {holder} has"),
    "line_attempt.reply": ("{node} 已答复，等它改正", "{node} was told what is wrong and corrects it"),
    "line_mind.note": ("{text}", "{text}"),
    # a planner that thinks with a model
    "mind_fallback": (
        "没有得到可用的计划（{reason}），由离线规划器代替。",
        "No usable plan came ({reason}); the offline planner stands in.",
    ),
    "synthesis_contradicted": (
        "综合答案中有 {count} 句与所引原文不符，已删去。",
        "{count} sentence(s) of the synthesis were contradicted by the passage they cite, and were taken out.",
    ),
    "synthesis_unknown": (
        "综合答案中有 {count} 处引用没有出处，已去掉。",
        "{count} citation(s) of the synthesis led nowhere, and were dropped.",
    ),
    "synthesis_uncited": ("其中没有可核对的引用", "no citation in it led anywhere"),
    "mind_no_synthesis": (
        "没有得到可用的综合答案（{reason}），答案由结论原句摘录。",
        "No usable synthesis came ({reason}); the answer quotes the conclusions.",
    ),
    "prompt_memory": ("代理自己的记忆、SOP、用户资料", "the agent's own memory, SOPs, the user's profile"),
    # install
    "install_title": ("安装到 {root}", "Install into {root}"),
    "install_title_out": ("从 {root} 卸载", "Uninstall from {root}"),
    "install_dry": ("只是预演，没有改动任何文件。", "A dry run: nothing was changed."),
    "install_added": ("新增 {count} 个文件：{names}", "Added, files: {count} ({names})"),
    "install_upgraded": ("更新 {count} 个文件：{names}", "Upgraded, files: {count} ({names})"),
    "install_removed": ("删除 {count} 个文件：{names}", "Removed, files: {count} ({names})"),
    "install_unchanged": ("未变 {count} 个文件", "Unchanged, files: {count}"),
    "install_kept": ("保留 {name}：{why}", "Kept {name}: {why}"),
    "install_changed": ("它在安装后被修改过", "it was changed since it was written"),
    "install_not_ours": ("它不是本程序写入的", "this program did not write it"),
    "install_index_offered": (
        "没有改动 {file}。要让代理自己想到它，加 --index 写入这一行：",
        "{file} was left alone. For the agent to think of it by itself, --index writes this line there:",
    ),
    "install_index_added": ("在 {file} 中写入一行：", "One line in {file}:"),
    "install_index_removed": ("从 {file} 中删去一行：", "One line less in {file}:"),
    "install_index_there": ("{file} 已经提到它。", "{file} speaks of it already."),
    "install_index_missing": (
        "{file} 还不存在：先启动一次代理，再用 --index 安装。",
        "{file} is not there yet: start the agent once, then install with --index.",
    ),
    "packages_none": ("{python} 里需要的包都在。", "{python} has every package."),
    "packages_unknown": ("无法运行 {python}，不知道缺哪些包。", "{python} could not be asked which packages it lacks."),
    "packages_needed": ("{python} 缺少必需的包：{names}", "{python} lacks packages that are needed: {names}"),
    "packages_optional": ("{python} 缺少可选的包：{names}", "{python} lacks packages for parts of it: {names}"),
    "package_psutil": ("进程", "processes"),
    "package_filelock": ("锁", "locks"),
    "package_pypdf": ("读 PDF", "reading PDF"),
    "package_requests": ("网页和模型", "web pages and models"),
    "package_trafilatura": ("网页正文", "the main text of pages"),
    "package_lxml_html_clean": ("网页正文", "the main text of pages"),
    "package_json_repair": ("修复模型的 JSON", "mending a model's JSON"),
    "package_yaml": ("读 config.yaml", "reading config.yaml"),
    # why an output is no answer
    "verdict_ok": ("可用", "usable"),
    "verdict_empty": ("输出为空", "the output is empty"),
    "verdict_model_error": ("模型调用出错，没有答案", "the model call failed; there is no answer"),
    "verdict_asked_user": ("它向用户提问，没有作答", "it asked the user a question instead of answering"),
    "verdict_placeholder": (
        "它照抄了提示中的格式，没有作答",
        "it copied the format from the prompt instead of answering",
    ),
    "verdict_no_answer": ("输出中没有答案", "the output holds no answer"),
    "remark_retry": (
        "注意：上一次尝试没有成功（{reason}）。这次请直接给出结论。没有人能回答提问。",
        "Note: the attempt before this one did not succeed ({reason}). Give the conclusion this time. "
        "Nobody can answer questions.",
    ),
    "remark_reply": ("对你的提问的答复：{text}", "The answer to what you asked: {text}"),
    "deepen_rounds": ("轮数已到上限", "the limit of rounds is reached"),
    # the offline planner: what a plan says of itself, and the questions of deepening nodes
    "plan_single": (
        "一组来源、一个步骤就能回答这个问题，因此计划只有一个节点",
        "one group of sources and one step answer this question, so the plan is a single node",
    ),
    "plan_expected": ("能回答问题的原文句子及其出处", "sentences that answer, each with the passage it stands in"),
    "separator_list": ("；", "; "),
    "comma_list": ("、", ", "),
    "deepen_about": ("关于《{title}》有哪些说法？", "What is said about {title}?"),
    "deepen_about_terms": (
        "关于《{title}》有哪些说法（{terms}）？",
        "What is said about {title}, with regard to {terms}?",
    ),
    "deepen_conflict": (
        "关于{topic}，说法不同：{one} 与 {other}。哪一个对？",
        "What is said about this, {one} or {other}: {topic}?",
    ),
    "deepen_why_lead": ("结论指向尚未查看的资料：{titles}", "conclusions lead to what was not looked at yet: {titles}"),
    "deepen_why_link": ("多个结论都提到 {name}", "several conclusions mention {name}"),
    "deepen_why_conflict": ("同一数量的数值不同：{one} 与 {other}", "one quantity has two values: {one} and {other}"),
    "deepen_no_findings": ("还没有任何结论可以深化", "no conclusion is there to go on from"),
    "deepen_no_lead": (
        "问题中的“{terms}”尚未涉及，但没有线索指向能回答它的资料",
        "the question's {terms} is still open, but nothing leads to a source that could answer it",
    ),
    "deepen_repeats": ("能想到的问题都已问过", "every further question was asked before"),
    "deepen_covered": (
        "结论已涵盖问题的各个方面，也没有新的线索",
        "the conclusions speak of all of the question, and no lead is left",
    ),
    "deepen_room": ("追加节点数已到上限", "the limit of appended nodes is reached"),
    "why_no_parent_answered": (
        "它依赖的节点都没有结论",
        "none of the nodes it depends on came to a conclusion",
    ),
    "why_step_budget": ("步数预算用完", "the budget of steps was spent"),
    "why_replan_budget": ("重新规划的预算用完", "the budget of replans was spent"),
    "why_time_budget": ("时间预算用完", "the time budget was spent"),
    "why_token_budget": ("令牌预算用完", "the token budget was spent"),
    "why_by_hand": ("被手工跳过或修改", "it was skipped or changed by hand"),
    "why_removed_by_hand": ("被手工从计划中删除", "it was removed from the plan by hand"),
    "why_replanned": ("重新规划后不再需要", "it is no longer wanted after replanning"),
    "why_aborted": ("运行被中止", "the run was aborted"),
    "why_planner_error": ("规划器出错", "the planner failed"),
    # report.html and index.html
    "page_eyebrow": ("深度研究 · 任务", "Deep research · task"),
    "page_skip": ("跳到答案", "Skip to the answer"),
    "page_contents": ("目录", "Contents"),
    "page_kind_completed": ("完成", "Complete"),
    "page_kind_partial": ("部分完成", "Partial"),
    "page_kind_exhausted": ("预算用完，部分完成", "Partial: budget spent"),
    "page_kind_failed": ("失败", "Failed"),
    "page_kind_interrupted": ("已中断", "Interrupted"),
    "page_kind_running": ("运行中", "Running"),
    "page_kind_planned": ("已有计划，尚未开始", "Planned, not started"),
    "page_why_completed": ("{nodes} 个节点都有结论。", "Nodes: {nodes}. Every one came to a conclusion."),
    "page_why_partial": (
        "{nodes} 个节点中 {answered} 个有结论；缺少什么、为什么，见下文。",
        "{answered} of {nodes} nodes came to a conclusion. What is missing, and why, is said below.",
    ),
    "page_why_exhausted": (
        "结束原因：{reason}。本报告只包含在此之前得到的结论。",
        "Why it ended: {reason}. The report holds what was found until then.",
    ),
    "page_why_failed": ("没有答案。原因：{reason}。", "There is no answer. Why: {reason}."),
    "page_why_interrupted": (
        "没有运行完：{nodes} 个节点中 {settled} 个已处理。可以继续：",
        "Stopped before its end: {settled} of {nodes} nodes were dealt with. It can be resumed:",
    ),
    "page_why_running": (
        "{nodes} 个节点中 {settled} 个已处理。",
        "{settled} of {nodes} nodes are dealt with.",
    ),
    "page_why_planned": ("计划了 {nodes} 个节点。开始运行：", "Nodes planned: {nodes}. To start:"),
    "page_as_of": (
        "{time} 的状态；本页每 {seconds} 秒刷新一次。如果时间长久不变，说明运行已被终止，可以继续：",
        "As of {time}; this page reloads itself every {seconds} s. If the time stands still for long, the run was "
        "killed and can be resumed:",
    ),
    "page_provisional": (
        "运行还没有结束，这里是目前得到的内容。",
        "The run has not come to its end: this is what was found so far.",
    ),
    "page_no_answer_yet": ("还没有答案。", "There is no answer yet."),
    "page_no_answer": (
        "没有答案：没有任何节点得到结论。",
        "There is no answer: no node came to a conclusion.",
    ),
    "page_started": ("开始", "Started"),
    "page_took": ("用时", "Took"),
    "page_seconds": ("{seconds} 秒", "{seconds} s"),
    "page_minutes": ("{minutes} 分 {seconds} 秒", "{minutes} min {seconds} s"),
    "page_hours": ("{hours} 小时 {minutes} 分", "{hours} h {minutes} min"),
    "page_mind": ("思考方式", "Mind"),
    "page_mind_offline": ("离线，没有使用语言模型", "offline, no language model"),
    "page_mind_model": ("语言模型", "language model"),
    "page_mind_agent": ("外部代理的模型", "the agent's own model"),
    "page_deepenings": ("深化", "Deepenings"),
    "page_revisions": ("计划修订", "Revisions"),
    "page_tokens": ("令牌", "Tokens"),
    "page_checks": ("来源核对", "Citations checked"),
    "page_heading_plan": ("计划", "Plan"),
    "page_heading_timeline": ("时间线", "Timeline"),
    "page_heading_nodes": ("各节点", "Nodes"),
    "page_picture_label": ("计划图，可以滚动", "Picture of the plan; it scrolls"),
    "page_picture_desc": (
        "从左到右：每个方框是一个节点，线从它依赖的节点连来。共 {nodes} 个：{counts}。",
        "From left to right: each box is a node, lines come from the nodes it depends on. Nodes: {nodes}; {counts}.",
    ),
    "page_picture_left_out": ("有 {count} 条线没有画出。", "Lines left out: {count}."),
    "page_removed": ("已从计划中删除", "removed from the plan"),
    "page_removed_node": (
        "（{change}时从计划中删除）",
        "(left the plan: {change})",
    ),
    "page_added": ("新增", "added"),
    "page_tag_deepening": ("深化 {round}", "deepening {round}"),
    "page_tag_added": ("修订 {revision} 新增", "added, revision {revision}"),
    "page_tag_revised": ("有修改", "revised"),
    "page_deepening": ("深化", "deepening"),
    "page_change_first": ("最初的计划", "First plan"),
    "page_change_deepening": ("深化 {number}", "Deepening {number}"),
    "page_change_revision": ("修订 {number}", "Revision {number}"),
    "page_change_by_hand": ("手工修改", "Edited by hand"),
    "page_change_no_deepening": ("不再深化", "No further deepening"),
    "page_node": ("节点", "Node"),
    "page_start": ("开始（UTC）", "Start (UTC)"),
    "page_outcome": ("结果", "Outcome"),
    "page_attempt": ("第 {number} 次", "attempt {number}"),
    "page_attempts": ("尝试 {count} 次", "attempts: {count}"),
    "page_outcome_done": ("完成", "done"),
    "page_outcome_retry": ("再试一次", "tried again"),
    "page_outcome_failed": ("失败", "failed"),
    "page_outcome_ended": ("已终止", "ended"),
    "page_outcome_skipped": ("跳过", "skipped"),
    "page_outcome_interrupted": ("被中断", "interrupted"),
    "page_outcome_running": ("运行中", "running"),
    "page_outcome_unknown": ("没有记录", "not recorded"),
    "page_gaps": (
        "虚线处省略了没有任何尝试在运行的时间。",
        "At the dotted lines, time in which nothing ran was left out.",
    ),
    "page_after": ("依赖", "after"),
    "page_sources": ("来源：", "Sources:"),
    "page_passage_begins": (
        "引句不在保存的原文中；原文开头：",
        "The quote does not stand in the stored passage, which begins:",
    ),
    "page_more_passage": ("更多原文", "More of the passage"),
    "page_cited_by": ("引用它的节点：", "Cited by"),
    "page_back": ("回到正文：", "Back to the text:"),
    "page_close": ("关闭，留在原处", "Close and stay here"),
    "partial": ("部分完成", "partial"),
    # how far a run came, in its folder's README.md
    "run_completed": ("✓ 已完成：报告见 report.md", "✓ Complete: the report is report.md"),
    "run_partial": ("◐ 部分完成：报告 report.md 写明了缺口", "◐ Partial: report.md names what is missing"),
    "run_failed": ("✗ 失败：report.md 写明了尝试过什么", "✗ Failed: report.md says what was tried"),
    "run_interrupted": ("‖ 已中断，可以用 resume 继续", "‖ Interrupted: resume goes on"),
    "run_running": ("▸ 运行中（若已没有进程：resume 继续）", "▸ Running (if no process is left: resume goes on)"),
    # verify
    "verify_differs": (
        "报告中的核对结果与现在重新核对的结果不同：报告写成后文件被改动过",
        "The report's checks differ from the checks made now: files were changed after it was written.",
    ),
    "source_changed": ("来源已改动：{place}", "The source has changed since it was read: {place}"),
    "source_missing": ("来源已不存在：{place}", "The source is no longer there: {place}"),
}


def has(key: str) -> bool:
    """Whether the table knows `key`; for codes that other programs write and that may be newer than the table."""
    return key in WORDS


def say(lang: str, key: str, /, **facts: object) -> str:
    """The words of `key` in `lang` ('zh' or 'en') with the facts filled in.

    KeyError: the key is unknown or a fact is missing; ValueError: another language.
    """
    return WORDS[key][LANGUAGES.index(lang)].format(**facts)
