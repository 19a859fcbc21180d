/**
 * Is the suite able to fail? The example with one thing broken at a time: each must be caught, by the check that is named
 * for it, with a message that tells its author what is wrong.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { Plugin } from '../../../core/plugin.ts'
import { channelChecks } from '../channel.ts'
import { runCheck } from './desk.ts'
import { adapterOf, matrixPlatform } from './matrix-platform.ts'

interface Mutant {
	what: string
	file: 'index.ts' | 'incoming.ts' | 'homeserver.ts'
	/** Stands in the file exactly once. */
	take: string
	give: string
	caught: string
	says: RegExp
	/** It shows in the whole process: no other one may run beside it. */
	alone?: true
}

const mutants: Mutant[] = [
	// What it says of itself
	{
		what: 'a type with a capital letter',
		file: 'index.ts',
		take: "type: 'matrix'",
		give: "type: 'Matrix'",
		caught: 'describes itself',
		says: /a type is 1-32 characters/,
	},
	{
		what: 'no plain format',
		file: 'index.ts',
		take: "{ markup: 'plain', max_length: 8000 },",
		give: '',
		caught: 'describes itself',
		says: /the last of can.formats is plain/,
	},
	{
		what: "a config that refuses the gateway's own keys",
		file: 'index.ts',
		take: 'accept_invites: joi',
		give: 'agent_id: joi.forbidden(), accept_invites: joi',
		caught: 'takes its config, and keys that are not its own',
		says: /"agent_id" is not allowed/,
	},
	{
		what: 'everybody may say where the homeserver is',
		file: 'index.ts',
		take: "unguarded: ['accept_invites']",
		give: "unguarded: ['accept_invites', 'api_root']",
		caught: 'leaves no address to everybody',
		says: /says where the connection goes, as api_root does/,
	},
	{
		what: 'a method that can names is missing',
		file: 'index.ts',
		take: 'async typing(chat)',
		give: 'async types(chat: ChatRef)',
		caught: 'connects, and gives what it said it can',
		says: /typing\(\), as can.typing_ms says/,
	},

	// Connecting
	{
		what: 'a wrong token is like any failure',
		file: 'homeserver.ts',
		take: "if (status === 401) return link.error('refused',",
		give: "if (status === 401) return link.error('failed',",
		caught: 'is refused with a wrong token',
		says: /a wrong token is `refused`.*code is failed/,
	},
	{
		what: 'the token stands in the error',
		file: 'homeserver.ts',
		take: '${message}; put',
		give: '${message} ${link.token}; put',
		caught: 'is refused with a wrong token',
		says: /no error shows the token/,
	},
	{
		what: 'the token is logged',
		file: 'index.ts',
		take: 'const closing =',
		give: 'link.log.debug(`connecting with ${link.token}`)\n\tconst closing =',
		caught: 'receives what a person says',
		says: /neither log nor status show the token/,
	},
	{
		what: 'a promise is left to itself',
		alone: true,
		file: 'index.ts',
		take: 'const closing =',
		give: "void link.cursor().then(() => Promise.reject(new Error('nobody looks')))\n\tconst closing =",
		caught: 'receives what a person says',
		says: /a rejection was left unhandled: Error: nobody looks/,
	},
	{
		what: 'the signal is not heard',
		file: 'index.ts',
		take: 'AbortSignal.any([link.signal, closing.signal])',
		give: 'closing.signal',
		caught: 'stops connecting when the signal aborts',
		says: /connect throws where the signal has aborted/,
	},

	// What comes in
	{
		what: 'another id for each delivery',
		file: 'incoming.ts',
		take: 'id: event_id,',
		give: 'id: crypto.randomUUID(),',
		caught: 'keeps the id of a message that is delivered twice',
		says: /a message that comes again has the same id/,
	},
	{
		what: 'an id that is too long',
		file: 'incoming.ts',
		take: 'id: event_id,',
		give: "id: event_id.padEnd(129, '.'),",
		caught: 'receives what a person says',
		says: /id is 1-128 printable ASCII characters/,
	},
	{
		what: 'every chat is private',
		file: 'incoming.ts',
		take: 'Object.keys(people).length === 2',
		give: 'Object.keys(people).length > 0',
		caught: 'knows what is for the bot in a group',
		says: /chat.kind is the kind of the chat/,
	},
	{
		what: 'everything is for the bot',
		file: 'incoming.ts',
		take: 'addressed,\n',
		give: 'addressed: addressed || !isPrivate,\n',
		caught: 'knows what is for the bot in a group',
		says: /nobody in particular is not addressed/,
	},
	{
		what: 'no mention is seen',
		file: 'incoming.ts',
		take: 'mentioned.includes(bot.user_id)',
		give: 'false',
		caught: 'knows what is for the bot in a group',
		says: /said to the name of the bot is addressed/,
	},
	{
		what: "the bot's name stays in the text",
		file: 'incoming.ts',
		take: 'text: withoutName(text, [bot.user_id, bot.displayname ?? bot.user_id])',
		give: 'text',
		caught: 'knows what is for the bot in a group',
		says: /a message with the text "and you\?" is received/,
	},
	{
		what: 'replies are not seen',
		file: 'incoming.ts',
		take: 'return sender === bot.user_id',
		give: 'return false',
		caught: 'knows an answer to the bot in a group',
		says: /said in reply to the bot is addressed/,
	},
	{
		what: 'threads are not seen',
		file: 'incoming.ts',
		take: "relation?.rel_type === 'm.thread' ? relation.event_id : undefined",
		give: 'undefined',
		caught: 'knows threads, and answers in them',
		says: /a message in a thread has its thread_id/,
	},
	{
		what: 'attachments are dropped',
		file: 'incoming.ts',
		take: "['m.image', 'an image'],",
		give: '',
		caught: 'says that something is attached',
		says: /a message with an attachment is received/,
	},
	{
		what: 'files cannot be loaded',
		file: 'index.ts',
		take: 'load: download,',
		give: '',
		caught: 'loads a file, also by a later connection',
		says: /there is connection\.load, or the suite has the flag `abilities: \{ files: false \}`/,
	},
	{
		what: 'files of any size are loaded',
		file: 'homeserver.ts',
		take: 'return request(url, options.max_bytes, options)',
		give: 'return request(url, Infinity, options)',
		caught: 'loads a file, also by a later connection',
		says: /load throws if the file is larger than max_bytes/,
	},
	{
		what: 'loading does not end with its signal',
		file: 'homeserver.ts',
		take: 'return request(url, options.max_bytes, options)',
		give: 'return request(url, options.max_bytes, {})',
		caught: 'loads a file, also by a later connection',
		says: /load throws once its signal has aborted/,
	},
	{
		what: 'the text is made tidy',
		file: 'incoming.ts',
		take: "? content.body : ''",
		give: "? content.body.replaceAll('\\n', ' ') : ''",
		caught: 'leaves the text as it is',
		says: /a message with the text "two\\nlines/,
	},
	{
		what: 'it hears itself',
		file: 'incoming.ts',
		take: 'if (sender === bot.user_id || ',
		give: 'if (',
		caught: 'hears nothing of its own',
		says: /what the bot sends does not come in/,
	},
	{
		what: 'receive is not awaited',
		file: 'incoming.ts',
		take: 'for (const message of messages) await link.receive(',
		give: 'for (const message of messages) void link.receive(',
		caught: 'leaves what cannot be taken with the platform',
		says: /`lost` is called where receive throws/,
	},
	{
		what: 'all of a batch is told at once',
		file: 'incoming.ts',
		take: 'for (const message of messages) await link.receive({ ...message, cursor: message === last ? next_batch : since })',
		give: 'await Promise.all(messages.map((message) => link.receive({ ...message, cursor: next_batch })))',
		caught: 'leaves what cannot be taken with the platform',
		says: /"behind it" is received|all of it is taken then/,
	},
	{
		what: 'the first message of a batch confirms all of it',
		file: 'incoming.ts',
		take: 'cursor: message === last ? next_batch : since',
		give: 'cursor: next_batch',
		caught: 'leaves what cannot be taken with the platform',
		says: /"behind it" is received/,
	},
	{
		what: 'what cannot be taken is left out',
		file: 'incoming.ts',
		take: 'await receive(batch)',
		give: 'await receive(batch).catch(() => {})',
		caught: 'leaves what cannot be taken with the platform',
		says: /`lost` is called where receive throws/,
	},
	{
		what: 'where the feed begins is not kept',
		file: 'incoming.ts',
		take: 'await link.advance(since)',
		give: '',
		caught: 'brings what was said since its first connection, though nothing had come by that',
		says: /"the very first" is received/,
	},
	{
		what: 'the cursor is not asked for',
		file: 'incoming.ts',
		take: 'await link.cursor()',
		give: 'null as string | null',
		caught: 'brings what was said while it was away',
		says: /"missed 119" is received/,
	},
	{
		what: 'a gap is not closed',
		file: 'incoming.ts',
		take: 'limited ? prev_batch : undefined',
		give: 'undefined as string | undefined',
		caught: 'brings what was said while it was away',
		says: /all messages arrive/,
	},
	{
		what: 'the newest comes first',
		file: 'incoming.ts',
		take: 'older.chunk.toReversed()',
		give: 'older.chunk',
		caught: 'brings what was said while it was away',
		says: /all messages arrive, in order/,
	},

	// What goes out
	{
		what: 'line breaks are lost in html',
		file: 'index.ts',
		take: 'formatted_body: withBreaks(text)',
		give: 'formatted_body: text',
		caught: 'sends in every format',
		says: /html keeps the lines apart/,
	},
	{
		what: 'html is sent as text',
		file: 'index.ts',
		take: "...(markup === 'html' && { format: 'org.matrix.custom.html', formatted_body: withBreaks(text) }),",
		give: '...{ body: text },',
		caught: 'sends in every format',
		says: /html shows "1 < 2 & 3"/,
	},
	{
		what: 'it says that more fits than does',
		file: 'index.ts',
		take: 'max_length: 8000',
		give: 'max_length: 80_000',
		caught: 'sends as much as can.formats says',
		says: /413/,
	},
	{
		what: 'replies are no replies',
		file: 'index.ts',
		take: 'reply_to !== undefined &&',
		give: 'false &&',
		caught: 'answers to a message',
		says: /shows as a reply/,
	},
	{
		what: 'threads are left',
		file: 'index.ts',
		take: 'chat.thread_id !== undefined &&',
		give: 'false &&',
		caught: 'knows threads, and answers in them',
		says: /what is sent to a thread shows in it/,
	},
	{
		what: 'an edit under the nonce',
		file: 'index.ts',
		take: 'put(message.chat, randomUUID(),',
		give: 'put(message.chat, message.nonce,',
		caught: 'edits',
		says: /an edit is shown/,
	},
	{
		what: 'an edit under what it says',
		file: 'index.ts',
		take: 'put(message.chat, randomUUID(),',
		give: 'put(message.chat, message.nonce + content.body.slice(0, 9),',
		caught: 'edits',
		says: /an edit is shown, also one back to an earlier text/,
	},
	{
		what: 'an edit is a message',
		file: 'index.ts',
		take: "rel_type: 'm.replace'",
		give: "rel_type: 'm.annotation'",
		caught: 'edits',
		says: /an edit is shown/,
	},
	{
		what: 'typing does not show',
		file: 'index.ts',
		take: 'typing: true',
		give: 'typing: false',
		caught: 'shows that it is typing',
		says: /typing shows in the chat/,
	},
	{
		what: 'one nonce for all',
		file: 'index.ts',
		take: 'put(message.chat, message.nonce, contentOf(message))',
		give: "put(message.chat, 'nonce', contentOf(message))",
		caught: 'tells messages apart that say the same',
		says: /another nonce is another message/,
	},

	// Once
	{
		what: 'the nonce is not used',
		file: 'index.ts',
		take: 'put(message.chat, message.nonce, contentOf(message))',
		give: 'put(message.chat, randomUUID(), contentOf(message))',
		caught: 'sends once, though the answer was lost',
		says: /the message shows once/,
	},
	{
		what: 'a cut is told as a failure',
		file: 'homeserver.ts',
		take: 'throw new Error(`${root} did not respond: ${message}`, { cause: error })',
		give: "throw link.error('failed', `${root} did not respond: ${message}`)",
		caught: 'sends once, though the answer was lost',
		says: /without a code means that it is unknown/,
	},
	{
		what: 'limited, but for how long?',
		file: 'homeserver.ts',
		take: '{ retry_after_ms: retryAfter(headers, text) }',
		give: '{}',
		caught: 'says `limited` where nothing was sent',
		says: /retry_after_ms says how long to wait/,
	},
	{
		what: 'a chat that is gone is tried for ever',
		file: 'homeserver.ts',
		take: "status < 500 ? link.error('refused', message, { cause: status })",
		give: "status < 500 ? link.error('failed', message, { cause: status })",
		caught: 'says `refused` where nothing was sent',
		says: /the code says what to do next; it should be "refused", and is "failed"/,
	},
	{
		what: 'what is too large is refused',
		file: 'homeserver.ts',
		take: 'status === 400 || status === 413',
		give: 'status === 400',
		caught: 'says `format` where nothing was sent',
		says: /it should be "format"/,
	},

	// Files
	{
		what: 'files cannot be sent, though it says so',
		file: 'index.ts',
		take: 'async sendFile(file, bytes)',
		give: 'async sendsFile(file: OutgoingFile, bytes: Uint8Array)',
		caught: 'connects, and gives what it said it can',
		says: /sendFile\(\), as can.files says/,
	},
	{
		what: 'a file without its bytes',
		file: 'homeserver.ts',
		take: 'body: Buffer.from(bytes)',
		give: 'body: Buffer.from(bytes.subarray(1))',
		caught: 'sends files',
		says: /with the bytes that it was sent with/,
	},
	{
		what: 'a file without its name',
		file: 'index.ts',
		take: 'body: name, url,',
		give: "body: 'a file', url,",
		caught: 'sends files',
		says: /a file shows under its name/,
	},
	{
		what: 'a file under a nonce of its own',
		file: 'index.ts',
		take: 'put(file.chat, file.nonce, fileContentOf(file, url))',
		give: 'put(file.chat, randomUUID(), fileContentOf(file, url))',
		caught: 'sends a file once, though the answer was lost',
		says: /the file shows once/,
	},
	{
		what: 'one nonce for all files',
		file: 'index.ts',
		take: 'put(file.chat, file.nonce, fileContentOf(file, url))',
		give: "put(file.chat, 'nonce', fileContentOf(file, url))",
		caught: 'tells files apart that are the same',
		says: /another nonce is another file/,
	},

	// The end
	{
		what: 'a cut is the end, and nobody knows',
		file: 'incoming.ts',
		take: "link.status('reconnecting', error.message)",
		give: 'await new Promise(() => {})',
		caught: 'comes back after a cut, or says that it is lost',
		says: /"during cut \d" is received/,
	},
	{
		what: 'a status of its own',
		file: 'incoming.ts',
		take: "link.status('reconnecting', error.message)",
		give: "link.status('fixing', error.message)",
		caught: 'comes back after a cut, or says that it is lost',
		says: /fixing is no status/,
	},
	{
		what: 'it hopes for its token to come back',
		file: 'incoming.ts',
		take: "error.code === 'refused' || ++failures > MAX_FAILURES",
		give: '++failures > 1000',
		caught: 'is lost where its token is taken back',
		says: /`lost` is called where the token is taken back/,
	},
	{
		what: 'a timer stays',
		alone: true,
		file: 'index.ts',
		take: 'const closing =',
		give: 'globalThis.left = setInterval(() => {}, 60_000)\n\tconst closing =',
		caught: 'gives everything back when it is closed',
		says: /no timer and no socket is left.*Timeout/,
	},
	{
		what: 'the poll runs on',
		alone: true,
		file: 'index.ts',
		take: 'const { call, download, upload } = openHomeserver(link, signal)',
		give: 'const { call, download, upload } = openHomeserver(link, new AbortController().signal)',
		caught: 'gives everything back when it is closed',
		says: /close settles/,
	},
	{
		what: 'close waits for a message that hangs',
		alone: true,
		file: 'homeserver.ts',
		take: 'AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])])',
		give: "init.method === 'PUT' && init.signal ? init.signal : AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])])",
		caught: 'closes while a message is on its way',
		says: /send settles when the connection is closed/,
	},
	{
		what: 'it complains after it was closed',
		file: 'incoming.ts',
		take: 'if (!signal.aborted) link.lost(error)',
		give: 'link.lost(error)',
		caught: 'is silent once it is closed',
		says: /a closed connection reports nothing/,
	},
	{
		what: 'channels share what belongs to one',
		file: 'homeserver.ts',
		take: "const root = link.config.api_root.replace(/\\/$/, '')",
		give: "const root = (openHomeserver.root ??= link.config.api_root.replace(/\\/$/, ''))",
		caught: 'keeps the connections of several channels apart',
		says: /401/,
	},
]

const source = new URL('../../../skills-examples/matrix-channel/', import.meta.url).pathname
/** Another sixth each time, so that all of them get their turn; MUTANTS=all takes every one. */
const SHARE = process.env.MUTANTS === 'all' ? 1 : 6
const OFFSET = Math.floor(Math.random() * SHARE)
const chosen = mutants.filter((_, n) => n % SHARE === OFFSET)

/** What comes at all comes within a few turns of the event loop, and this is time for hundreds. */
const PATIENCE_MS = 2_000

const folder = mkdtempSync(join(tmpdir(), 'svc-mutants-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

void t.test('one after the other', (t) => {
	for (const mutant of chosen.filter(({ alone }) => alone))
		void t.test(`caught: ${mutant.what}`, (t) => isCaught(t, mutant))
	t.end()
})

// Most of the time they wait for what does not come.
void t.test('side by side', { jobs: 8 }, (t) => {
	for (const mutant of chosen.filter(({ alone }) => !alone))
		void t.test(`caught: ${mutant.what}`, (t) => isCaught(t, mutant))
	t.end()
})

async function isCaught(t: Test, mutant: Mutant): Promise<void> {
	const { file, take, give, caught, says } = mutant
	const check = channelChecks.find(({ name }) => name === caught)
	if (!check) throw new Error(`there is no check ${caught}`)
	const home = join(folder, String(mutants.indexOf(mutant)))
	cpSync(source, home, { recursive: true })
	const parts = readFileSync(join(home, file), 'utf8').split(take)
	t.equal(parts.length, 2, 'what is broken stands in the file once')
	writeFileSync(join(home, file), parts.join(give))
	const { default: plugin } = (await import(join(home, 'index.ts'))) as { default: Plugin }
	const suite = { adapter: adapterOf(plugin), platform: matrixPlatform, patience_ms: PATIENCE_MS }
	const caughtIt = (): Promise<unknown> => t.rejects(runCheck(check, suite), { message: says })
	await (mutant.alone ? unheardByTap(caughtIt) : caughtIt())
	clearInterval((globalThis as { left?: NodeJS.Timeout }).left)
}

/** Rejections that nobody handles are for the check to notice; tap would count them against this test. */
async function unheardByTap(run: () => Promise<unknown>): Promise<void> {
	const listeners = process.listeners('unhandledRejection')
	process.removeAllListeners('unhandledRejection')
	try {
		await run()
	} finally {
		for (const listener of listeners) process.on('unhandledRejection', listener)
	}
}
