<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>AboutCard</name>
    <message>
        <source>About</source>
        <translation>关于</translation>
    </message>
    <message>
        <source>DFlash Desktop {0}. Free software under the Apache License 2.0.</source>
        <translation>DFlash Desktop {0}。基于 Apache License 2.0 的自由软件。</translation>
    </message>
    <message>
        <source>Licences…</source>
        <translation>许可证…</translation>
    </message>
</context>
<context>
    <name>AcceptancePlot</name>
    <message>
        <source>Acceptance length per step</source>
        <translation>每步的接受长度</translation>
    </message>
    <message>
        <source>Bars: tokens gained in each step. Line: mean of the last {0} steps.</source>
        <translation>柱：每一步得到的 token 数。线：最近 {0} 步的平均值。</translation>
    </message>
    <message>
        <source>Each step of a reply appears here as a bar.</source>
        <translation>回答的每一步会在此显示为一根柱。</translation>
    </message>
</context>
<context>
    <name>AccessView</name>
    <message>
        <source>Listen on the network</source>
        <translation>允许局域网访问</translation>
    </message>
    <message>
        <source>Ask programs on this computer for the key</source>
        <translation>本机程序也需要密钥</translation>
    </message>
    <message>
        <source>Programs may load models</source>
        <translation>允许程序加载模型</translation>
    </message>
    <message>
        <source>Shorten long prompts of programs</source>
        <translation>缩短其他程序的长提示词</translation>
    </message>
    <message>
        <source>Any web page may call</source>
        <translation>允许任何网页调用</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>New key</source>
        <translation>新密钥</translation>
    </message>
    <message>
        <source>Copy the key</source>
        <translation>复制密钥</translation>
    </message>
    <message>
        <source>Network and key</source>
        <translation>网络与密钥</translation>
    </message>
    <message>
        <source>Other devices can use the model. Every program then needs the key, and nothing is encrypted.</source>
        <translation>其他设备可以使用该模型。此时每个程序都需要密钥，而且传输不加密。</translation>
    </message>
    <message>
        <source>Listing the models stays free, because some programs list without a key.</source>
        <translation>列出模型不需要密钥，因为有些程序在没有密钥时也会列出模型。</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>密钥</translation>
    </message>
    <message>
        <source>Key for programs</source>
        <translation>供程序使用的密钥</translation>
    </message>
    <message>
        <source>The old key stops working; programs need the new one.</source>
        <translation>旧密钥随即失效，程序需要使用新密钥。</translation>
    </message>
    <message>
        <source>Web pages</source>
        <translation>网页</translation>
    </message>
    <message>
        <source>A web page in a browser may call only if it is named here. Pages of this computer and editors always may.</source>
        <translation>浏览器中的网页只有列在这里才能调用。本机网页和编辑器始终可以。</translation>
    </message>
    <message>
        <source>Allowed web pages</source>
        <translation>允许的网页</translation>
    </message>
    <message>
        <source>Dangerous without a key: every page you visit could use the model.</source>
        <translation>没有密钥时很危险：您访问的任何网页都可能使用该模型。</translation>
    </message>
    <message>
        <source>Programs</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>A request may name another model of this computer or a larger context. You are told of it.</source>
        <translation>请求可以指定本机的另一个模型或更大的上下文。届时会通知您。</translation>
    </message>
    <message>
        <source>PFlash on Auto, with the scorer and the share of the engine page: what matters little for the question is left out. Requests that bring tools go in whole.</source>
        <translation>PFlash 设为自动，使用引擎页上的评分模型和保留比例：与问题关系不大的内容会被略去。带工具的请求保持完整。</translation>
    </message>
    <message>
        <source>{0} is no origin. Write it as https://name or http://address:port, without a path.</source>
        <translation>{0} 不是有效来源。请写成 https://名称 或 http://地址:端口，不带路径。</translation>
    </message>
    <message>
        <source>Hide</source>
        <translation>隐藏</translation>
    </message>
    <message>
        <source>No key is asked for</source>
        <translation>不需要密钥</translation>
    </message>
    <message>
        <source>This computer is in no network at the moment.</source>
        <translation>本机目前没有连接网络。</translation>
    </message>
    <message>
        <source>Reachable as {0}, if the firewall lets programs in.</source>
        <translation>如果防火墙放行，可通过 {0} 访问。</translation>
    </message>
</context>
<context>
    <name>Attaching</name>
    <message>
        <source>Attach text or PDF files</source>
        <translation>添加文本或 PDF 文件</translation>
    </message>
</context>
<context>
    <name>AttachmentDialog</name>
    <message>
        <source>Pasted text</source>
        <translation>粘贴的文本</translation>
    </message>
    <message>
        <source>The beginning is shown; all of it is sent.</source>
        <translation>这里只显示开头，发送的是全部内容。</translation>
    </message>
</context>
<context>
    <name>CardView</name>
    <message>
        <source>Write settings…</source>
        <translation>写入配置…</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>还原</translation>
    </message>
    <message>
        <source>Takes the last write back; what was changed since stays.</source>
        <translation>撤回上一次写入；此后的其他改动保留。</translation>
    </message>
    <message>
        <source>Load a model first: the program has to be told its name.</source>
        <translation>请先加载模型：需要把模型名称告诉该程序。</translation>
    </message>
    <message>
        <source>Turn the server on to write these settings.</source>
        <translation>启动服务后才能写入这些配置。</translation>
    </message>
    <message>
        <source>{0}. The last request failed: {1}</source>
        <translation>{0}。最近一次请求失败：{1}</translation>
    </message>
    <message>
        <source>Addresses for programs without a card</source>
        <translation>供没有卡片的程序使用的地址</translation>
    </message>
    <message>
        <source>Found on this computer</source>
        <translation>已在本机找到</translation>
    </message>
    <message>
        <source>Not found here</source>
        <translation>本机未找到</translation>
    </message>
    <message>
        <source>The model is served with {0}. Agents need long prompts: some refuse below {1}, others forget early.</source>
        <translation>模型以 {0} 的上下文提供服务。智能体需要很长的提示词：有的低于 {1} 就拒绝工作，有的会过早遗忘。</translation>
    </message>
    <message>
        <source>The settings are there already: nothing would change.</source>
        <translation>配置已经存在，不会有任何改动。</translation>
    </message>
    <message>
        <source>This would change</source>
        <translation>将会改动</translation>
    </message>
    <message>
        <source>Write</source>
        <translation>写入</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Everything else in these files stays as it is. A dated copy is kept, and Undo takes it back.</source>
        <translation>这些文件中的其他内容保持不变。会保留一份带日期的副本，“还原”可以撤回。</translation>
    </message>
    <message>
        <source>{0} (a new file)</source>
        <translation>{0}（新文件）</translation>
    </message>
    <message>
        <source>Written. Next: {0}</source>
        <translation>已写入。下一步：{0}</translation>
    </message>
    <message>
        <source>Written.</source>
        <translation>已写入。</translation>
    </message>
    <message>
        <source>What was there before is kept in {0}</source>
        <translation>原来的内容保存在 {0}</translation>
    </message>
    <message>
        <source>Taken back.</source>
        <translation>已还原。</translation>
    </message>
</context>
<context>
    <name>CatalogueView</name>
    <message>
        <source>No device was found, so what fits is not known. {0}</source>
        <translation>未找到设备，因此无法判断哪些模型放得下。{0}</translation>
    </message>
    <message>
        <source>Looking for devices</source>
        <translation>正在查找设备</translation>
    </message>
    <message>
        <source>For {0}. Without a graphics card large models answer slowly: a small one needs less patience.</source>
        <translation>适用于 {0}。没有显卡时，大模型回答很慢，小模型更合适。</translation>
    </message>
    <message>
        <source>For {0}. Each pair is a target, which gives the answers, and a draft, which makes it faster.</source>
        <translation>适用于 {0}。每个模型对由给出回答的目标模型和加快速度的草稿模型组成。</translation>
    </message>
</context>
<context>
    <name>Chat</name>
    <message>
        <source>The model was not loaded, so the message was not sent.</source>
        <translation>模型没有加载成功，消息没有发送。</translation>
    </message>
</context>
<context>
    <name>ChatItemModel</name>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>System</source>
        <translation>系统</translation>
    </message>
    <message>
        <source>Tool result</source>
        <translation>工具结果</translation>
    </message>
    <message>
        <source>Version {0} of {1}</source>
        <translation>第 {0} 版，共 {1} 版</translation>
    </message>
</context>
<context>
    <name>ChatListDelegate</name>
    <message>
        <source>Name of this chat</source>
        <translation>此对话的名称</translation>
    </message>
</context>
<context>
    <name>ChatListPanel</name>
    <message>
        <source>Chats</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation>搜索所有对话</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>新对话 (Ctrl+N)</translation>
    </message>
    <message>
        <source>Nothing found.</source>
        <translation>没有找到。</translation>
    </message>
    <message>
        <source>Your chats will be listed here.</source>
        <translation>您的对话会列在这里。</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>取消置顶</translation>
    </message>
    <message>
        <source>Pin to the top</source>
        <translation>置顶</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>导出…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Go to the end (End)</source>
        <translation>跳到末尾 (End)</translation>
    </message>
    <message>
        <source>No model is loaded yet. Open one to send this message.</source>
        <translation>还没有加载模型。打开一个模型才能发送这条消息。</translation>
    </message>
    <message>
        <source>Open a model file…</source>
        <translation>打开模型文件…</translation>
    </message>
    <message>
        <source>No model is loaded yet. Start the built-in one to send this message?</source>
        <translation>还没有加载模型。要启动内置模型来发送这条消息吗？</translation>
    </message>
    <message>
        <source>Start and send</source>
        <translation>启动并发送</translation>
    </message>
    <message>
        <source>The device failed. Load the model again to go on.</source>
        <translation>设备出错。请重新加载模型后继续。</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>重新加载</translation>
    </message>
    <message>
        <source>Write to {0}</source>
        <translation>给 {0} 写消息</translation>
    </message>
    <message>
        <source>Write a message: it is sent when the model is ready</source>
        <translation>写消息：模型就绪后发送</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>写消息</translation>
    </message>
</context>
<context>
    <name>ChecksView</name>
    <message>
        <source>Self-test: {0} of {1} checks passed</source>
        <translation>自检：{1} 项中通过 {0} 项</translation>
    </message>
</context>
<context>
    <name>ClientDesk</name>
    <message>
        <source>The settings could not be changed ({0}). Details are in the log file.</source>
        <translation>无法更改配置（{0}）。详情见日志文件。</translation>
    </message>
</context>
<context>
    <name>ClientItemModel</name>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}：{1}</translation>
    </message>
    <message>
        <source>settings written, not connected yet</source>
        <translation>配置已写入，尚未连接</translation>
    </message>
    <message>
        <source>addresses to copy</source>
        <translation>可复制的地址</translation>
    </message>
    <message>
        <source>found on this computer</source>
        <translation>已在本机找到</translation>
    </message>
    <message>
        <source>not found here</source>
        <translation>本机未找到</translation>
    </message>
</context>
<context>
    <name>ClientsView</name>
    <message>
        <source>Programs</source>
        <translation>程序</translation>
    </message>
</context>
<context>
    <name>ClosingQuestion</name>
    <message>
        <source>Close DFlash Desktop?</source>
        <translation>关闭 DFlash Desktop？</translation>
    </message>
    <message>
        <source>Work is still running:</source>
        <translation>仍有任务在进行：</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Keep open</source>
        <translation>不关闭</translation>
    </message>
    <message>
        <source>A reply is being written; what has come of it is kept.</source>
        <translation>正在生成回复；已生成的部分会保留。</translation>
    </message>
    <message>
        <source>Requests of other programs: {0}</source>
        <translation>其他程序的请求：{0}</translation>
    </message>
    <message>
        <source>Downloads, which go on at the next start: {0}</source>
        <translation>下载任务（下次启动时继续）：{0}</translation>
    </message>
</context>
<context>
    <name>CodeWell</name>
    <message>
        <source>Copy: {0}</source>
        <translation>复制：{0}</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>What do you want to do?</source>
        <translation>您想做什么？</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>No command is called that.</source>
        <translation>没有这样的命令。</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Write a message</source>
        <translation>写消息</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Attach text or PDF files (Ctrl+Shift+A)</source>
        <translation>添加文本或 PDF 文件 (Ctrl+Shift+A)</translation>
    </message>
    <message>
        <source>You write this message anew; the old one stays as a version of its own.</source>
        <translation>您正在改写这条消息；原来的会作为另一个版本保留。</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Stop (Esc)</source>
        <translation>停止 (Esc)</translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation>发送 (Enter)</translation>
    </message>
    <message>
        <source>Esc stops the answer</source>
        <translation>Esc 停止回答</translation>
    </message>
    <message>
        <source>Enter sends, Shift+Enter starts a new line</source>
        <translation>Enter 发送，Shift+Enter 换行</translation>
    </message>
</context>
<context>
    <name>ContextChoice</name>
    <message>
        <source>Leave out the oldest messages</source>
        <translation>略去最早的消息</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Shorten it with PFlash…</source>
        <translation>用 PFlash 压缩…</translation>
    </message>
    <message>
        <source>Close this message</source>
        <translation>关闭此消息</translation>
    </message>
    <message>
        <source>The context is full: this conversation has no room for another answer. Nothing is lost.</source>
        <translation>上下文已满：这段对话放不下新的回答。内容没有丢失。</translation>
    </message>
    <message>
        <source>This message is longer than the context. Nothing is lost.</source>
        <translation>这条消息比上下文还长。内容没有丢失。</translation>
    </message>
    <message>
        <source>Load again with {0}</source>
        <translation>以 {0} 重新加载</translation>
    </message>
</context>
<context>
    <name>ContextMeter</name>
    <message>
        <source>{0} tokens too many for the context</source>
        <translation>超出上下文 {0} 个 token</translation>
    </message>
    <message>
        <source>Context: {0} of {1} tokens</source>
        <translation>上下文：{0} / {1} token</translation>
    </message>
    <message>
        <source>What the model reads with the next message: the conversation, the system prompt and what you have written. The answer needs room too.</source>
        <translation>模型在下一条消息时要读的内容：对话、系统提示词和您写的文字。回答也需要空间。</translation>
    </message>
</context>
<context>
    <name>ContextRow</name>
    <message>
        <source>Context in tokens</source>
        <translation>上下文长度（token）</translation>
    </message>
    <message>
        <source>trained for {0}</source>
        <translation>训练长度 {0}</translation>
    </message>
    <message>
        <source>No context fits</source>
        <translation>放不下任何上下文</translation>
    </message>
    <message>
        <source>Largest that fits: {0}</source>
        <translation>最大可用：{0}</translation>
    </message>
</context>
<context>
    <name>CopyButton</name>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
</context>
<context>
    <name>DeviceItemModel</name>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Backend</source>
        <translation>后端</translation>
    </message>
    <message>
        <source>Description</source>
        <translation>说明</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>可用</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>总量</translation>
    </message>
    <message>
        <source>Used by</source>
        <translation>占用者</translation>
    </message>
    <message>
        <source>{0}  (in use)</source>
        <translation>{0}（使用中）</translation>
    </message>
</context>
<context>
    <name>DevicePicker</name>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>{0} is not there now (asleep, unplugged, or its driver is gone). Choose another device.</source>
        <translation>{0} 现在不可用（休眠、被拔出或驱动丢失）。请选择其他设备。</translation>
    </message>
</context>
<context>
    <name>DeviceRow</name>
    <message>
        <source>Recommended: {0}</source>
        <translation>推荐：{0}</translation>
    </message>
</context>
<context>
    <name>DownloadList</name>
    <message>
        <source>Downloads</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>Clear finished</source>
        <translation>清除已完成</translation>
    </message>
</context>
<context>
    <name>DownloadRow</name>
    <message>
        <source>Progress of {0}</source>
        <translation>{0} 的进度</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Load {0}</source>
        <translation>加载 {0}</translation>
    </message>
    <message>
        <source>Pause {0}</source>
        <translation>暂停 {0}</translation>
    </message>
    <message>
        <source>Fetch {0} first</source>
        <translation>优先下载 {0}</translation>
    </message>
    <message>
        <source>Take {0} off the list</source>
        <translation>从列表移除 {0}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Delete what arrived?</source>
        <translation>删除已下载的部分？</translation>
    </message>
    <message>
        <source>Try {0} again now</source>
        <translation>立即重试 {0}</translation>
    </message>
    <message>
        <source>Go on with {0}</source>
        <translation>继续下载 {0}</translation>
    </message>
</context>
<context>
    <name>DraftPlace</name>
    <message>
        <source>Device of the draft</source>
        <translation>草稿模型所在设备</translation>
    </message>
    <message>
        <source>On another card the draft takes no memory beside the target; what it needs travels between them.</source>
        <translation>放在另一张显卡上时，草稿模型不占用目标模型旁的显存；所需数据在两者之间传输。</translation>
    </message>
    <message>
        <source>beside the target</source>
        <translation>与目标模型同一设备</translation>
    </message>
</context>
<context>
    <name>DraftRow</name>
    <message>
        <source>Auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Tree</source>
        <translation>树</translation>
    </message>
    <message>
        <source>Chain</source>
        <translation>链</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>草稿模型</translation>
    </message>
    <message>
        <source>Auto measures and drafts where that is faster. Tree and Chain always draft, come what may.</source>
        <translation>“自动”会测量，只在更快时使用草稿模型。“树”和“链”始终使用草稿模型。</translation>
    </message>
    <message>
        <source>Tree budget</source>
        <translation>树预算</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Most nodes that one step may verify.</source>
        <translation>每一步最多验证的节点数。</translation>
    </message>
    <message>
        <source>Block size</source>
        <translation>块大小</translation>
    </message>
    <message>
        <source>as trained</source>
        <translation>按训练值</translation>
    </message>
    <message>
        <source>Positions that the draft fills in one pass, the root included.</source>
        <translation>草稿模型一次填写的位置数，包括根。</translation>
    </message>
</context>
<context>
    <name>DraftTreeView</name>
    <message>
        <source>Draft tree of the last step</source>
        <translation>上一步的草稿树</translation>
    </message>
    <message>
        <source>{0} nodes drafted, {1} accepted</source>
        <translation>草拟 {0} 个节点，已接受 {1} 个</translation>
    </message>
    <message>
        <source>The draft&apos;s tree appears here when a step was drafted.</source>
        <translation>有草拟的步骤时，这里显示草稿树。</translation>
    </message>
    <message>
        <source>This step verified no nodes: the target&apos;s own token only.</source>
        <translation>这一步没有验证节点：只有目标模型自己的 token。</translation>
    </message>
    <message>
        <source>Root: the last token that is certain</source>
        <translation>根：最后一个确定的 token</translation>
    </message>
    <message>
        <source>accepted</source>
        <translation>已接受</translation>
    </message>
    <message>
        <source>not accepted</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>{0}: {1} after its parent, {2} for the whole path; {3}</source>
        <translation>{0}：在父节点之后为 {1}，整条路径为 {2}；{3}</translation>
    </message>
</context>
<context>
    <name>EnginePage</name>
    <message>
        <source>Live</source>
        <translation>实时</translation>
    </message>
    <message>
        <source>Model and devices</source>
        <translation>模型与设备</translation>
    </message>
    <message>
        <source>What to show</source>
        <translation>显示内容</translation>
    </message>
    <message>
        <source>Reading the prompt</source>
        <translation>正在预填充</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Nothing is loaded</source>
        <translation>未加载模型</translation>
    </message>
    <message>
        <source>Reading the prompt: {0} of {1}</source>
        <translation>正在预填充：{0} / {1}</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <translation>{0}，{1}</translation>
    </message>
</context>
<context>
    <name>ExportDialog</name>
    <message>
        <source>Export all chats</source>
        <translation>导出所有对话</translation>
    </message>
    <message>
        <source>Export this chat</source>
        <translation>导出此对话</translation>
    </message>
    <message>
        <source>Format</source>
        <translation>格式</translation>
    </message>
    <message>
        <source>All versions of messages, not only those that show</source>
        <translation>消息的所有版本，不只是显示的版本</translation>
    </message>
    <message>
        <source>Only JSON can be imported again.</source>
        <translation>只有 JSON 可以重新导入。</translation>
    </message>
    <message>
        <source>Only JSON can be imported again; it is one file. The others are one file per chat.</source>
        <translation>只有 JSON 可以重新导入，它是单个文件。其他格式每个对话一个文件。</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>保存…</translation>
    </message>
</context>
<context>
    <name>Exporting</name>
    <message>
        <source>Folder for the chats</source>
        <translation>存放对话的文件夹</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation>导入对话</translation>
    </message>
    <message>
        <source>Only the chat that is open can be exported: there is no chat file.</source>
        <translation>只能导出当前打开的对话：没有对话文件。</translation>
    </message>
    <message>
        <source>Exported to {0}</source>
        <translation>已导出到 {0}</translation>
    </message>
    <message>
        <source>{0} chats were imported.</source>
        <translation>已导入 {0} 个对话。</translation>
    </message>
</context>
<context>
    <name>FiguresRow</name>
    <message>
        <source>Acceptance length</source>
        <translation>接受长度</translation>
    </message>
    <message>
        <source>Tokens gained per step of the target, over this reply</source>
        <translation>本次回答中目标模型每步得到的 token 数</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>每秒 token 数</translation>
    </message>
    <message>
        <source>Over the last second; below it the mean of the reply</source>
        <translation>最近一秒；下方是本次回答的平均值</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>加速比</translation>
    </message>
    <message>
        <source>Tokens per second with the draft against plain decoding, both measured here</source>
        <translation>使用草稿模型与普通解码的每秒 token 数之比，均为本机实测</translation>
    </message>
    <message>
        <source>Time to first token</source>
        <translation>首词延迟</translation>
    </message>
    <message>
        <source>From the request to its first token; below it the tokens of the prompt</source>
        <translation>从请求到第一个 token；下方为提示词的 token 数</translation>
    </message>
    <message>
        <source>prompt: {0}</source>
        <translation>提示词：{0}</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>尚未测量</translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>How fast the prompt was read</source>
        <translation>读取提示词的速度</translation>
    </message>
    <message>
        <source>Accepted</source>
        <translation>已接受</translation>
    </message>
    <message>
        <source>Drafted nodes that the target agreed with, over this reply</source>
        <translation>本次回答中目标模型认可的草拟节点</translation>
    </message>
    <message>
        <source>{0} steps</source>
        <translation>{0} 步</translation>
    </message>
    <message>
        <source>1 step</source>
        <translation>1 步</translation>
    </message>
    <message>
        <source>mean {0}</source>
        <translation>平均 {0}</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>tok/s</translation>
    </message>
    <message>
        <source>of {0} drafted</source>
        <translation>共草拟 {0} 个</translation>
    </message>
    <message>
        <source>plain decoding</source>
        <translation>普通解码</translation>
    </message>
    <message>
        <source>against plain</source>
        <translation>对比普通解码</translation>
    </message>
    <message>
        <source>{0}×</source>
        <translation>{0}×</translation>
    </message>
    <message>
        <source>no draft</source>
        <translation>无草稿模型</translation>
    </message>
</context>
<context>
    <name>FilesCard</name>
    <message>
        <source>Files</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>Chats, models and downloads:</source>
        <translation>对话、模型和下载：</translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Move to another folder…</source>
        <translation>移动到其他文件夹…</translation>
    </message>
    <message>
        <source>Back to the usual folder</source>
        <translation>移回默认文件夹</translation>
    </message>
    <message>
        <source>Use {0} again</source>
        <translation>重新使用 {0}</translation>
    </message>
    <message>
        <source>Portable</source>
        <translation>便携模式</translation>
    </message>
    <message>
        <source>Everything in a folder beside the program ({0}): for a memory stick.</source>
        <translation>所有内容放在程序旁边的文件夹中（{0}）：适合 U 盘。</translation>
    </message>
    <message>
        <source>{0} files ({1}) will move to {2}. The window closes and comes back when that is done.</source>
        <translation>{0} 个文件（{1}）将移动到 {2}。窗口会关闭，完成后重新出现。</translation>
    </message>
    <message>
        <source>Move now</source>
        <translation>立即移动</translation>
    </message>
    <message>
        <source>Another DFlash Desktop is running with this data. Close it first.</source>
        <translation>另一个 DFlash Desktop 正在使用这些数据。请先关闭它。</translation>
    </message>
    <message>
        <source>An empty folder for chats and models</source>
        <translation>用于存放对话和模型的空文件夹</translation>
    </message>
    <message>
        <source>The folder is not there now.</source>
        <translation>该文件夹现在不存在。</translation>
    </message>
    <message>
        <source>The settings cannot be written: {0}</source>
        <translation>无法写入设置：{0}</translation>
    </message>
</context>
<context>
    <name>FirstPair</name>
    <message>
        <source>Download progress</source>
        <translation>下载进度</translation>
    </message>
    <message>
        <source>{0} with its DFlash draft</source>
        <translation>{0} 及其 DFlash 草稿模型</translation>
    </message>
    <message>
        <source>{0} to download</source>
        <translation>需下载 {0}</translation>
    </message>
    <message>
        <source>{0} ({1})</source>
        <translation>{0}（{1}）</translation>
    </message>
</context>
<context>
    <name>GetDialog</name>
    <message>
        <source>Get a model</source>
        <translation>获取模型</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>打开其页面</translation>
    </message>
    <message>
        <source>Network…</source>
        <translation>网络…</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>目标模型</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>草稿模型</translation>
    </message>
    <message>
        <source>{0}, about {1}</source>
        <translation>{0}，约 {1}</translation>
    </message>
    <message>
        <source>{0}, terms to accept</source>
        <translation>{0}，需接受条款</translation>
    </message>
    <message>
        <source>none: the target decodes alone</source>
        <translation>无：目标模型单独解码</translation>
    </message>
    <message>
        <source>The draft only changes speed. On a processor it usually costs more than it gives.</source>
        <translation>草稿模型只影响速度，不影响回答。在处理器上通常得不偿失。</translation>
    </message>
    <message>
        <source>With {0} (about {1}), which shortens long prompts: PFlash</source>
        <translation>连同 {0}（约 {1}），用于压缩长提示词：PFlash</translation>
    </message>
    <message>
        <source>Without it the built-in model does that, less well. It can be fetched later too.</source>
        <translation>没有它时由内置模型完成，效果较差。以后也可以下载。</translation>
    </message>
    <message>
        <source>Asking the hub for sizes and hashes</source>
        <translation>正在向 Hub 查询大小和校验值</translation>
    </message>
    <message>
        <source>none stated</source>
        <translation>未注明</translation>
    </message>
    <message>
        <source>Licence: {0}</source>
        <translation>许可证：{0}</translation>
    </message>
    <message>
        <source>Licence: {0}. {1} has terms to accept on its page, and needs an access token.</source>
        <translation>许可证：{0}。{1} 需要在其页面上接受条款，并需要访问令牌。</translation>
    </message>
    <message>
        <source>Reading the headers, to plan the memory</source>
        <translation>正在读取文件头以规划内存</translation>
    </message>
    <message>
        <source>{0}: on this machine already, used where it is ({1})</source>
        <translation>{0}：本机已有，就地使用（{1}）</translation>
    </message>
    <message>
        <source>{0} and {1} more parts: {2}</source>
        <translation>{0} 及另外 {1} 个分片：{2}</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}：{1}</translation>
    </message>
    <message>
        <source>Load it</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Everything is here already.</source>
        <translation>所有文件都已在本机。</translation>
    </message>
    <message>
        <source>{0} to download into {1}, where {2} are free.</source>
        <translation>需下载 {0} 到 {1}，那里有 {2} 可用。</translation>
    </message>
    <message>
        <source>Download {0}</source>
        <translation>下载 {0}</translation>
    </message>
    <message>
        <source>{0} ({1})</source>
        <translation>{0}（{1}）</translation>
    </message>
    <message>
        <source>The engine cannot use it: {0}</source>
        <translation>引擎无法使用：{0}</translation>
    </message>
    <message>
        <source>Nothing was downloaded.</source>
        <translation>没有下载任何内容。</translation>
    </message>
</context>
<context>
    <name>HelpCard</name>
    <message>
        <source>When something is wrong</source>
        <translation>出现问题时</translation>
    </message>
    <message>
        <source>The report is a zip file with the log, the settings and facts about this machine. What you or the model wrote is not in it. It stays on this computer until you send it.</source>
        <translation>报告是一个 zip 文件，包含日志、设置和本机信息，不含您或模型写的任何内容。在您发送之前，它只保存在本机。</translation>
    </message>
    <message>
        <source>Show the log</source>
        <translation>查看日志</translation>
    </message>
    <message>
        <source>Save a report…</source>
        <translation>保存报告…</translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation>保存报告</translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation>Zip 文件 (*.zip)</translation>
    </message>
    <message>
        <source>The report is saved as {0}.</source>
        <translation>报告已保存为 {0}。</translation>
    </message>
    <message>
        <source>Show the folder</source>
        <translation>显示文件夹</translation>
    </message>
</context>
<context>
    <name>InspectorView</name>
    <message>
        <source>Inspector</source>
        <translation>检查器</translation>
    </message>
    <message>
        <source>Facts</source>
        <translation>信息</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Copy redacted</source>
        <translation>复制脱敏信息</translation>
    </message>
    <message>
        <source>Counts and times for a bug report; nothing that you or the model wrote.</source>
        <translation>用于错误报告的计数和时间，不含您或模型写的任何内容。</translation>
    </message>
    <message>
        <source>Copy text</source>
        <translation>复制文本</translation>
    </message>
    <message>
        <source>Close the inspector</source>
        <translation>关闭检查器</translation>
    </message>
    <message>
        <source>Facts of the request</source>
        <translation>请求的信息</translation>
    </message>
    <message>
        <source>Prompt as the model read it</source>
        <translation>模型实际读到的提示词</translation>
    </message>
    <message>
        <source>It is still being written.</source>
        <translation>仍在生成中。</translation>
    </message>
    <message>
        <source>There is none.</source>
        <translation>没有。</translation>
    </message>
    <message>
        <source>… {0} characters are not shown; copying takes all …</source>
        <translation>… 有 {0} 个字符未显示；复制时包含全部 …</translation>
    </message>
</context>
<context>
    <name>KeptTextView</name>
    <message>
        <source>What is kept and what is left out</source>
        <translation>保留和省略的内容</translation>
    </message>
    <message>
        <source>{0}
Score: {1} of the best
Tokens: {2}</source>
        <translation>{0}
评分：最高分的 {1}
token：{2}</translation>
    </message>
</context>
<context>
    <name>KvRow</name>
    <message>
        <source>Keys</source>
        <translation>键</translation>
    </message>
    <message>
        <source>Values</source>
        <translation>值</translation>
    </message>
    <message>
        <source>automatic ({0})</source>
        <translation>自动（{0}）</translation>
    </message>
    <message>
        <source>KV cache: {0}</source>
        <translation>KV 缓存精度：{0}</translation>
    </message>
</context>
<context>
    <name>LibraryItemModel</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>What it is</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>Where</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>a part is missing</source>
        <translation>缺少一个分片</translation>
    </message>
    <message>
        <source>damaged or incomplete</source>
        <translation>损坏或不完整</translation>
    </message>
    <message>
        <source>not supported: {0}</source>
        <translation>不支持：{0}</translation>
    </message>
    <message>
        <source>draft, {0}</source>
        <translation>草稿模型，{0}</translation>
    </message>
    <message>
        <source>target, {0}, with a draft</source>
        <translation>目标模型，{0}，有草稿模型</translation>
    </message>
    <message>
        <source>target, {0}</source>
        <translation>目标模型，{0}</translation>
    </message>
</context>
<context>
    <name>LibraryView</name>
    <message>
        <source>Details</source>
        <translation>详细信息</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Show in folder</source>
        <translation>在文件夹中显示</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>校验</translation>
    </message>
    <message>
        <source>Read the file through and compare it with the hub&apos;s hash</source>
        <translation>通读文件并与 Hub 的校验值比较</translation>
    </message>
    <message>
        <source>Repair</source>
        <translation>修复</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Delete the file?</source>
        <translation>删除该文件？</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>添加文件夹…</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>重新查找</translation>
    </message>
    <message>
        <source>Places</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>Models on this machine</source>
        <translation>本机的模型</translation>
    </message>
    <message>
        <source>Looking for models on this machine</source>
        <translation>正在查找本机的模型</translation>
    </message>
    <message>
        <source>Can be loaded: {0}. Files are used where they are; nothing is copied.</source>
        <translation>可加载：{0}。文件就地使用，不会复制。</translation>
    </message>
    <message>
        <source>{0} (models: {1})</source>
        <translation>{0}（模型：{1}）</translation>
    </message>
    <message>
        <source>{0} (nothing yet)</source>
        <translation>{0}（暂无）</translation>
    </message>
    <message>
        <source>{0}: not there now. If it is on a drive, connect it.</source>
        <translation>{0}：现在不存在。如果在移动硬盘上，请连接它。</translation>
    </message>
    <message>
        <source>Look into {0} no more</source>
        <translation>不再查找 {0}</translation>
    </message>
    <message>
        <source>{0} is missing. Without it the model cannot be opened.</source>
        <translation>缺少 {0}。没有它无法打开该模型。</translation>
    </message>
    <message>
        <source>It is loaded now: unload it before you delete it.</source>
        <translation>该模型正在使用：请先卸载再删除。</translation>
    </message>
    <message>
        <source>Its draft here: {0}</source>
        <translation>它在本机的草稿模型：{0}</translation>
    </message>
    <message>
        <source>No draft for it was found on this machine: it decodes alone.</source>
        <translation>本机没有找到它的草稿模型：它将单独解码。</translation>
    </message>
    <message>
        <source>Reading {0} through</source>
        <translation>正在通读 {0}</translation>
    </message>
    <message>
        <source>Nobody knows what {0} should be: it was not downloaded here.</source>
        <translation>无法得知 {0} 应有的内容：它不是在这里下载的。</translation>
    </message>
    <message>
        <source>{0} is sound: every byte is as on the hub.</source>
        <translation>{0} 完好：每个字节都与 Hub 上一致。</translation>
    </message>
    <message>
        <source>{0} is damaged. Repair fetches the damaged parts again, and only those.</source>
        <translation>{0} 已损坏。“修复”只重新下载损坏的部分。</translation>
    </message>
    <message>
        <source>{0} is deleted: {1} are free again.</source>
        <translation>{0} 已删除：释放了 {1}。</translation>
    </message>
    <message>
        <source>A folder with models</source>
        <translation>存放模型的文件夹</translation>
    </message>
</context>
<context>
    <name>LicencesDialog</name>
    <message>
        <source>Licences</source>
        <translation>许可证</translation>
    </message>
    <message>
        <source>Licence texts</source>
        <translation>许可证文本</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>LiveStrip</name>
    <message>
        <source>Acceptance length (AL): tokens gained per step of the target. Click for the engine page.</source>
        <translation>接受长度 (AL)：目标模型每步得到的 token 数。点击打开引擎页面。</translation>
    </message>
    <message>
        <source>AL</source>
        <translation>AL</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>tok/s</translation>
    </message>
    <message>
        <source>plain decoding</source>
        <translation>普通解码</translation>
    </message>
    <message>
        <source>Acceptance length {0}, {1} tokens per second</source>
        <translation>接受长度 {0}，每秒 {1} token</translation>
    </message>
    <message>
        <source>Plain decoding, {0} tokens per second</source>
        <translation>普通解码，每秒 {0} token</translation>
    </message>
</context>
<context>
    <name>LiveView</name>
    <message>
        <source>Acceptance length</source>
        <translation>接受长度</translation>
    </message>
    <message>
        <source>tokens per step; line: mean of {0}</source>
        <translation>每步 token 数；线：{0} 步平均</translation>
    </message>
    <message>
        <source>Memory by part</source>
        <translation>内存构成</translation>
    </message>
    <message>
        <source>Memory over time</source>
        <translation>内存变化</translation>
    </message>
</context>
<context>
    <name>LoadPanel</name>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>Threads of the processor</source>
        <translation>处理器线程数</translation>
    </message>
    <message>
        <source>Drafting</source>
        <translation>草拟</translation>
    </message>
    <message>
        <source>Long prompts (PFlash)</source>
        <translation>长提示词（PFlash）</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Choose a model to see what it takes.</source>
        <translation>选择模型后显示所需内存。</translation>
    </message>
    <message>
        <source>The engine cannot be asked what this takes.</source>
        <translation>无法向引擎查询所需内存。</translation>
    </message>
    <message>
        <source>Reading the file…</source>
        <translation>正在读取文件…</translation>
    </message>
    <message>
        <source>Looking for devices…</source>
        <translation>正在查找设备…</translation>
    </message>
</context>
<context>
    <name>LoadView</name>
    <message>
        <source>Load with these settings</source>
        <translation>以这些设置加载</translation>
    </message>
    <message>
        <source>Cancel loading</source>
        <translation>取消加载</translation>
    </message>
    <message>
        <source>Another model…</source>
        <translation>其他模型…</translation>
    </message>
    <message>
        <source>How it is loaded</source>
        <translation>加载方式</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Look for devices again</source>
        <translation>重新查找设备</translation>
    </message>
    <message>
        <source>Open a model file…</source>
        <translation>打开模型文件…</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>仍然加载</translation>
    </message>
</context>
<context>
    <name>LogDialog</name>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>警告和错误</translation>
    </message>
    <message>
        <source>Which lines to show</source>
        <translation>显示哪些行</translation>
    </message>
    <message>
        <source>What you or the model wrote is never in here.</source>
        <translation>这里绝不包含您或模型写的内容。</translation>
    </message>
    <message>
        <source>Log lines</source>
        <translation>日志行</translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Nothing was logged.</source>
        <translation>没有日志。</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Serve</source>
        <translation>服务</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Your editor and agents (Cline, Codex, Claude Code…) can use this model too.</source>
        <translation>您的编辑器和智能体（Cline、Codex、Claude Code…）也可以使用这个模型。</translation>
    </message>
    <message>
        <source>Set up other programs…</source>
        <translation>设置其他程序…</translation>
    </message>
</context>
<context>
    <name>MemoryPlot</name>
    <message>
        <source>Memory over time</source>
        <translation>内存变化</translation>
    </message>
    <message>
        <source>seconds ago</source>
        <translation>秒前</translation>
    </message>
    <message>
        <source>{0}: this program {1}, others {2}, free {3}</source>
        <translation>{0}：本程序 {1}，其他 {2}，可用 {3}</translation>
    </message>
    <message>
        <source>This program {0}, others {1}, free {2}</source>
        <translation>本程序 {0}，其他 {1}，可用 {2}</translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>Conversation</source>
        <translation>对话内容</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Tool call</source>
        <translation>工具调用</translation>
    </message>
    <message>
        <source>Copy this message</source>
        <translation>复制此消息</translation>
    </message>
    <message>
        <source>Copy this code</source>
        <translation>复制此代码</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Continue this answer</source>
        <translation>继续此回答</translation>
    </message>
    <message>
        <source>Write this message anew</source>
        <translation>改写此消息</translation>
    </message>
    <message>
        <source>Version before</source>
        <translation>上一版本</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>下一版本</translation>
    </message>
    <message>
        <source>Show or hide the thoughts</source>
        <translation>显示或隐藏思考过程</translation>
    </message>
    <message>
        <source>Show this text</source>
        <translation>显示此文本</translation>
    </message>
</context>
<context>
    <name>MissingFolderDialog</name>
    <message>
        <source>The data folder is not there</source>
        <translation>找不到数据文件夹</translation>
    </message>
    <message>
        <source>Chats and models were moved to {0}, and that folder cannot be found. If it lies on a drive, connect it and try again. Nothing was deleted.</source>
        <translation>对话和模型已移到 {0}，但找不到该文件夹。如果它在移动硬盘上，请连接后重试。没有删除任何内容。</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Go on without it</source>
        <translation>不使用它继续</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
</context>
<context>
    <name>ModelBar</name>
    <message>
        <source>Model bar</source>
        <translation>模型栏</translation>
    </message>
    <message>
        <source>Load progress</source>
        <translation>加载进度</translation>
    </message>
    <message>
        <source>Answers are the target&apos;s own; the draft only changes speed.</source>
        <translation>草稿模型只影响速度，不影响回答。</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>On</source>
        <translation>开启</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>草稿模型</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Load the built-in model</source>
        <translation>加载内置模型</translation>
    </message>
    <message>
        <source>Open model…</source>
        <translation>打开模型…</translation>
    </message>
    <message>
        <source>Open your own GGUF files (Ctrl+O)</source>
        <translation>打开您自己的 GGUF 文件 (Ctrl+O)</translation>
    </message>
    <message>
        <source>How the model is loaded: device, context, memory</source>
        <translation>模型的加载方式：设备、上下文、内存</translation>
    </message>
    <message>
        <source>Unload the model and free its memory</source>
        <translation>卸载模型并释放内存</translation>
    </message>
    <message>
        <source>+ {0}</source>
        <translation>+ {0}</translation>
    </message>
    <message>
        <source>{0} context</source>
        <translation>上下文 {0}</translation>
    </message>
    <message>
        <source>Quantization of the target</source>
        <translation>目标模型的量化</translation>
    </message>
    <message>
        <source>Tokens that fit at once</source>
        <translation>一次能容纳的 token 数</translation>
    </message>
    <message>
        <source>No model loaded</source>
        <translation>未加载模型</translation>
    </message>
    <message>
        <source>Load the built-in model, or open a GGUF file of your own.</source>
        <translation>加载内置模型，或打开您自己的 GGUF 文件。</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>正在加载</translation>
    </message>
    <message>
        <source>Loading, {0}</source>
        <translation>正在加载，{0}</translation>
    </message>
</context>
<context>
    <name>ModelsEntry</name>
    <message>
        <source>A download needs you</source>
        <translation>有下载需要您处理</translation>
    </message>
    <message>
        <source>Downloads under way: {0}</source>
        <translation>正在进行的下载：{0}</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Pairs</source>
        <translation>模型对</translation>
    </message>
    <message>
        <source>On this machine</source>
        <translation>本机</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Network…</source>
        <translation>网络…</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Nothing is downloaded, and nobody is asked anything, before you say so</source>
        <translation>在您确认之前，不会下载，也不会向任何人查询</translation>
    </message>
    <message>
        <source>Added. Files are used where they are; nothing was copied.</source>
        <translation>已添加。文件就地使用，没有复制。</translation>
    </message>
</context>
<context>
    <name>MoveDialog</name>
    <message>
        <source>Moving the data</source>
        <translation>正在移动数据</translation>
    </message>
    <message>
        <source>From {0} to {1}.</source>
        <translation>从 {0} 到 {1}。</translation>
    </message>
    <message>
        <source>Progress of the move</source>
        <translation>移动进度</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Putting everything back…</source>
        <translation>正在恢复原状…</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} / {1}</translation>
    </message>
    <message>
        <source>The data stays where it was.</source>
        <translation>数据留在原处。</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>继续</translation>
    </message>
</context>
<context>
    <name>NavigationRail</name>
    <message>
        <source>Pages</source>
        <translation>页面</translation>
    </message>
</context>
<context>
    <name>NetworkDialog</name>
    <message>
        <source>Network</source>
        <translation>网络</translation>
    </message>
    <message>
        <source>Hugging Face</source>
        <translation>Hugging Face</translation>
    </message>
    <message>
        <source>A mirror</source>
        <translation>镜像站</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>None</source>
        <translation>无</translation>
    </message>
    <message>
        <source>This one</source>
        <translation>指定</translation>
    </message>
    <message>
        <source>Proxy</source>
        <translation>代理</translation>
    </message>
    <message>
        <source>Forget the token</source>
        <translation>忘记令牌</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>测试</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Used for searches and downloads, and only when you ask for one. Nothing else goes out.</source>
        <translation>仅在您要求搜索或下载时使用。不会发送任何其他内容。</translation>
    </message>
    <message>
        <source>Address of the mirror</source>
        <translation>镜像站地址</translation>
    </message>
    <message>
        <source>A mirror never gets your access token.</source>
        <translation>镜像站绝不会收到您的访问令牌。</translation>
    </message>
    <message>
        <source>Address of the proxy</source>
        <translation>代理地址</translation>
    </message>
    <message>
        <source>Certificates are those that the system trusts.</source>
        <translation>使用系统信任的证书。</translation>
    </message>
    <message>
        <source>Access token</source>
        <translation>访问令牌</translation>
    </message>
    <message>
        <source>Asking</source>
        <translation>正在查询</translation>
    </message>
    <message>
        <source>It answers.</source>
        <translation>有响应。</translation>
    </message>
    <message>
        <source>None is kept. Only gated models need one; it is sent to Hugging Face itself and nobody else.</source>
        <translation>没有保存令牌。只有受限模型需要它；它只会发送给 Hugging Face 本身。</translation>
    </message>
    <message>
        <source>One is kept in the system&apos;s keyring.</source>
        <translation>令牌保存在系统密钥环中。</translation>
    </message>
    <message>
        <source>One is kept in a file that only you may read: this system has no keyring.</source>
        <translation>令牌保存在只有您可读的文件中：本系统没有密钥环。</translation>
    </message>
    <message>
        <source>HF_TOKEN in the environment is used.</source>
        <translation>使用环境变量 HF_TOKEN。</translation>
    </message>
</context>
<context>
    <name>Notice</name>
    <message>
        <source>Details</source>
        <translation>详细信息</translation>
    </message>
    <message>
        <source>Close this message</source>
        <translation>关闭此消息</translation>
    </message>
</context>
<context>
    <name>OpenPairDialog</name>
    <message>
        <source>Load a model</source>
        <translation>加载模型</translation>
    </message>
    <message>
        <source>Files are used where they are; nothing is copied. You can drop them here.</source>
        <translation>文件就地使用，不会复制。可以拖放到这里。</translation>
    </message>
    <message>
        <source>A GGUF file. Its answers are what you read.</source>
        <translation>GGUF 文件。您读到的是它的回答。</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>目标模型</translation>
    </message>
    <message>
        <source>The DFlash draft made for this target. It only changes speed.</source>
        <translation>为此目标模型制作的 DFlash 草稿模型，只影响速度。</translation>
    </message>
    <message>
        <source>Draft (optional)</source>
        <translation>草稿模型（可选）</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>No file chosen</source>
        <translation>未选择文件</translation>
    </message>
    <message>
        <source>Choose a file: {0}</source>
        <translation>选择文件：{0}</translation>
    </message>
    <message>
        <source>Models (*.gguf);;All files (*)</source>
        <translation>模型 (*.gguf);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>仍然加载</translation>
    </message>
    <message>
        <source>Memory may run out. Then nothing is loaded, and you are told.</source>
        <translation>内存可能不足。届时不会加载任何模型，并会通知您。</translation>
    </message>
    <message>
        <source>Found on this computer:</source>
        <translation>本机找到：</translation>
    </message>
    <message>
        <source>There is no file {0}.</source>
        <translation>没有文件 {0}。</translation>
    </message>
    <message>
        <source>Target and draft are the same file. A draft is a file of its own.</source>
        <translation>目标模型和草稿模型是同一个文件。草稿模型应是单独的文件。</translation>
    </message>
</context>
<context>
    <name>OpenedFiles</name>
    <message>
        <source>The file could not be opened because of an error in the program. Details are in the log file.</source>
        <translation>由于程序错误无法打开该文件。详情见日志文件。</translation>
    </message>
</context>
<context>
    <name>PageHead</name>
    <message>
        <source>Show or hide the chats (Ctrl+B)</source>
        <translation>显示或隐藏对话列表 (Ctrl+B)</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>新对话 (Ctrl+N)</translation>
    </message>
    <message>
        <source>More about this chat</source>
        <translation>此对话的更多操作</translation>
    </message>
    <message>
        <source>Chat settings (Ctrl+Shift+S)</source>
        <translation>对话设置 (Ctrl+Shift+S)</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Export this chat…</source>
        <translation>导出此对话…</translation>
    </message>
    <message>
        <source>Export all chats…</source>
        <translation>导出所有对话…</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>导入对话…</translation>
    </message>
</context>
<context>
    <name>PairCard</name>
    <message>
        <source>recommended here</source>
        <translation>推荐本机使用</translation>
    </message>
    <message>
        <source>Get it…</source>
        <translation>获取…</translation>
    </message>
    <message>
        <source>Get {0}</source>
        <translation>获取 {0}</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Load {0}</source>
        <translation>加载 {0}</translation>
    </message>
    <message>
        <source>{0} to download</source>
        <translation>需下载 {0}</translation>
    </message>
    <message>
        <source>target {0}, draft {1}</source>
        <translation>目标模型 {0}，草稿模型 {1}</translation>
    </message>
    <message>
        <source>target {0}, no draft</source>
        <translation>目标模型 {0}，无草稿模型</translation>
    </message>
    <message>
        <source>{0} ({1})</source>
        <translation>{0}（{1}）</translation>
    </message>
</context>
<context>
    <name>PairState</name>
    <message>
        <source>Draft refused: {0}</source>
        <translation>草稿模型被拒绝：{0}</translation>
    </message>
    <message>
        <source>No draft is loaded: the target decodes alone.</source>
        <translation>未加载草稿模型：目标模型单独解码。</translation>
    </message>
    <message>
        <source>Draft loaded, switched off: the target decodes alone.</source>
        <translation>草稿模型已加载但已关闭：目标模型单独解码。</translation>
    </message>
    <message>
        <source>This draft doesn&apos;t match this target: acceptance length {0}, where 1 means no gain.</source>
        <translation>此草稿模型与目标模型不匹配：接受长度 {0}，1 表示没有收益。</translation>
    </message>
    <message>
        <source>Drafting is slower than plain decoding on this device: Auto uses plain decoding.</source>
        <translation>在此设备上使用草稿模型比普通解码慢：“自动”使用普通解码。</translation>
    </message>
    <message>
        <source>Draft on: it proposes up to {0} tokens per step.</source>
        <translation>草稿模型已开启：每步最多提出 {0} 个 token。</translation>
    </message>
    <message>
        <source>Draft loaded: Auto is using it, it is faster here.</source>
        <translation>草稿模型已加载：“自动”正在使用它，在这里更快。</translation>
    </message>
    <message>
        <source>Draft loaded: Auto uses it where it is faster.</source>
        <translation>草稿模型已加载：“自动”在更快时使用它。</translation>
    </message>
</context>
<context>
    <name>PartsBar</name>
    <message>
        <source>Memory by part: {0}</source>
        <translation>内存构成：{0}</translation>
    </message>
    <message>
        <source>nothing is loaded</source>
        <translation>未加载模型</translation>
    </message>
    <message>
        <source>Nothing is loaded.</source>
        <translation>未加载模型。</translation>
    </message>
    <message>
        <source>Together</source>
        <translation>合计</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>Stays free</source>
        <translation>剩余可用</translation>
    </message>
    <message>
        <source>Missing</source>
        <translation>缺少</translation>
    </message>
</context>
<context>
    <name>PflashRow</name>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Always</source>
        <translation>始终</translation>
    </message>
    <message>
        <source>PFlash</source>
        <translation>PFlash</translation>
    </message>
    <message>
        <source>Share that is kept</source>
        <translation>保留的比例</translation>
    </message>
    <message>
        <source>More</source>
        <translation>更多</translation>
    </message>
    <message>
        <source>Keep curve</source>
        <translation>保留曲线</translation>
    </message>
    <message>
        <source>One ratio such as 0.2, or points TOKENS:RATIO, ascending: 16384:0.3,65536:0.25. Between points the ratio moves evenly. Empty: the usual curve.</source>
        <translation>一个比例，例如 0.2；或按升序写出“token 数:比例”各点：16384:0.3,65536:0.25。两点之间比例均匀变化。留空：使用默认曲线。</translation>
    </message>
    <message>
        <source>Scorer</source>
        <translation>评分模型</translation>
    </message>
    <message>
        <source>Device of the scorer</source>
        <translation>评分模型的设备</translation>
    </message>
    <message>
        <source>as the target</source>
        <translation>与目标模型相同</translation>
    </message>
    <message>
        <source>Keep the scorer loaded</source>
        <translation>让评分模型保持加载</translation>
    </message>
    <message>
        <source>Off: it is loaded for a prompt and released after it. On: the next prompt starts sooner.</source>
        <translation>关闭：处理提示词时加载，用完释放。开启：下一个提示词开始得更快。</translation>
    </message>
    <message>
        <source>Show what is kept before sending</source>
        <translation>发送前显示保留的内容</translation>
    </message>
    <message>
        <source>A small model chooses what of a long prompt is read. Faster, and something may be missed. The system prompt and your own words stay; requests with tools are never shortened.</source>
        <translation>由一个小型评分模型决定长提示词中哪些内容会被读取。更快，但可能有遗漏。系统提示词和您自己的话始终保留；带工具的请求从不压缩。</translation>
    </message>
    <message>
        <source>From</source>
        <translation>起点</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>{0} to {1}, by length</source>
        <translation>按长度 {0} 至 {1}</translation>
    </message>
    <message>
        <source>This curve cannot be used: {0}.</source>
        <translation>无法使用这条曲线：{0}。</translation>
    </message>
    <message>
        <source>Less</source>
        <translation>收起</translation>
    </message>
    <message>
        <source> tokens</source>
        <translation> token</translation>
    </message>
    <message>
        <source>Shorten from so many tokens on</source>
        <translation>达到多少 token 时开始压缩</translation>
    </message>
    <message>
        <source>What may be left out of a conversation, in tokens: below this it is read whole.</source>
        <translation>对话中可以省略的部分，以 token 计：低于此值时完整读取。</translation>
    </message>
</context>
<context>
    <name>PflashSwitch</name>
    <message>
        <source>Off: prompts are read whole</source>
        <translation>关闭：完整读取提示词</translation>
    </message>
    <message>
        <source>Always: shorten whatever is longer than a paragraph</source>
        <translation>始终：压缩长于一段的内容</translation>
    </message>
    <message>
        <source>Show what would be kept…</source>
        <translation>显示会保留的内容…</translation>
    </message>
    <message>
        <source>Settings of PFlash…</source>
        <translation>PFlash 设置…</translation>
    </message>
    <message>
        <source>Auto: shorten prompts from {0} on</source>
        <translation>自动：从 {0} 起压缩提示词</translation>
    </message>
    <message>
        <source>PFlash: shorten this?</source>
        <translation>PFlash：压缩它？</translation>
    </message>
    <message>
        <source>PFlash off</source>
        <translation>PFlash 关闭</translation>
    </message>
    <message>
        <source>PFlash auto</source>
        <translation>PFlash 自动</translation>
    </message>
    <message>
        <source>PFlash always</source>
        <translation>PFlash 始终</translation>
    </message>
    <message>
        <source>PFlash lets a small model choose what of a long prompt is read: faster, and something may be missed.</source>
        <translation>PFlash 让一个小型评分模型决定长提示词中哪些内容会被读取：更快，但可能有遗漏。</translation>
    </message>
</context>
<context>
    <name>PlanView</name>
    <message>
        <source>Choose a model to see what it takes.</source>
        <translation>选择模型后显示所需内存。</translation>
    </message>
    <message>
        <source>Prompts will go in whole: {0}</source>
        <translation>提示词将完整读取：{0}</translation>
    </message>
    <message>
        <source>The scorer {0} needs {1}, more than {2} has beside the pair: prompts will go in whole.</source>
        <translation>评分模型 {0} 需要 {1}，超过 {2} 在加载这组模型后的剩余空间：提示词将完整读取。</translation>
    </message>
    <message>
        <source>The scorer {0} takes {1} on {2}.</source>
        <translation>评分模型 {0} 占用 {2} 上的 {1}。</translation>
    </message>
    <message>
        <source>Cannot be loaded</source>
        <translation>无法加载</translation>
    </message>
    <message>
        <source>Fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>Fits, but it is tight</source>
        <translation>放得下，但很紧张</translation>
    </message>
    <message>
        <source>Does not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>{0} needed, {1} of {2} free on {3}; {4} are kept for the system.</source>
        <translation>需要 {0}；{3} 上 {2} 中有 {1} 可用，其中 {4} 留给系统。</translation>
    </message>
    <message>
        <source>The draft takes {0} of {1} free on {2}.</source>
        <translation>草稿模型占用 {2} 上可用 {1} 中的 {0}。</translation>
    </message>
    <message>
        <source>The model that is loaded now goes first and frees {0}.</source>
        <translation>当前加载的模型会先卸载，释放 {0}。</translation>
    </message>
    <message>
        <source>Learned at the last load</source>
        <translation>上次加载测得的额外部分</translation>
    </message>
    <message>
        <source>PFlash&apos;s scorer</source>
        <translation>PFlash 评分模型</translation>
    </message>
    <message>
        <source>PFlash&apos;s scorer, while it reads</source>
        <translation>PFlash 评分模型（读取时）</translation>
    </message>
    <message>
        <source>Last load: {0} planned, {1} measured ({2}).</source>
        <translation>上次加载：预计 {0}，实测 {1}（{2}）。</translation>
    </message>
    <message>
        <source>Context of {0}</source>
        <translation>上下文 {0}</translation>
    </message>
    <message>
        <source>KV cache as {0}: smaller, a little slower</source>
        <translation>KV 缓存用 {0}：更小，略慢</translation>
    </message>
    <message>
        <source>Without the draft: same answers, slower</source>
        <translation>不用草稿模型：回答相同，速度较慢</translation>
    </message>
    <message>
        <source>On {0} instead</source>
        <translation>改用 {0}</translation>
    </message>
</context>
<context>
    <name>PresetsRow</name>
    <message>
        <source>Standard</source>
        <translation>标准</translation>
    </message>
    <message>
        <source>Exact (always the likeliest token)</source>
        <translation>精确（总取最可能的 token）</translation>
    </message>
    <message>
        <source>Varied</source>
        <translation>多样</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>预设</translation>
    </message>
    <message>
        <source>Save these settings as a preset</source>
        <translation>将这些设置保存为预设</translation>
    </message>
    <message>
        <source>Delete this preset</source>
        <translation>删除此预设</translation>
    </message>
    <message>
        <source>Own settings</source>
        <translation>自定义设置</translation>
    </message>
    <message>
        <source>Save a preset</source>
        <translation>保存预设</translation>
    </message>
    <message>
        <source>Name of the preset</source>
        <translation>预设名称</translation>
    </message>
</context>
<context>
    <name>ReplySettingsPanel</name>
    <message>
        <source>Chat settings</source>
        <translation>对话设置</translation>
    </message>
    <message>
        <source>Close the chat settings</source>
        <translation>关闭对话设置</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>预设</translation>
    </message>
    <message>
        <source>How the model should behave. Empty: the model&apos;s own.</source>
        <translation>模型应如何表现。留空则使用模型自带的。</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>0 always takes the likeliest token. Higher is more varied.</source>
        <translation>0 总取最可能的 token。越高越多样。</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Smallest set of tokens with this share. 1 is off.</source>
        <translation>达到此概率占比的最小 token 集合。1 为关闭。</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Only the k likeliest tokens.</source>
        <translation>只取最可能的 k 个 token。</translation>
    </message>
    <message>
        <source>another each time</source>
        <translation>每次不同</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>随机种子</translation>
    </message>
    <message>
        <source>The same seed and text give the same answer.</source>
        <translation>相同的种子和文字得到相同的回答。</translation>
    </message>
    <message>
        <source>room left in the context</source>
        <translation>上下文的剩余空间</translation>
    </message>
    <message>
        <source>Most tokens per answer</source>
        <translation>每次回答的最多 token 数</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>On</source>
        <translation>开启</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>思考</translation>
    </message>
    <message>
        <source>For models that can answer with and without thoughts.</source>
        <translation>用于可开关思考过程的模型。</translation>
    </message>
    <message>
        <source>Reset to defaults</source>
        <translation>恢复默认值</translation>
    </message>
</context>
<context>
    <name>RequestItemModel</name>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Client</source>
        <translation>客户端</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Cached</source>
        <translation>已缓存</translation>
    </message>
    <message>
        <source>Prefilled</source>
        <translation>已预填充</translation>
    </message>
    <message>
        <source>Decoded</source>
        <translation>已解码</translation>
    </message>
    <message>
        <source>AL</source>
        <translation>AL</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>tok/s</translation>
    </message>
    <message>
        <source>Took</source>
        <translation>耗时</translation>
    </message>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
</context>
<context>
    <name>RequestsView</name>
    <message>
        <source>Clear</source>
        <translation>清空</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>No program has asked for a reply yet.</source>
        <translation>还没有程序请求回答。</translation>
    </message>
    <message>
        <source>Each request appears here with its tokens, its speed and what the model read.</source>
        <translation>每个请求都会显示在这里，包括 token 数、速度和模型读到的内容。</translation>
    </message>
    <message>
        <source>{0} kept</source>
        <translation>保留 {0} 个</translation>
    </message>
</context>
<context>
    <name>ScorerBox</name>
    <message>
        <source>Built-in: SmolLM2 135M</source>
        <translation>内置：SmolLM2 135M</translation>
    </message>
    <message>
        <source>None: choose one</source>
        <translation>无：请选择一个</translation>
    </message>
    <message>
        <source>{0} (made for this pair)</source>
        <translation>{0}（为这组模型准备）</translation>
    </message>
    <message>
        <source>Another file…</source>
        <translation>其他文件…</translation>
    </message>
</context>
<context>
    <name>ScorerFinder</name>
    <message>
        <source>A model that rates prompts</source>
        <translation>用来评分提示词的模型</translation>
    </message>
    <message>
        <source>{0} cannot rate prompts: {1}</source>
        <translation>{0} 不能给提示词评分：{1}</translation>
    </message>
    <message>
        <source>it is no model that reads text by itself.</source>
        <translation>它不是能单独读取文本的模型。</translation>
    </message>
    <message>
        <source>{0} is of the family {1}; models of the families {2} rate prompts.</source>
        <translation>{0} 属于 {1} 系列；能给提示词评分的是 {2} 系列的模型。</translation>
    </message>
</context>
<context>
    <name>SearchView</name>
    <message>
        <source>Name of a model, or owner/repository</source>
        <translation>模型名称，或 所有者/仓库</translation>
    </message>
    <message>
        <source>Search the hub</source>
        <translation>搜索 Hub</translation>
    </message>
    <message>
        <source>Repositories</source>
        <translation>仓库</translation>
    </message>
    <message>
        <source>Models in the repository</source>
        <translation>仓库中的模型</translation>
    </message>
    <message>
        <source>Does it fit?</source>
        <translation>放得下吗？</translation>
    </message>
    <message>
        <source>Fetches the header of the file, and lets the engine plan with it</source>
        <translation>获取文件头，由引擎据此规划</translation>
    </message>
    <message>
        <source>Get it…</source>
        <translation>获取…</translation>
    </message>
    <message>
        <source>Nothing is sent before you press the button.</source>
        <translation>按下按钮之前不会发送任何内容。</translation>
    </message>
    <message>
        <source>Asking the hub</source>
        <translation>正在查询 Hub</translation>
    </message>
    <message>
        <source>Found: {0}, the most downloaded first.</source>
        <translation>找到：{0}，按下载量排序。</translation>
    </message>
    <message>
        <source>The hub has no GGUF model of that name.</source>
        <translation>Hub 上没有这个名称的 GGUF 模型。</translation>
    </message>
    <message>
        <source>Fetching the header</source>
        <translation>正在获取文件头</translation>
    </message>
    <message>
        <source>Repository</source>
        <translation>仓库</translation>
    </message>
    <message>
        <source>Downloads</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>{0} (terms to accept)</source>
        <translation>{0}（需接受条款）</translation>
    </message>
    <message>
        <source>Choose a repository: its models are listed here.</source>
        <translation>选择一个仓库：其中的模型会列在这里。</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>{0} ({1} parts)</source>
        <translation>{0}（{1} 个分片）</translation>
    </message>
    <message>
        <source>No GGUF model is in this repository.</source>
        <translation>此仓库中没有 GGUF 模型。</translation>
    </message>
</context>
<context>
    <name>ServeNow</name>
    <message>
        <source>There is no model to load. Open one first.</source>
        <translation>没有可加载的模型。请先打开一个。</translation>
    </message>
</context>
<context>
    <name>ServePage</name>
    <message>
        <source>Programs</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>Access</source>
        <translation>访问</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Serve</source>
        <translation>服务</translation>
    </message>
    <message>
        <source>Programs on this computer use the model as if it were LM Studio&apos;s</source>
        <translation>本机程序可像使用 LM Studio 的模型一样使用它</translation>
    </message>
    <message>
        <source>It serves as LM Studio. In your program choose the provider LM Studio; nothing else to set.</source>
        <translation>正以 LM Studio 的身份提供服务。在您的程序中选择提供方 LM Studio 即可，无需其他设置。</translation>
    </message>
    <message>
        <source>It serves. Give your program the address above; the card below has the steps.</source>
        <translation>正在提供服务。将上面的地址填入您的程序；步骤见下面的卡片。</translation>
    </message>
    <message>
        <source>{0} running or waiting</source>
        <translation>{0} 个正在运行或等待</translation>
    </message>
</context>
<context>
    <name>ServerBridge</name>
    <message>
        <source>The server could not be started: {0}. Details are in the log file.</source>
        <translation>无法启动服务：{0}。详情见日志文件。</translation>
    </message>
</context>
<context>
    <name>Serving</name>
    <message>
        <source>A program asked to unload the model.</source>
        <translation>有程序要求卸载模型。</translation>
    </message>
    <message>
        <source>A program asked for a context of {0}: the model is loaded again with it.</source>
        <translation>有程序要求 {0} 的上下文：正在以此重新加载模型。</translation>
    </message>
    <message>
        <source>A program asked for {0}: it is being loaded.</source>
        <translation>有程序要求 {0}：正在加载。</translation>
    </message>
</context>
<context>
    <name>SettingsDesk</name>
    <message>
        <source>The program ended unexpectedly last time, while {0} was being loaded on {1}.</source>
        <translation>上次程序在把 {0} 加载到 {1} 时意外结束。</translation>
    </message>
    <message>
        <source>the best device</source>
        <translation>最佳设备</translation>
    </message>
    <message>
        <source>The program ended unexpectedly last time, while {0} was answering on {1}.</source>
        <translation>上次程序在 {1} 上由 {0} 回答时意外结束。</translation>
    </message>
    <message>
        <source>The program ended unexpectedly last time.</source>
        <translation>上次程序意外结束。</translation>
    </message>
    <message>
        <source>The engine or its driver crashed; the log has the details.</source>
        <translation>引擎或其驱动崩溃，详情见日志。</translation>
    </message>
    <message>
        <source>It was ended from outside: by the system (perhaps out of memory), by hand or by a power cut.</source>
        <translation>它是被外部结束的：被系统（可能因内存不足）、被手动结束或因断电。</translation>
    </message>
    <message>
        <source>{0} {1} Your chats and what you had typed are still here.</source>
        <translation>{0}{1}您的对话和已输入的文字都还在。</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>General</source>
        <translation>常规</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>What this program sends</source>
        <translation>本程序发送的内容</translation>
    </message>
    <message>
        <source>Nothing by itself: no telemetry, no account, no look for updates.</source>
        <translation>不会自行发送任何内容：没有遥测，没有账号，不检查更新。</translation>
    </message>
    <message>
        <source>huggingface.co, or the mirror you set, when you search for models or press Download.</source>
        <translation>当您搜索模型或按下“下载”时，访问 huggingface.co 或您设置的镜像站。</translation>
    </message>
    <message>
        <source>The place where new versions are announced, when you press Check for updates.</source>
        <translation>发布新版本的网站，当您按下“检查更新”时。</translation>
    </message>
    <message>
        <source>This computer only, when you start the server; your network if you allow it there.</source>
        <translation>启动服务后只限本机；若您允许，则为局域网。</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>重置</translation>
    </message>
    <message>
        <source>Reset all settings</source>
        <translation>重置所有设置</translation>
    </message>
    <message>
        <source>Really reset all settings?</source>
        <translation>确定重置所有设置？</translation>
    </message>
    <message>
        <source>Forget how models were loaded</source>
        <translation>忘记各模型的加载设置</translation>
    </message>
    <message>
        <source>Really forget it for all models?</source>
        <translation>确定忘记所有模型的加载设置？</translation>
    </message>
    <message>
        <source>Chats and models are not touched by either.</source>
        <translation>两者都不会影响对话和模型。</translation>
    </message>
    <message>
        <source>All settings have their defaults again.</source>
        <translation>所有设置已恢复默认值。</translation>
    </message>
    <message>
        <source>The settings of all models are forgotten.</source>
        <translation>已忘记所有模型的加载设置。</translation>
    </message>
</context>
<context>
    <name>ShorteningDesk</name>
    <message>
        <source>No scorer is chosen. Choose a small model in the settings of PFlash.</source>
        <translation>尚未选择评分模型。请在 PFlash 设置中选择一个评分模型。</translation>
    </message>
</context>
<context>
    <name>ShorteningDialog</name>
    <message>
        <source>What is kept of this message</source>
        <translation>这条消息保留的内容</translation>
    </message>
    <message>
        <source>Bright is sent, dim is left out. The bars are the scores; point at a passage for its own.</source>
        <translation>明亮的部分会发送，暗淡的部分会省略。左侧长条是评分；指向一段可查看它的评分。</translation>
    </message>
    <message>
        <source>Choosing what to keep</source>
        <translation>正在选择保留的内容</translation>
    </message>
    <message>
        <source>Share that is kept</source>
        <translation>保留的比例</translation>
    </message>
    <message>
        <source>Show this before sending</source>
        <translation>发送前显示此窗口</translation>
    </message>
    <message>
        <source>Send shortened</source>
        <translation>压缩后发送</translation>
    </message>
    <message>
        <source>Send whole</source>
        <translation>完整发送</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Waiting until the engine is free</source>
        <translation>正在等待引擎空闲</translation>
    </message>
    <message>
        <source>Loading the scorer</source>
        <translation>正在加载评分模型</translation>
    </message>
    <message>
        <source>Choosing what to keep: {0} of {1} tokens read</source>
        <translation>正在选择保留的内容：已读取 {0} / {1} token</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <translation>{0}，{1}</translation>
    </message>
    <message>
        <source>{0} tokens do not fit into the context of {1}</source>
        <translation>{0} 个 token 放不进 {1} 的上下文</translation>
    </message>
    <message>
        <source>Nothing in this message is long enough to be shortened.</source>
        <translation>这条消息中没有足够长、可以压缩的内容。</translation>
    </message>
    <message>
        <source>{0} → {1}: {2} of this message is kept</source>
        <translation>{0} → {1}：保留这条消息的 {2}</translation>
    </message>
    <message>
        <source>{0}; reading the rest would take about {1}</source>
        <translation>{0}；读取其余部分大约需要 {1}</translation>
    </message>
</context>
<context>
    <name>SocketCard</name>
    <message>
        <source>Server</source>
        <translation>服务器</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>端口</translation>
    </message>
    <message>
        <source>1234 is where programs look for LM Studio.</source>
        <translation>程序会在 1234 端口查找 LM Studio。</translation>
    </message>
    <message>
        <source>Serve to LM Studio / Cline</source>
        <translation>为 LM Studio / Cline 提供服务</translation>
    </message>
    <message>
        <source>Loads a model if none is, serves on port 1234 as LM Studio, tests, and sets Cline up if you agree.</source>
        <translation>如未加载模型则先加载，以 LM Studio 的身份在 1234 端口提供服务并自检；经您同意后配置 Cline。</translation>
    </message>
    <message>
        <source>Programs still wait for {0} replies. Closing the port ends them.</source>
        <translation>程序还在等待 {0} 个回答。关闭端口会中断它们。</translation>
    </message>
    <message>
        <source>Close the port</source>
        <translation>关闭端口</translation>
    </message>
    <message>
        <source>Keep serving</source>
        <translation>继续服务</translation>
    </message>
    <message>
        <source>New settings count when nobody waits for a reply. Starting again now ends the replies that run.</source>
        <translation>没有程序等待回答时，新设置才会生效。现在重新启动会中断正在进行的回答。</translation>
    </message>
    <message>
        <source>Start again now</source>
        <translation>立即重新启动</translation>
    </message>
    <message>
        <source>Programs may get wrong answers until this check passes.</source>
        <translation>在此项检查通过之前，程序可能得到错误的回答。</translation>
    </message>
    <message>
        <source>Test again</source>
        <translation>重新测试</translation>
    </message>
    <message>
        <source>Load a model so that programs get answers.</source>
        <translation>加载模型后程序才能得到回答。</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Use port {0}</source>
        <translation>使用端口 {0}</translation>
    </message>
    <message>
        <source>Choose another port, or try again.</source>
        <translation>请选择其他端口，或重试。</translation>
    </message>
    <message>
        <source>Stop LM Studio&apos;s own server and try again, or serve on another port.</source>
        <translation>请停止 LM Studio 自己的服务后重试，或改用其他端口。</translation>
    </message>
    <message>
        <source>DFlash Desktop already serves there, perhaps in another window or a terminal.</source>
        <translation>DFlash Desktop 已在该端口提供服务，可能在另一个窗口或终端中。</translation>
    </message>
    <message>
        <source>Close that program and try again, or serve on another port.</source>
        <translation>请关闭该程序后重试，或改用其他端口。</translation>
    </message>
</context>
<context>
    <name>StartView</name>
    <message>
        <source>No device found</source>
        <translation>没有找到设备</translation>
    </message>
    <message>
        <source>Load {0}</source>
        <translation>加载 {0}</translation>
    </message>
    <message>
        <source>Show the download</source>
        <translation>显示下载</translation>
    </message>
    <message>
        <source>Get it: {0}…</source>
        <translation>获取：{0}…</translation>
    </message>
    <message>
        <source>Get {0}…</source>
        <translation>获取 {0}…</translation>
    </message>
    <message>
        <source>Use the built-in model now</source>
        <translation>立即使用内置模型</translation>
    </message>
    <message>
        <source>Start with the built-in model</source>
        <translation>从内置模型开始</translation>
    </message>
    <message>
        <source>I already have models ({0} found)</source>
        <translation>我已有模型（找到 {0} 个）</translation>
    </message>
    <message>
        <source>I already have models</source>
        <translation>我已有模型</translation>
    </message>
    <message>
        <source>Chat with a model on this machine</source>
        <translation>与本机上的模型对话</translation>
    </message>
    <message>
        <source>No account, no network: what you write stays here.</source>
        <translation>无需账号，无需网络：您写的内容只留在本机。</translation>
    </message>
    <message>
        <source>Looking for devices</source>
        <translation>正在查找设备</translation>
    </message>
    <message>
        <source>No model comes with this build</source>
        <translation>此版本不含模型</translation>
    </message>
    <message>
        <source>Open a GGUF file that you have.</source>
        <translation>打开您已有的 GGUF 文件。</translation>
    </message>
    <message>
        <source>With its draft  ·  {0}  ·  {1}  ·  comes with the app</source>
        <translation>含草稿模型  ·  {0}  ·  {1}  ·  随应用提供</translation>
    </message>
    <message>
        <source>{0}  ·  {1}  ·  comes with the app</source>
        <translation>{0}  ·  {1}  ·  随应用提供</translation>
    </message>
    <message>
        <source>Open a model file…</source>
        <translation>打开模型文件…</translation>
    </message>
    <message>
        <source>You can also drop a GGUF file on this window.</source>
        <translation>也可以把 GGUF 文件拖放到此窗口。</translation>
    </message>
    <message>
        <source>Load progress</source>
        <translation>加载进度</translation>
    </message>
    <message>
        <source>You can write already: your message is sent when the model is ready.</source>
        <translation>您现在就可以写：模型就绪后会发送。</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Try one of these</source>
        <translation>试试这些</translation>
    </message>
    <message>
        <source>Explain photosynthesis in simple terms.</source>
        <translation>用简单的话解释光合作用。</translation>
    </message>
    <message>
        <source>Write a JavaScript function that checks whether a number is prime.</source>
        <translation>写一个判断质数的 JavaScript 函数。</translation>
    </message>
    <message>
        <source>Give me a list of healthy meals for a busy week.</source>
        <translation>给我一份适合忙碌一周的健康餐单。</translation>
    </message>
    <message>
        <source>Loading {0}</source>
        <translation>正在加载 {0}</translation>
    </message>
    <message>
        <source>{0} is ready</source>
        <translation>{0} 已就绪</translation>
    </message>
    <message>
        <source>Answers are the target&apos;s own; the draft only changes speed.</source>
        <translation>草稿模型只影响速度，不影响回答。</translation>
    </message>
    <message>
        <source>Reading the file</source>
        <translation>正在读取文件</translation>
    </message>
    <message>
        <source>Preparing the device</source>
        <translation>正在准备设备</translation>
    </message>
    <message>
        <source>target</source>
        <translation>目标模型</translation>
    </message>
    <message>
        <source>draft</source>
        <translation>草稿模型</translation>
    </message>
    <message>
        <source>{0} of {1}  ·  {2}</source>
        <translation>{0} / {1}  ·  {2}</translation>
    </message>
</context>
<context>
    <name>StepCard</name>
    <message>
        <source>Draft tree of a step</source>
        <translation>一步的草稿树</translation>
    </message>
    <message>
        <source>One step back</source>
        <translation>后退一步</translation>
    </message>
    <message>
        <source>Hold this step</source>
        <translation>停在这一步</translation>
    </message>
    <message>
        <source>One step on</source>
        <translation>前进一步</translation>
    </message>
    <message>
        <source>One step back; the last {0} are kept</source>
        <translation>后退一步；保留最近 {0} 步</translation>
    </message>
    <message>
        <source>Go on live</source>
        <translation>继续实时显示</translation>
    </message>
</context>
<context>
    <name>TalkDesk</name>
    <message>
        <source>{0} messages were deleted.</source>
        <translation>已删除 {0} 条消息。</translation>
    </message>
    <message>
        <source>Bring them back</source>
        <translation>恢复</translation>
    </message>
    <message>
        <source>The model does not read the first {0} messages any more. They stay here for you.</source>
        <translation>模型不再读取最早的 {0} 条消息。它们仍为您保留在这里。</translation>
    </message>
    <message>
        <source>A new chat has begun.</source>
        <translation>已开始新对话。</translation>
    </message>
    <message>
        <source>Bring the old one back</source>
        <translation>恢复原来的对话</translation>
    </message>
    <message>
        <source>“{0}” was deleted.</source>
        <translation>已删除“{0}”。</translation>
    </message>
    <message>
        <source>Chat without a name</source>
        <translation>未命名的对话</translation>
    </message>
    <message>
        <source>Bring it back</source>
        <translation>恢复</translation>
    </message>
    <message>
        <source>Chats are saved again.</source>
        <translation>对话又可以保存了。</translation>
    </message>
</context>
<context>
    <name>ThemeMenu</name>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>DFlash Desktop</source>
        <translation>DFlash Desktop</translation>
    </message>
    <message>
        <source>Open the window</source>
        <translation>打开窗口</translation>
    </message>
    <message>
        <source>Unload the model</source>
        <translation>卸载模型</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Other programs are still served. The window is here; so is Quit.</source>
        <translation>仍在为其他程序提供服务。可在这里打开窗口或退出。</translation>
    </message>
    <message>
        <source>Stop the server</source>
        <translation>停止服务</translation>
    </message>
    <message>
        <source>Start the server</source>
        <translation>启动服务</translation>
    </message>
    <message>
        <source>Answering</source>
        <translation>正在回答</translation>
    </message>
    <message>
        <source>A model is being loaded</source>
        <translation>正在加载模型</translation>
    </message>
    <message>
        <source>Downloading: {0}</source>
        <translation>正在下载：{0}</translation>
    </message>
    <message>
        <source>Serving other programs on port {0}</source>
        <translation>正在为其他程序提供服务，端口 {0}</translation>
    </message>
    <message>
        <source>Loaded: {0}</source>
        <translation>已加载：{0}</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>未加载模型</translation>
    </message>
</context>
<context>
    <name>Troubles</name>
    <message>
        <source>Show in folder</source>
        <translation>在文件夹中显示</translation>
    </message>
    <message>
        <source>Do not tell again</source>
        <translation>不再提示</translation>
    </message>
</context>
<context>
    <name>UnknownFolderDialog</name>
    <message>
        <source>The file {0} says where chats and models lie, and it is damaged or cannot be read. Choose their folder, or use the usual one ({1}). Nothing was deleted, and that file is kept as well.</source>
        <translation>文件 {0} 记录了对话和模型所在的位置，但它已损坏或无法读取。请选择它们所在的文件夹，或使用默认文件夹（{1}）。没有删除任何内容，该文件也会保留。</translation>
    </message>
    <message>
        <source>Where your data lies is not known</source>
        <translation>不知道数据在哪里</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Use the usual folder</source>
        <translation>使用默认文件夹</translation>
    </message>
    <message>
        <source>Choose the folder…</source>
        <translation>选择文件夹…</translation>
    </message>
    <message>
        <source>The folder with your chats and models</source>
        <translation>存放对话和模型的文件夹</translation>
    </message>
</context>
<context>
    <name>UpdatesRow</name>
    <message>
        <source>Check for updates</source>
        <translation>检查更新</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>打开其页面</translation>
    </message>
    <message>
        <source>This copy was built without the address where releases are announced, so it cannot look. Newer versions are where you got this one.</source>
        <translation>此副本在构建时没有写入版本发布地址，因此无法检查。新版本在您获取此副本的地方。</translation>
    </message>
    <message>
        <source>Asking {0}…</source>
        <translation>正在询问 {0}…</translation>
    </message>
    <message>
        <source>Version {0} is out. This is {1}.</source>
        <translation>{0} 版已发布。当前版本为 {1}。</translation>
    </message>
    <message>
        <source>This is the newest version, {0}.</source>
        <translation>当前已是最新版本 {0}。</translation>
    </message>
    <message>
        <source>{0} has no list of releases at the address that is known here.</source>
        <translation>{0} 在此处已知的地址上没有版本列表。</translation>
    </message>
</context>
<context>
    <name>_Addresses</name>
    <message>
        <source>OpenAI</source>
        <translation>OpenAI</translation>
    </message>
    <message>
        <source>Anthropic, LM Studio, Ollama</source>
        <translation>Anthropic、LM Studio、Ollama</translation>
    </message>
    <message>
        <source>On the network</source>
        <translation>在局域网中</translation>
    </message>
    <message>
        <source>Copy the address: {0}</source>
        <translation>复制地址：{0}</translation>
    </message>
</context>
<context>
    <name>_Chip</name>
    <message>
        <source>Pasted text: {0}</source>
        <translation>粘贴的文本：{0}</translation>
    </message>
    <message>
        <source>Remove {0}</source>
        <translation>移除 {0}</translation>
    </message>
</context>
<context>
    <name>app</name>
    <message>
        <source>Something went wrong in the program itself ({0}). Details are in the log file.</source>
        <translation>程序自身出错（{0}）。详情见日志文件。</translation>
    </message>
</context>
<context>
    <name>catalogue</name>
    <message>
        <source>The default on a 24 GB card: writes, reasons, codes and calls tools.</source>
        <translation>24 GB 显卡的首选：写作、推理、编程、调用工具。</translation>
    </message>
    <message>
        <source>The generation before; its draft is the best measured one on code.</source>
        <translation>上一代；它的草稿模型在代码上的实测表现最好。</translation>
    </message>
    <message>
        <source>The newest of the three, with a DFlash2 draft.</source>
        <translation>三者中最新的一个，配有 DFlash2 草稿模型。</translation>
    </message>
    <message>
        <source>For cards with 10 to 16 GB: a good all-rounder with a long context.</source>
        <translation>适合 10 至 16 GB 的显卡：能力全面，上下文长。</translation>
    </message>
    <message>
        <source>For 10 to 12 GB; its draft was made for answers without thinking.</source>
        <translation>适合 10 至 12 GB；它的草稿模型是为不带思考的回答训练的。</translation>
    </message>
    <message>
        <source>For 10 to 12 GB; no thinking, quick and plain.</source>
        <translation>适合 10 至 12 GB；不思考，快速直接。</translation>
    </message>
    <message>
        <source>For cards with 6 to 8 GB, and for patient people without one.</source>
        <translation>适合 6 至 8 GB 的显卡，也适合没有显卡但有耐心的人。</translation>
    </message>
    <message>
        <source>For 6 to 8 GB; its draft was made for answers without thinking.</source>
        <translation>适合 6 至 8 GB；它的草稿模型是为不带思考的回答训练的。</translation>
    </message>
</context>
<context>
    <name>causes</name>
    <message>
        <source>The model&apos;s chat template refuses this conversation: {0}.</source>
        <translation>模型的对话模板拒绝了这段对话：{0}。</translation>
    </message>
    <message>
        <source>No model is loaded. Load one first.</source>
        <translation>尚未加载模型。请先加载一个。</translation>
    </message>
    <message>
        <source>Another model was loaded meanwhile. Send it again.</source>
        <translation>其间加载了另一个模型。请重新发送。</translation>
    </message>
    <message>
        <source>{0} is not in {1} any more. Choose where it is now, or another model.</source>
        <translation>{0} 已不在 {1} 中。请指出它现在的位置，或选择其他模型。</translation>
    </message>
    <message>
        <source>{0} is damaged, incomplete or no model file. Download it again, or choose another file.</source>
        <translation>{0} 已损坏、不完整或不是模型文件。请重新下载，或选择其他文件。</translation>
    </message>
    <message>
        <source>{0} is no DFlash draft. Choose the draft made for this model, or none.</source>
        <translation>{0} 不是 DFlash 草稿模型。请选择为该模型制作的草稿模型，或不使用草稿模型。</translation>
    </message>
    <message>
        <source>{0} is a DFlash draft, not a model to chat with. Open it with its target.</source>
        <translation>{0} 是 DFlash 草稿模型，不能单独对话。请与其目标模型一起打开。</translation>
    </message>
    <message>
        <source>{0} is not a model to chat with.</source>
        <translation>{0} 不是可以对话的模型。</translation>
    </message>
    <message>
        <source>{0} is not a draft for {1}. Choose the draft that was made for this model, or load it alone.</source>
        <translation>{0} 不是 {1} 的草稿模型。请选择为该模型制作的草稿模型，或单独加载该模型。</translation>
    </message>
    <message>
        <source>{0} has a tokenizer of a kind that this version does not know: {1}.</source>
        <translation>当前版本不认识 {0} 的分词器类型：{1}。</translation>
    </message>
    <message>
        <source>Something went wrong in the program itself ({0}). The log has more.</source>
        <translation>程序本身出错（{0}）。详情见日志。</translation>
    </message>
    <message>
        <source>{0} is of the architecture {1}, which this version does not run.</source>
        <translation>{0} 的架构是 {1}，此版本无法运行这种架构。</translation>
    </message>
    <message>
        <source>{0} is a mixture of experts, which this version does not run.</source>
        <translation>{0} 是混合专家（MoE）模型，此版本无法运行这种模型。</translation>
    </message>
    <message>
        <source>{0} is a draft of a kind that this version does not run.</source>
        <translation>{0} 是此版本无法运行的一种草稿模型。</translation>
    </message>
    <message>
        <source>{0} is a model that this version or device cannot run. Choose another one.</source>
        <translation>当前版本或设备无法运行模型 {0}。请选择其他模型。</translation>
    </message>
    <message>
        <source>With a context of {0} this model needs {1}; {2} has {3} free. The largest context that fits: {4}.</source>
        <translation>上下文为 {0} 时，该模型需要 {1}；{2} 可用 {3}。放得下的最大上下文：{4}。</translation>
    </message>
    <message>
        <source>With a context of {0} this model needs {1}; {2} has {3} free. No context fits: choose a smaller model or another device, or close what uses the memory.</source>
        <translation>上下文为 {0} 时，该模型需要 {1}；{2} 可用 {3}。任何上下文都放不下：请选择更小的模型或其他设备，或关闭占用内存的程序。</translation>
    </message>
    <message>
        <source>With a context of {0} the draft needs {1}; {2} has {3} free. Choose a smaller context, or another device for the draft.</source>
        <translation>上下文为 {0} 时，草稿模型需要 {1}；{2} 可用 {3}。请选择更小的上下文，或为草稿模型选择其他设备。</translation>
    </message>
    <message>
        <source>{0} needs {1}; {2} has {3} free. Choose a smaller context or model, or close what uses the memory.</source>
        <translation>{0}需要 {1}；{2} 可用 {3}。请选择更小的上下文或模型，或关闭占用内存的程序。</translation>
    </message>
    <message>
        <source>{0} needs {1} in one piece, which {2} does not have. Choose a smaller context or model, or close what uses the memory.</source>
        <translation>{0}需要一整块 {1} 的内存，{2} 没有这么大的一块。请选择更小的上下文或模型，或关闭占用内存的程序。</translation>
    </message>
    <message>
        <source>The memory of {0} is not enough. Choose a smaller context or model, or close what uses it.</source>
        <translation>{0} 的内存不足。请选择更小的上下文或模型，或关闭占用内存的程序。</translation>
    </message>
    <message>
        <source>The computer has no memory left for this. Close what uses it, and try again.</source>
        <translation>计算机内存不足。请关闭占用内存的程序后重试。</translation>
    </message>
    <message>
        <source>The model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>The KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>The computation</source>
        <translation>计算过程</translation>
    </message>
    <message>
        <source>The draft</source>
        <translation>草稿模型</translation>
    </message>
    <message>
        <source>The scorer</source>
        <translation>评分模型</translation>
    </message>
    <message>
        <source>This</source>
        <translation>这一步</translation>
    </message>
    <message>
        <source>There is no device {0}. Present: {1}.</source>
        <translation>没有设备 {0}。现有设备：{1}。</translation>
    </message>
    <message>
        <source>The device {0} failed. Load the model again; if it stays so, update its driver.</source>
        <translation>设备 {0} 出错。请重新加载模型；若仍然如此，请更新其驱动。</translation>
    </message>
    <message>
        <source>The device failed. Load the model again; if it stays so, update its driver.</source>
        <translation>设备出错。请重新加载模型；若仍然如此，请更新其驱动。</translation>
    </message>
    <message>
        <source>The engine&apos;s library is missing or of another version. Install the program again.</source>
        <translation>引擎库缺失或版本不符。请重新安装程序。</translation>
    </message>
    <message>
        <source>{0} was damaged. It is kept as {1}; defaults count in its place.</source>
        <translation>{0} 已损坏，现保存为 {1}；暂用默认值代替。</translation>
    </message>
    <message>
        <source>{0} is damaged and cannot be moved aside. Defaults count in its place.</source>
        <translation>{0} 已损坏，且无法移到一旁；暂用默认值代替。</translation>
    </message>
    <message>
        <source>{0} cannot be read. Check who may read it; defaults count in its place.</source>
        <translation>无法读取 {0}，请检查其读取权限；暂用默认值代替。</translation>
    </message>
    <message>
        <source>{0} cannot be written: {1}. What you set counts until the program ends.</source>
        <translation>无法写入 {0}：{1}。您的设置在程序结束前有效。</translation>
    </message>
    <message>
        <source>The engine finds no device to compute on. Install the program again.</source>
        <translation>引擎找不到可用于计算的设备。请重新安装程序。</translation>
    </message>
    <message>
        <source>The message has at least {0}, but the context holds {1}, and the answer needs room too. Shorten it by at least {2}, or load the model with a larger context.</source>
        <translation>消息至少有 {0}，而上下文只能容纳 {1}，回答也需要空间。请至少缩短 {2}，或以更大的上下文加载模型。</translation>
    </message>
    <message>
        <source>The message with all before it has {0}, but the context holds {1}, and the answer needs room too. Shorten it by at least {2}, or load the model with a larger context.</source>
        <translation>消息连同之前的内容共 {0}，而上下文只能容纳 {1}，回答也需要空间。请至少缩短 {2}，或以更大的上下文加载模型。</translation>
    </message>
    <message>
        <source>The disk with {0} is too full: {1} are needed, {2} are free.</source>
        <translation>{0} 所在磁盘空间不足：需要 {1}，可用 {2}。</translation>
    </message>
    <message>
        <source>The disk with {0} is full. Make room; then it goes on.</source>
        <translation>{0} 所在磁盘已满。请腾出空间，之后会继续。</translation>
    </message>
</context>
<context>
    <name>chats</name>
    <message>
        <source>Pinned</source>
        <translation>已置顶</translation>
    </message>
    <message>
        <source>pinned</source>
        <translation>已置顶</translation>
    </message>
    <message>
        <source>an answer is being written</source>
        <translation>正在生成回答</translation>
    </message>
    <message>
        <source>Chat without a name</source>
        <translation>未命名的对话</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>今天</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>昨天</translation>
    </message>
    <message>
        <source>Last seven days</source>
        <translation>最近七天</translation>
    </message>
    <message>
        <source>Last month</source>
        <translation>最近一个月</translation>
    </message>
</context>
<context>
    <name>checks</name>
    <message>
        <source>Health</source>
        <translation>健康检查</translation>
    </message>
    <message>
        <source>IPv6</source>
        <translation>IPv6</translation>
    </message>
    <message>
        <source>LM Studio</source>
        <translation>LM Studio</translation>
    </message>
    <message>
        <source>LM Studio SDK</source>
        <translation>LM Studio SDK</translation>
    </message>
    <message>
        <source>OpenAI list</source>
        <translation>OpenAI 列表</translation>
    </message>
    <message>
        <source>OpenAI chat</source>
        <translation>OpenAI 对话</translation>
    </message>
    <message>
        <source>Anthropic</source>
        <translation>Anthropic</translation>
    </message>
    <message>
        <source>Responses</source>
        <translation>Responses</translation>
    </message>
    <message>
        <source>Ollama</source>
        <translation>Ollama</translation>
    </message>
    <message>
        <source>Web pages</source>
        <translation>网页</translation>
    </message>
</context>
<context>
    <name>clients</name>
    <message>
        <source>LM Studio&apos;s SDK</source>
        <translation>LM Studio 的 SDK</translation>
    </message>
    <message>
        <source>Another program</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>In Roo Code&apos;s settings choose the API Provider &apos;OpenAI Compatible&apos;.</source>
        <translation>在 Roo Code 的设置中选择 API Provider “OpenAI Compatible”。</translation>
    </message>
    <message>
        <source>Base URL {0}, API Key {1}, Model {2}.</source>
        <translation>Base URL 填 {0}，API Key 填 {1}，Model 填 {2}。</translation>
    </message>
    <message>
        <source>Context Window Size {0}, Max Output Tokens -1, streaming on, images and prompt caching off.</source>
        <translation>Context Window Size 填 {0}，Max Output Tokens 填 -1；打开流式输出，关闭图片和提示词缓存。</translation>
    </message>
    <message>
        <source>Roo Code&apos;s provider &apos;LM Studio&apos; works too, with Base URL {0}: it lists the models by itself, but sends no key.</source>
        <translation>Roo Code 的“LM Studio”提供方也能用，Base URL 填 {0}：它会自己列出模型，但不发送密钥。</translation>
    </message>
    <message>
        <source>Set &apos;API request timeout&apos; to 0: a long prompt takes longer than ten minutes on slow machines.</source>
        <translation>把“API request timeout”设为 0：在较慢的电脑上，长提示词需要十分钟以上。</translation>
    </message>
    <message>
        <source>Base URL</source>
        <translation>Base URL（地址）</translation>
    </message>
    <message>
        <source>API Key</source>
        <translation>API Key（密钥）</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Save, then send Roo Code a message.</source>
        <translation>保存，然后给 Roo Code 发一条消息。</translation>
    </message>
    <message>
        <source>Admin Settings &gt; Connections &gt; OpenAI: add a connection of the type Chat Completions.</source>
        <translation>打开 Admin Settings &gt; Connections &gt; OpenAI，添加一个 Chat Completions 类型的连接。</translation>
    </message>
    <message>
        <source>URL {0} (from inside Docker: {1}), key {2}.</source>
        <translation>URL 填 {0}（在 Docker 中：{1}），密钥填 {2}。</translation>
    </message>
    <message>
        <source>In a container on Linux the server must listen on the network, and the container needs the host gateway.</source>
        <translation>在 Linux 的容器中使用时，服务必须允许局域网访问，容器还需要 host gateway。</translation>
    </message>
    <message>
        <source>Switch title, tag and follow-up generation off, or give them another model: they take the one engine.</source>
        <translation>请关闭标题、标签和后续问题的自动生成，或为它们指定别的模型：它们会占用唯一的引擎。</translation>
    </message>
    <message>
        <source>Variables</source>
        <translation>环境变量</translation>
    </message>
    <message>
        <source>Reload Open WebUI and choose the model.</source>
        <translation>重新载入 Open WebUI，然后选择该模型。</translation>
    </message>
    <message>
        <source>LM Studio cannot use other servers in its chat without a plugin. What this does: every program that expects LM Studio gets DFlash instead.</source>
        <translation>没有插件时，LM Studio 的聊天不能使用其他服务。这里的作用是：凡是要连接 LM Studio 的程序，连接到的都是 DFlash。</translation>
    </message>
    <message>
        <source>Such a program needs no setting: choose its LM Studio preset.</source>
        <translation>这类程序无需设置：选择其中的 LM Studio 预设即可。</translation>
    </message>
    <message>
        <source>Such a program needs the address {0} (or {1}): we are not on 1234.</source>
        <translation>这类程序需要填写地址 {0}（或 {1}）：当前端口不是 1234。</translation>
    </message>
    <message>
        <source>Tools with an LM Studio preset</source>
        <translation>带有 LM Studio 预设的工具</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>密钥</translation>
    </message>
    <message>
        <source>Choose the LM Studio preset in the program.</source>
        <translation>在该程序中选择 LM Studio 预设。</translation>
    </message>
    <message>
        <source>Paste the lines into a terminal.</source>
        <translation>把这些行粘贴到终端中。</translation>
    </message>
    <message>
        <source>Hermes wants 64000 tokens of context; {0} are loaded. Load the model with more.</source>
        <translation>Hermes 需要 64000 个 token 的上下文，目前加载的是 {0}。请以更大的上下文加载模型。</translation>
    </message>
    <message>
        <source>Terminal</source>
        <translation>终端</translation>
    </message>
    <message>
        <source>In a terminal run: {0}</source>
        <translation>在终端中运行：{0}</translation>
    </message>
    <message>
        <source>Choose the provider LM Studio, with this address in the environment.</source>
        <translation>选择 LM Studio 作为提供方，并在环境变量中设置这个地址。</translation>
    </message>
    <message>
        <source>Any other program</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>Wherever a program asks for an OpenAI, Anthropic, LM Studio or Ollama address, give it ours.</source>
        <translation>只要程序要求填写 OpenAI、Anthropic、LM Studio 或 Ollama 的地址，就填我们的地址。</translation>
    </message>
    <message>
        <source>For one terminal: paste the lines for your shell, then start Claude Code.</source>
        <translation>只用于一个终端：粘贴适合您的 shell 的那几行，然后启动 Claude Code。</translation>
    </message>
    <message>
        <source>For always: write the variables into your user settings.</source>
        <translation>长期使用：把这些变量写入您的用户设置。</translation>
    </message>
    <message>
        <source>Nothing to type: Cline looks on port 1234 by itself.</source>
        <translation>无需填写：Cline 会自动查找端口 1234。</translation>
    </message>
    <message>
        <source>Tick &apos;Use custom base URL&apos; and enter {0} (without /v1).</source>
        <translation>勾选“Use custom base URL”并填写 {0}（不带 /v1）。</translation>
    </message>
    <message>
        <source>In Cline&apos;s settings choose the API Provider &apos;LM Studio&apos;.</source>
        <translation>在 Cline 的设置中选择 API Provider “LM Studio”。</translation>
    </message>
    <message>
        <source>Choose the model {0}. Context Window must show {1}; if it shows 0, Cline did not reach the server.</source>
        <translation>选择模型 {0}。Context Window 应显示 {1}；如果显示 0，说明 Cline 没有连上服务。</translation>
    </message>
    <message>
        <source>Recommended: Features &gt; Use compact prompt.</source>
        <translation>建议打开：Features &gt; Use compact prompt。</translation>
    </message>
    <message>
        <source>Command line</source>
        <translation>命令行</translation>
    </message>
    <message>
        <source>A running editor holds its settings in memory and may write them back: close it first, or run &apos;Reload Window&apos; afterwards. Cline 3 keeps its settings inside the editor: follow the steps there.</source>
        <translation>正在运行的编辑器把设置保存在内存中，可能会写回旧值：请先关闭编辑器，或在写入后执行“Reload Window”。Cline 3 的设置保存在编辑器内部：请在那里按步骤设置。</translation>
    </message>
    <message>
        <source>Run &apos;Reload Window&apos; in the editor, then send Cline a message.</source>
        <translation>在编辑器中执行“Reload Window”，然后给 Cline 发一条消息。</translation>
    </message>
    <message>
        <source>Write the profile (two files of our own in Codex&apos;s folder), then run: {0}</source>
        <translation>写入配置（Codex 文件夹中两个我们自己的文件），然后运行：{0}</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Without any settings: {0}</source>
        <translation>不做任何设置：{0}</translation>
    </message>
    <message>
        <source>Run without settings</source>
        <translation>不做设置直接运行</translation>
    </message>
    <message>
        <source>Add the model to config.yaml in Continue&apos;s folder, or write it there.</source>
        <translation>在 Continue 文件夹的 config.yaml 中添加该模型，或由我们写入。</translation>
    </message>
    <message>
        <source>Choose &apos;{0}&apos; in Continue&apos;s model list. Autocomplete stays off: it would flood the one engine.</source>
        <translation>在 Continue 的模型列表中选择“{0}”。自动补全保持关闭：它会占满唯一的引擎。</translation>
    </message>
    <message>
        <source>Choose &apos;{0}&apos; in Continue&apos;s model list.</source>
        <translation>在 Continue 的模型列表中选择“{0}”。</translation>
    </message>
    <message>
        <source>Add the model to customModels in Droid&apos;s settings.json, or write it there.</source>
        <translation>在 Droid 的 settings.json 的 customModels 中添加该模型，或由我们写入。</translation>
    </message>
    <message>
        <source>In a terminal run: droid, then choose &apos;DFlash local&apos; with /model.</source>
        <translation>在终端中运行 droid，然后用 /model 选择“DFlash local”。</translation>
    </message>
    <message>
        <source>In the chat&apos;s model list choose &apos;Manage Models&apos;, then the Ollama provider.</source>
        <translation>在聊天的模型列表中选择“Manage Models”，然后选择 Ollama。</translation>
    </message>
    <message>
        <source>Its address is {0}.</source>
        <translation>它的地址是 {0}。</translation>
    </message>
    <message>
        <source>Choose the model in the chat&apos;s model list.</source>
        <translation>在聊天的模型列表中选择该模型。</translation>
    </message>
    <message>
        <source>Write the provider into OpenCode&apos;s settings, or copy it there.</source>
        <translation>把提供方写入 OpenCode 的设置，或自行复制过去。</translation>
    </message>
    <message>
        <source>Choose {0}.</source>
        <translation>选择 {0}。</translation>
    </message>
    <message>
        <source>Without a file</source>
        <translation>不写文件</translation>
    </message>
    <message>
        <source>For one terminal: paste the variables, then run {0}.</source>
        <translation>只用于一个终端：粘贴这些变量，然后运行 {0}。</translation>
    </message>
    <message>
        <source>For always: write the model provider.</source>
        <translation>长期使用：写入模型提供方。</translation>
    </message>
    <message>
        <source>Nothing to set: Zed&apos;s LM Studio provider looks on port 1234.</source>
        <translation>无需设置：Zed 的 LM Studio 提供方会查找端口 1234。</translation>
    </message>
    <message>
        <source>Set the address of Zed&apos;s LM Studio provider, or write it into settings.json.</source>
        <translation>设置 Zed 的 LM Studio 提供方的地址，或把它写入 settings.json。</translation>
    </message>
    <message>
        <source>In the agent panel choose LM Studio, then {0}.</source>
        <translation>在 agent 面板中选择 LM Studio，然后选择 {0}。</translation>
    </message>
    <message>
        <source>Open Zed&apos;s agent panel and choose the model under LM Studio.</source>
        <translation>打开 Zed 的 agent 面板，在 LM Studio 下选择该模型。</translation>
    </message>
</context>
<context>
    <name>commands</name>
    <message>
        <source>Chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation>搜索所有对话</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>停止回答</translation>
    </message>
    <message>
        <source>Attach files</source>
        <translation>添加文件</translation>
    </message>
    <message>
        <source>Show what PFlash would keep of this message</source>
        <translation>显示 PFlash 会保留这条消息的哪些内容</translation>
    </message>
    <message>
        <source>Chat settings</source>
        <translation>对话设置</translation>
    </message>
    <message>
        <source>Show or hide the list of chats</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>Go through the messages</source>
        <translation>浏览消息</translation>
    </message>
    <message>
        <source>Show what the draft got right</source>
        <translation>标出草稿模型猜对的部分</translation>
    </message>
    <message>
        <source>Export all chats…</source>
        <translation>导出所有对话…</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>导入对话…</translation>
    </message>
    <message>
        <source>Export this chat…</source>
        <translation>导出此对话…</translation>
    </message>
    <message>
        <source>Go to</source>
        <translation>转到</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Continue the answer</source>
        <translation>继续回答</translation>
    </message>
    <message>
        <source>Page</source>
        <translation>页面</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>文字大小</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Open a model file…</source>
        <translation>打开模型文件…</translation>
    </message>
    <message>
        <source>Unload the model</source>
        <translation>卸载模型</translation>
    </message>
    <message>
        <source>Larger</source>
        <translation>放大文字</translation>
    </message>
    <message>
        <source>Smaller</source>
        <translation>缩小文字</translation>
    </message>
    <message>
        <source>As it was</source>
        <translation>恢复文字大小</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
</context>
<context>
    <name>devices</name>
    <message>
        <source>memory unknown</source>
        <translation>内存未知</translation>
    </message>
    <message>
        <source>{0} of {1} memory free</source>
        <translation>内存 {1}，可用 {0}</translation>
    </message>
    <message>
        <source>the card with the most free memory</source>
        <translation>可用显存最多的显卡</translation>
    </message>
    <message>
        <source>a graphics card of its own</source>
        <translation>独立显卡</translation>
    </message>
    <message>
        <source>no graphics card of its own is present; this one shares the machine&apos;s memory</source>
        <translation>没有独立显卡；它与本机共享内存</translation>
    </message>
    <message>
        <source>no usable graphics card is present</source>
        <translation>没有可用的显卡</translation>
    </message>
    <message>
        <source>process {0}</source>
        <translation>进程 {0}</translation>
    </message>
    <message>
        <source>{0} ({1})</source>
        <translation>{0}（{1}）</translation>
    </message>
    <message>
        <source>{0} more</source>
        <translation>另外 {0} 个</translation>
    </message>
    <message>
        <source>Used by {0}</source>
        <translation>占用者：{0}</translation>
    </message>
    <message>
        <source>The same card as {0}, driven by {1}</source>
        <translation>与 {0} 是同一块显卡，由 {1} 驱动</translation>
    </message>
    <message>
        <source>{0}: the card is not used, for its driver does not run. Install {1} and restart.</source>
        <translation>{0}：显卡未被使用，因为驱动没有运行。请安装 {1} 并重新启动。</translation>
    </message>
    <message>
        <source>{0}: the card is not used. Its driver {2} runs CUDA {3} at most. Install {1} and restart.</source>
        <translation>{0}：显卡未被使用。其驱动 {2} 最高支持 CUDA {3}。请安装 {1} 并重新启动。</translation>
    </message>
    <message>
        <source>{0}: the card is not used, for this build has no backend for it. Install one that has.</source>
        <translation>{0}：显卡未被使用，因为此版本没有它的后端。请安装带有该后端的版本。</translation>
    </message>
    <message>
        <source>{0}: the card is not used, for its backend could not start. The log says why.</source>
        <translation>{0}：显卡未被使用，因为其后端无法启动。原因见日志。</translation>
    </message>
    <message>
        <source>Graphics cards are not used this time: the last start ended while their drivers were started. Start again to try them once more.</source>
        <translation>本次未使用显卡：上次启动在加载显卡驱动时终止。请重新启动以再次尝试。</translation>
    </message>
    <message>
        <source>{0}: the card is not used, for no Vulkan driver answers. Install the card&apos;s driver; on Linux also the Vulkan loader (package libvulkan1), for AMD and Intel mesa-vulkan-drivers.</source>
        <translation>{0}：显卡未被使用，因为没有可用的 Vulkan 驱动。请安装显卡驱动；在 Linux 上还需 Vulkan 加载器（软件包 libvulkan1），AMD 和 Intel 显卡还需 mesa-vulkan-drivers。</translation>
    </message>
</context>
<context>
    <name>export</name>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>System</source>
        <translation>系统</translation>
    </message>
    <message>
        <source>Tool result</source>
        <translation>工具结果</translation>
    </message>
    <message>
        <source>Thoughts</source>
        <translation>思考过程</translation>
    </message>
    <message>
        <source>Attached:</source>
        <translation>附件：</translation>
    </message>
    <message>
        <source>version {0} of {1}</source>
        <translation>第 {0} 版，共 {1} 版</translation>
    </message>
</context>
<context>
    <name>facts</name>
    <message>
        <source>draft on</source>
        <translation>草稿模型开启</translation>
    </message>
    <message>
        <source>no draft</source>
        <translation>无草稿模型</translation>
    </message>
    <message>
        <source>draft off: plain is faster here</source>
        <translation>草稿模型关闭：普通解码在这里更快</translation>
    </message>
    <message>
        <source>draft off</source>
        <translation>草稿模型关闭</translation>
    </message>
    <message>
        <source>finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>token limit reached</source>
        <translation>达到 token 上限</translation>
    </message>
    <message>
        <source>context is full</source>
        <translation>上下文已满</translation>
    </message>
    <message>
        <source>stopped by you</source>
        <translation>由您停止</translation>
    </message>
    <message>
        <source>{0} tok/s</source>
        <translation>{0} tok/s</translation>
    </message>
    <message>
        <source>first token {0}</source>
        <translation>首词延迟 {0}</translation>
    </message>
    <message>
        <source>AL {0}</source>
        <translation>AL {0}</translation>
    </message>
    <message>
        <source>{0} times plain</source>
        <translation>普通解码的 {0} 倍</translation>
    </message>
    <message>
        <source>Model: {0}</source>
        <translation>模型：{0}</translation>
    </message>
    <message>
        <source>Draft: {0}</source>
        <translation>草稿模型：{0}</translation>
    </message>
    <message>
        <source>Device: {0}</source>
        <translation>设备：{0}</translation>
    </message>
    <message>
        <source>Prompt: {0}, read at {1} tok/s</source>
        <translation>提示词：{0}，预填充 {1} tok/s</translation>
    </message>
    <message>
        <source>Temperature {0}, top-p {1}, top-k {2}, seed {3}</source>
        <translation>温度 {0}，top-p {1}，top-k {2}，种子 {3}</translation>
    </message>
    <message>
        <source>AL: tokens gained per step of the target</source>
        <translation>AL：目标模型每步得到的 token 数</translation>
    </message>
    <message>
        <source>{0}  ·  {1}</source>
        <translation>{0}  ·  {1}</translation>
    </message>
    <message>
        <source>System</source>
        <translation>系统</translation>
    </message>
    <message>
        <source>Tool result</source>
        <translation>工具结果</translation>
    </message>
    <message>
        <source>Choosing what to keep of the prompt</source>
        <translation>正在选择提示词中保留的内容</translation>
    </message>
    <message>
        <source>Choosing what to keep of the prompt  ·  {0} of {1} tokens</source>
        <translation>正在选择提示词中保留的内容  ·  {0} / {1} token</translation>
    </message>
    <message>
        <source>Reading the prompt</source>
        <translation>正在预填充</translation>
    </message>
    <message>
        <source>Reading the prompt  ·  {0} of {1} tokens</source>
        <translation>正在预填充  ·  {0} / {1} token</translation>
    </message>
    <message>
        <source>Waiting for the model to load; this message is sent then.</source>
        <translation>正在等待模型加载；加载后发送此消息。</translation>
    </message>
    <message>
        <source>Waiting for its turn</source>
        <translation>正在排队</translation>
    </message>
    <message>
        <source>Stopped before the first token.</source>
        <translation>在第一个 token 之前停止。</translation>
    </message>
    <message>
        <source>The program ended in the middle of this answer.</source>
        <translation>程序在生成此回答的过程中结束了。</translation>
    </message>
    <message>
        <source>This answer repeats itself. Esc stops it; a higher temperature or another model may help then.</source>
        <translation>这个回答在不断重复。按 Esc 停止；之后可试试更高的温度或其他模型。</translation>
    </message>
    <message>
        <source>This answer repeats itself. Answer again with a higher temperature, or with another model.</source>
        <translation>这个回答在不断重复。可用更高的温度或换一个模型重新回答。</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>思考</translation>
    </message>
    <message>
        <source>Thoughts</source>
        <translation>思考过程</translation>
    </message>
    <message>
        <source>Thought for {0}</source>
        <translation>思考了 {0}</translation>
    </message>
    <message>
        <source>prompt sent whole: {0}</source>
        <translation>提示词已完整发送：{0}</translation>
    </message>
    <message>
        <source>prompt shortened before: about {0} → {1}</source>
        <translation>提示词此前已压缩：约 {0} → {1}</translation>
    </message>
    <message>
        <source>prompt shortened: about {0} → {1}, chosen in {2}</source>
        <translation>提示词已压缩：约 {0} → {1}，选择用时 {2}</translation>
    </message>
    <message>
        <source>prompt shortened: about {0} → {1}, chosen in {2}, about {3} saved</source>
        <translation>提示词已压缩：约 {0} → {1}，选择用时 {2}，约节省 {3}</translation>
    </message>
    <message>
        <source>prompt shortened: about {0} → {1}, chosen in {2}, which took about {3} longer</source>
        <translation>提示词已压缩：约 {0} → {1}，选择用时 {2}，约多用 {3}</translation>
    </message>
    <message>
        <source>PFlash: {0}</source>
        <translation>PFlash：{0}</translation>
    </message>
    <message>
        <source>PFlash&apos;s scorer: {0}</source>
        <translation>PFlash 评分模型：{0}</translation>
    </message>
    <message>
        <source>Left out before, brought back for this question: {0}</source>
        <translation>此前省略、为这个问题取回：{0}</translation>
    </message>
</context>
<context>
    <name>failures</name>
    <message>
        <source>The chosen device is not there. Nothing was loaded anywhere else.</source>
        <translation>所选设备不存在。没有改在其他设备上加载。</translation>
    </message>
    <message>
        <source>The memory is not enough for this.</source>
        <translation>内存不足。</translation>
    </message>
    <message>
        <source>The device failed.</source>
        <translation>设备出错。</translation>
    </message>
    <message>
        <source>Something went wrong in the program itself.</source>
        <translation>程序自身出错。</translation>
    </message>
    <message>
        <source>This pair cannot be loaded.</source>
        <translation>无法加载此模型对。</translation>
    </message>
    <message>
        <source>This model cannot be loaded.</source>
        <translation>无法加载此模型。</translation>
    </message>
    <message>
        <source>Load without the draft</source>
        <translation>不用草稿模型加载</translation>
    </message>
    <message>
        <source>Change what is loaded…</source>
        <translation>更改加载内容…</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Show the log</source>
        <translation>查看日志</translation>
    </message>
    <message>
        <source>Save a report…</source>
        <translation>保存报告…</translation>
    </message>
</context>
<context>
    <name>hub</name>
    <message>
        <source>There is no network connection to {0}. Everything on this machine works as before.</source>
        <translation>无法连接到 {0}。本机上的一切照常工作。</translation>
    </message>
    <message>
        <source>{0} cannot be reached ({1}). If that stays so, use a mirror or a proxy: Network…</source>
        <translation>无法访问 {0}（{1}）。如果一直如此，请使用镜像站或代理：网络…</translation>
    </message>
    <message>
        <source>{0} stopped sending.</source>
        <translation>{0} 停止了发送。</translation>
    </message>
    <message>
        <source>The certificate of {0} is not trusted. A security program may sit in between: add its certificate to the system&apos;s store.</source>
        <translation>{0} 的证书不受信任。中间可能有安全软件：请将其证书加入系统证书库。</translation>
    </message>
    <message>
        <source>The proxy does not let us through to {0} ({1}). Check its address: Network…</source>
        <translation>代理不允许访问 {0}（{1}）。请检查代理地址：网络…</translation>
    </message>
    <message>
        <source>Something else answers in place of {0}: a network&apos;s sign-in page, or a mirror that is none.</source>
        <translation>响应的不是 {0}：可能是网络登录页面，或并非镜像站的地址。</translation>
    </message>
    <message>
        <source>{0} is only given to people who are signed in. Accept its terms on its page, and enter an access token: Network…</source>
        <translation>{0} 只提供给已登录的用户。请在其页面接受条款，并输入访问令牌：网络…</translation>
    </message>
    <message>
        <source>The access token was refused. Enter a valid one: Network…</source>
        <translation>访问令牌被拒绝。请输入有效的令牌：网络…</translation>
    </message>
    <message>
        <source>Your access token is fine, but its owner has not accepted the terms of {0} yet. Do so on its page.</source>
        <translation>您的访问令牌有效，但令牌所有者尚未接受 {0} 的条款。请在其页面上接受。</translation>
    </message>
    <message>
        <source>The hub has no {0} in {1} any more. Look for it with the search.</source>
        <translation>Hub 上的 {1} 中已没有 {0}。请用搜索查找。</translation>
    </message>
    <message>
        <source>{0} has had too many requests and asks us to wait.</source>
        <translation>{0} 收到的请求过多，要求我们等待。</translation>
    </message>
    <message>
        <source>{0} has a fault of its own ({1}).</source>
        <translation>{0} 自身出现故障（{1}）。</translation>
    </message>
    <message>
        <source>{0} is another file on the hub now than when you asked for it. Remove this download and start it again.</source>
        <translation>Hub 上的 {0} 已与您当初请求的不同。请移除此下载并重新开始。</translation>
    </message>
    <message>
        <source>{0} arrived twice, and both times it was not what the hub announced. It was not kept.</source>
        <translation>{0} 下载了两次，都与 Hub 公布的不一致，因此没有保留。</translation>
    </message>
    <message>
        <source>The disk is too full: {0} are needed, {1} are free. It goes on when there is room.</source>
        <translation>磁盘空间不足：需要 {0}，可用 {1}。有空间后会继续。</translation>
    </message>
    <message>
        <source>The disk with {0} cannot hold a file of this size. Choose a models folder on another one.</source>
        <translation>{0} 所在的磁盘无法存放这么大的文件。请选择其他磁盘上的模型文件夹。</translation>
    </message>
    <message>
        <source>The folder {0} is not there. If it is on a drive, connect it: nothing is lost.</source>
        <translation>文件夹 {0} 不存在。如果在移动硬盘上，请连接它：内容没有丢失。</translation>
    </message>
    <message>
        <source>Nothing may be written to {0}. Choose another models folder, or change its rights.</source>
        <translation>无法写入 {0}。请选择其他模型文件夹，或更改其权限。</translation>
    </message>
    <message>
        <source>Another program is fetching the same file. This one waits for it.</source>
        <translation>另一个程序正在下载同一文件，这里等待它完成。</translation>
    </message>
    <message>
        <source>{0} has a name that cannot be used on this system.</source>
        <translation>{0} 的名称在此系统上无法使用。</translation>
    </message>
    <message>
        <source>It failed ({0}). Details are in the log file.</source>
        <translation>失败（{0}）。详情见日志文件。</translation>
    </message>
    <message>
        <source>Waits for its turn</source>
        <translation>正在排队</translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation>正在连接</translation>
    </message>
    <message>
        <source>Checking what arrived, {0}</source>
        <translation>正在校验已下载的内容，{0}</translation>
    </message>
    <message>
        <source>Reading what is here already, {0}</source>
        <translation>正在读取本机已有的部分，{0}</translation>
    </message>
    <message>
        <source>Paused at {0}</source>
        <translation>已暂停于 {0}</translation>
    </message>
    <message>
        <source>Ready: size and hash are right</source>
        <translation>就绪：大小和校验值正确</translation>
    </message>
    <message>
        <source>It failed.</source>
        <translation>失败。</translation>
    </message>
    <message>
        <source>Fits: {0} of {1} free, {2} context</source>
        <translation>放得下：需 {0}，可用 {1}，上下文 {2}</translation>
    </message>
    <message>
        <source>Tight: {0} of {1} free, {2} context</source>
        <translation>很紧张：需 {0}，可用 {1}，上下文 {2}</translation>
    </message>
    <message>
        <source>Doesn&apos;t fit: needs {0}, {1} are free</source>
        <translation>放不下：需要 {0}，可用 {1}</translation>
    </message>
    <message>
        <source>Memory of the device is not known</source>
        <translation>设备内存未知</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>tight</source>
        <translation>很紧张</translation>
    </message>
    <message>
        <source>doesn&apos;t fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>estimated</source>
        <translation>估算</translation>
    </message>
    <message>
        <source>planned by the engine</source>
        <translation>由引擎规划</translation>
    </message>
    <message>
        <source>about {0} tok/s (estimated)</source>
        <translation>约 {0} tok/s（估算）</translation>
    </message>
    <message>
        <source>With thinking on, the draft guesses less well: answers are the same, and slower.</source>
        <translation>开启思考时草稿模型猜得较差：回答相同，但较慢。</translation>
    </message>
    <message>
        <source>Its draft was made for answers without thinking.</source>
        <translation>它的草稿模型是为不带思考的回答制作的。</translation>
    </message>
    <message>
        <source>Take the Q8_0 draft where memory allows: the Q4 one guesses much worse on this model.</source>
        <translation>内存允许时请用 Q8_0 草稿模型：Q4 在此模型上猜得差很多。</translation>
    </message>
    <message>
        <source>comes with the app</source>
        <translation>随应用提供</translation>
    </message>
    <message>
        <source>downloaded</source>
        <translation>已下载</translation>
    </message>
    <message>
        <source>Hugging Face cache</source>
        <translation>Hugging Face 缓存</translation>
    </message>
    <message>
        <source>your folder</source>
        <translation>您的文件夹</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} / {1}</translation>
    </message>
    <message>
        <source>{0}  ·  no data for {1} s</source>
        <translation>{0}  ·  {1} 秒没有数据</translation>
    </message>
    <message>
        <source>{0}/s</source>
        <translation>{0}/s</translation>
    </message>
    <message>
        <source>{0}  ·  {1}  ·  {2}</source>
        <translation>{0}  ·  {1}  ·  {2}</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>等待中</translation>
    </message>
    <message>
        <source>Stalled, retrying in {0} s</source>
        <translation>传输停滞，{0} 秒后重试</translation>
    </message>
    <message>
        <source>{0} Retrying in {1} s.</source>
        <translation>{0} {1} 秒后重试。</translation>
    </message>
</context>
<context>
    <name>memory</name>
    <message>
        <source>Target weights</source>
        <translation>目标模型权重</translation>
    </message>
    <message>
        <source>Draft weights</source>
        <translation>草稿模型权重</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>Draft KV cache</source>
        <translation>草稿模型 KV 缓存</translation>
    </message>
    <message>
        <source>Recurrent state</source>
        <translation>循环状态</translation>
    </message>
    <message>
        <source>Compute</source>
        <translation>计算缓冲</translation>
    </message>
</context>
<context>
    <name>menu</name>
    <message>
        <source>Copy selected text</source>
        <translation>复制所选文字</translation>
    </message>
    <message>
        <source>Show what the draft got right</source>
        <translation>标出草稿模型猜对的部分</translation>
    </message>
    <message>
        <source>Select all</source>
        <translation>全选</translation>
    </message>
    <message>
        <source>Copy message</source>
        <translation>复制消息</translation>
    </message>
    <message>
        <source>Copy thoughts</source>
        <translation>复制思考过程</translation>
    </message>
    <message>
        <source>text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>Copy code {0} ({1})</source>
        <translation>复制代码 {0}（{1}）</translation>
    </message>
    <message>
        <source>Write anew</source>
        <translation>改写</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Hide thoughts</source>
        <translation>隐藏思考过程</translation>
    </message>
    <message>
        <source>Show thoughts</source>
        <translation>显示思考过程</translation>
    </message>
    <message>
        <source>Version before</source>
        <translation>上一版本</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>下一版本</translation>
    </message>
    <message>
        <source>New chat from here</source>
        <translation>从这里开始新对话</translation>
    </message>
    <message>
        <source>Delete from here on</source>
        <translation>从这里开始删除</translation>
    </message>
</context>
<context>
    <name>numbers</name>
    <message>
        <source>{0} ms</source>
        <translation>{0} ms</translation>
    </message>
    <message>
        <source>{0} s</source>
        <translation>{0} s</translation>
    </message>
    <message>
        <source>{0} min {1} s</source>
        <translation>{0} min {1} s</translation>
    </message>
    <message>
        <source>almost done</source>
        <translation>即将完成</translation>
    </message>
    <message>
        <source>about {0} s left</source>
        <translation>约剩 {0} 秒</translation>
    </message>
    <message>
        <source>about {0} min left</source>
        <translation>约剩 {0} 分钟</translation>
    </message>
    <message>
        <source>just now</source>
        <translation>刚刚</translation>
    </message>
    <message>
        <source>{0} s ago</source>
        <translation>{0} 秒前</translation>
    </message>
    <message>
        <source>{0} min ago</source>
        <translation>{0} 分钟前</translation>
    </message>
    <message>
        <source>{0} h ago</source>
        <translation>{0} 小时前</translation>
    </message>
    <message>
        <source>{0} %</source>
        <translation>{0} %</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>{0} token</translation>
    </message>
</context>
<context>
    <name>pflash</name>
    <message>
        <source>Your own words: always kept</source>
        <translation>您自己的话：始终保留</translation>
    </message>
    <message>
        <source>Kept: the question names it</source>
        <translation>保留：问题中提到了它</translation>
    </message>
    <message>
        <source>Kept: it heads something that is kept</source>
        <translation>保留：它是保留内容的标题</translation>
    </message>
    <message>
        <source>Kept for its score</source>
        <translation>因评分而保留</translation>
    </message>
    <message>
        <source>Left out</source>
        <translation>省略</translation>
    </message>
</context>
<context>
    <name>requests</name>
    <message>
        <source>refused ({0})</source>
        <translation>已拒绝（{0}）</translation>
    </message>
    <message>
        <source>waiting, {0} ahead</source>
        <translation>等待中，前面有 {0} 个</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>等待中</translation>
    </message>
    <message>
        <source>reading, {0}</source>
        <translation>预填充，{0}</translation>
    </message>
    <message>
        <source>answering</source>
        <translation>正在回答</translation>
    </message>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>Path</source>
        <translation>路径</translation>
    </message>
    <message>
        <source>Calls itself</source>
        <translation>自称</translation>
    </message>
    <message>
        <source>Arrived</source>
        <translation>到达时间</translation>
    </message>
    <message>
        <source>Model asked for</source>
        <translation>请求的模型</translation>
    </message>
    <message>
        <source>Messages</source>
        <translation>消息数</translation>
    </message>
    <message>
        <source>Streamed</source>
        <translation>流式</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>Most reply tokens</source>
        <translation>回答的最多 token 数</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>Cached</source>
        <translation>已缓存</translation>
    </message>
    <message>
        <source>Prefilled</source>
        <translation>已预填充</translation>
    </message>
    <message>
        <source>Decoded</source>
        <translation>已解码</translation>
    </message>
    <message>
        <source>Acceptance length</source>
        <translation>接受长度</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>Drafted, accepted</source>
        <translation>草拟，已接受</translation>
    </message>
    <message>
        <source>In the queue</source>
        <translation>排队时间</translation>
    </message>
    <message>
        <source>First token after</source>
        <translation>首词延迟</translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>Decode</source>
        <translation>解码</translation>
    </message>
    <message>
        <source>In all</source>
        <translation>总计</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>[thoughts]</source>
        <translation>[思考过程]</translation>
    </message>
    <message>
        <source>[tool calls]</source>
        <translation>[工具调用]</translation>
    </message>
    <message>
        <source>[answer]</source>
        <translation>[回答]</translation>
    </message>
    <message>
        <source>answered</source>
        <translation>已回答</translation>
    </message>
    <message>
        <source>token limit reached</source>
        <translation>达到 token 上限</translation>
    </message>
    <message>
        <source>calls a tool</source>
        <translation>调用工具</translation>
    </message>
    <message>
        <source>context is full</source>
        <translation>上下文已满</translation>
    </message>
    <message>
        <source>client left</source>
        <translation>客户端已离开</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>refused</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>是</translation>
    </message>
    <message>
        <source>no</source>
        <translation>否</translation>
    </message>
    <message>
        <source>{0} tok/s</source>
        <translation>{0} tok/s</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <translation>{0}，{1}</translation>
    </message>
</context>
<context>
    <name>serve</name>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>正在启动</translation>
    </message>
    <message>
        <source>Waiting for the model</source>
        <translation>正在等待模型</translation>
    </message>
    <message>
        <source>No model loaded</source>
        <translation>未加载模型</translation>
    </message>
    <message>
        <source>Testing</source>
        <translation>正在测试</translation>
    </message>
    <message>
        <source>Serving</source>
        <translation>正在服务</translation>
    </message>
    <message>
        <source>A check failed</source>
        <translation>有一项检查失败</translation>
    </message>
    <message>
        <source>Closing</source>
        <translation>正在关闭</translation>
    </message>
    <message>
        <source>Not serving</source>
        <translation>未启动服务</translation>
    </message>
    <message>
        <source>Nothing listens. Other programs cannot reach the model.</source>
        <translation>没有监听端口。其他程序无法访问模型。</translation>
    </message>
    <message>
        <source>Opening port {0}.</source>
        <translation>正在打开端口 {0}。</translation>
    </message>
    <message>
        <source>Listening on port {0}. The model is loading: {1}.</source>
        <translation>正在监听端口 {0}。模型正在加载：{1}。</translation>
    </message>
    <message>
        <source>Listening on port {0}. Clients are told that no model is loaded.</source>
        <translation>正在监听端口 {0}。客户端会得知没有加载模型。</translation>
    </message>
    <message>
        <source>Listening on port {0}. Trying out each dialect over the socket.</source>
        <translation>正在监听端口 {0}。正在逐一测试各种接口。</translation>
    </message>
    <message>
        <source>{0} answers on port {1} with a context of {2}.</source>
        <translation>{0} 正在端口 {1} 上以 {2} 的上下文提供回答。</translation>
    </message>
    <message>
        <source>Listening on port {0}, but the self-test gave no result.</source>
        <translation>正在监听端口 {0}，但自检没有结果。</translation>
    </message>
    <message>
        <source>Listening on port {0}, but {1} failed: {2}</source>
        <translation>正在监听端口 {0}，但 {1} 失败：{2}</translation>
    </message>
    <message>
        <source>Ending what runs and closing the port.</source>
        <translation>正在结束运行中的请求并关闭端口。</translation>
    </message>
    <message>
        <source>Port {0} is in use by {1}.</source>
        <translation>端口 {0} 正被 {1} 使用。</translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Takes effect at once; the model stays loaded, and what runs goes on.</source>
        <translation>立即生效；模型保持加载，正在进行的操作会继续。</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Light, dark, or whatever the desktop uses.</source>
        <translation>浅色、深色或跟随桌面。</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>文字大小</translation>
    </message>
    <message>
        <source>Of everything in the window, on top of what the screen asks for.</source>
        <translation>窗口中所有文字的大小，在屏幕缩放的基础上调整。</translation>
    </message>
    <message>
        <source>Keep serving in the tray when the window is closed</source>
        <translation>关闭窗口后在托盘中继续提供服务</translation>
    </message>
    <message>
        <source>Only while the server is on. Otherwise closing ends the program.</source>
        <translation>仅在服务开启时有效。否则关闭窗口即结束程序。</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>草稿模型</translation>
    </message>
    <message>
        <source>Answers are the target&apos;s own; the draft only changes speed.</source>
        <translation>草稿模型只影响速度，不影响回答。</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>On</source>
        <translation>开启</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Load the last model at the start</source>
        <translation>启动时加载上次的模型</translation>
    </message>
    <message>
        <source>With the settings it had. Not after a start that ended in a crash.</source>
        <translation>使用其原有设置。如果上次崩溃则不加载。</translation>
    </message>
    <message>
        <source>Context of a new model</source>
        <translation>新模型的上下文长度</translation>
    </message>
    <message>
        <source>Proposed when a model is loaded for the first time; never more than fits in memory.</source>
        <translation>首次加载模型时的建议值，绝不超过内存能容纳的大小。</translation>
    </message>
    <message>
        <source>what fits, up to 32,768</source>
        <translation>按内存，最多 32,768</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>token</translation>
    </message>
    <message>
        <source>Detailed log</source>
        <translation>详细日志</translation>
    </message>
    <message>
        <source>Writes more about the engine. Never what you or the model wrote.</source>
        <translation>记录更多引擎信息，绝不记录您或模型写的内容。</translation>
    </message>
</context>
<context>
    <name>step</name>
    <message>
        <source>step {0}: no nodes</source>
        <translation>第 {0} 步：没有节点</translation>
    </message>
    <message>
        <source>step {0}: {1} of {2} accepted</source>
        <translation>第 {0} 步：{2} 个中已接受 {1} 个</translation>
    </message>
    <message>
        <source>No draft is loaded: one token per step.</source>
        <translation>未加载草稿模型：每步一个 token。</translation>
    </message>
    <message>
        <source>The draft is switched off: one token per step.</source>
        <translation>草稿模型已关闭：每步一个 token。</translation>
    </message>
    <message>
        <source>The size was set by you.</source>
        <translation>大小由您设定。</translation>
    </message>
    <message>
        <source>Plain decoding: measured to be faster here.</source>
        <translation>普通解码：实测在这里更快。</translation>
    </message>
    <message>
        <source>A probe: does drafting pay again?</source>
        <translation>试探：草稿模型现在是否划算？</translation>
    </message>
    <message>
        <source>A measurement: how long does a step take here?</source>
        <translation>测量：一步在这里需要多久？</translation>
    </message>
    <message>
        <source>The context or the token limit leaves no room for more.</source>
        <translation>上下文或 token 上限没有余量。</translation>
    </message>
    <message>
        <source>Most tokens per second expected: {0} in {1}; it became {2} in {3}.</source>
        <translation>预期每秒 token 数最高：{1} 内 {0} 个；实际 {3} 内 {2} 个。</translation>
    </message>
    <message>
        <source>Most tokens per second expected: {0}; it became {1}.</source>
        <translation>预期每秒 token 数最高：{0} 个；实际 {1} 个。</translation>
    </message>
    <message>
        <source>The size with the most expected tokens per second.</source>
        <translation>预期每秒 token 数最高的大小。</translation>
    </message>
    <message>
        <source>Draft {0}, verify {1}, commit {2}, rest {3}.</source>
        <translation>草拟 {0}，验证 {1}，提交 {2}，其余 {3}。</translation>
    </message>
</context>
<context>
    <name>ticks</name>
    <message>
        <source>model listed</source>
        <translation>已列出模型</translation>
    </message>
    <message>
        <source>1 reply</source>
        <translation>1 个回答</translation>
    </message>
    <message>
        <source>{0} replies</source>
        <translation>{0} 个回答</translation>
    </message>
    <message>
        <source>{0} running</source>
        <translation>{0} 个正在运行</translation>
    </message>
    <message>
        <source>{0} failed</source>
        <translation>{0} 个失败</translation>
    </message>
    <message>
        <source>connected {0}</source>
        <translation>{0}连接</translation>
    </message>
    <message>
        <source>connected {0}: {1}</source>
        <translation>{0}连接：{1}</translation>
    </message>
</context>
</TS>
