/**
 * Tests that the suite can fail. Each mutant breaks one thing in the example, and must be caught by the named check, with a message
 * that tells the author what is wrong.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { Plugin } from '../../../core/plugin.ts'
import { testFolder } from '../../support/folder.ts'
import { channelChecks } from '../channel.ts'
import { runCheck } from './harness.ts'
import { adapterOf, matrixPlatform } from './matrix-platform.ts'

interface Mutant {
	what: string
	file: 'index.ts' | 'incoming.ts' | 'homeserver.ts'
	/** Must occur in the file exactly once. */
	take: string
	give: string
	caught: string
	message: RegExp
	/** It affects the whole process: no other mutant may run at the same time. */
	alone?: true
}

const mutants: Mutant[] = [
	// Description
	{
		what: 'a type with a capital letter',
		file: 'index.ts',
		take: "type: 'matrix'",
		give: "type: 'Matrix'",
		caught: 'describes itself',
		message: /a type is 1-32 characters/,
	},
	{
		what: 'no plain format',
		file: 'index.ts',
		take: "{ markup: 'plain', max_length: 8000 },",
		give: '',
		caught: 'describes itself',
		message: /the last of can.formats is plain/,
	},
	{
		what: "a config that refuses the gateway's own keys",
		file: 'index.ts',
		take: 'accept_invites: joi',
		give: 'agent_id: joi.forbidden(), accept_invites: joi',
		caught: 'accepts its config, and keys that are not its own',
		message: /"agent_id" is not allowed/,
	},
	{
		what: 'every caller may choose the homeserver',
		file: 'index.ts',
		take: "unguarded: ['accept_invites']",
		give: "unguarded: ['accept_invites', 'api_root']",
		caught: 'does not let every caller choose an address',
		message: /determines where to connect, unlike api_root/,
	},
	{
		what: 'a method that can names is missing',
		file: 'index.ts',
		take: 'async typing(chat)',
		give: 'async types(chat: ChatRef)',
		caught: 'connects, and provides the methods for its abilities',
		message: /typing\(\), as can.typing_ms says/,
	},

	// Connecting
	{
		what: 'a wrong token is reported as a failure',
		file: 'homeserver.ts',
		take: "link.error('refused', `${message}; put",
		give: "link.error('failed', `${message}; put",
		caught: 'is refused with a wrong token',
		message: /a wrong token is `refused`.*code is failed/,
	},
	{
		what: 'the token is in the error',
		file: 'homeserver.ts',
		take: '${message}; put',
		give: '${message} ${link.token}; put',
		caught: 'is refused with a wrong token',
		message: /no error shows the token/,
	},
	{
		what: 'the token is logged',
		file: 'index.ts',
		take: 'const closing =',
		give: 'link.log.debug(`connecting with ${link.token}`)\n\tconst closing =',
		caught: 'receives what a person says',
		message: /neither log nor status show the token/,
	},
	{
		what: 'a rejection is not handled',
		alone: true,
		file: 'index.ts',
		take: 'const closing =',
		give: "void link.cursor().then(() => Promise.reject(new Error('nobody looks')))\n\tconst closing =",
		caught: 'receives what a person says',
		message: /a rejection was left unhandled: Error: nobody looks/,
	},
	{
		what: 'the signal is ignored',
		file: 'index.ts',
		take: 'AbortSignal.any([link.signal, closing.signal])',
		give: 'closing.signal',
		caught: 'stops connecting when the signal aborts',
		message: /connect throws if the signal has aborted/,
	},

	// Incoming messages
	{
		what: 'another id for each delivery',
		file: 'incoming.ts',
		take: 'id: event_id,',
		give: 'id: crypto.randomUUID(),',
		caught: 'keeps the id of a message that is delivered twice',
		message: /a message that is delivered again has the same id/,
	},
	{
		what: 'an id that is too long',
		file: 'incoming.ts',
		take: 'id: event_id,',
		give: "id: event_id.padEnd(129, '.'),",
		caught: 'receives what a person says',
		message: /id is 1-128 printable ASCII characters/,
	},
	{
		what: 'every chat is private',
		file: 'incoming.ts',
		take: 'Object.keys(people).length === 2',
		give: 'Object.keys(people).length > 0',
		caught: 'recognizes messages to the bot in a group',
		message: /chat.kind is the kind of the chat/,
	},
	{
		what: 'everything is for the bot',
		file: 'incoming.ts',
		take: 'addressed,\n',
		give: 'addressed: addressed || !isPrivate,\n',
		caught: 'recognizes messages to the bot in a group',
		message: /does not mention the bot is not addressed/,
	},
	{
		what: 'no mention is seen',
		file: 'incoming.ts',
		take: 'mentioned.includes(bot.user_id)',
		give: 'false',
		caught: 'recognizes messages to the bot in a group',
		message: /a message that mentions the bot is addressed/,
	},
	{
		what: "the bot's name stays in the text",
		file: 'incoming.ts',
		take: 'text: withoutName(text, [bot.user_id, bot.displayname ?? bot.user_id])',
		give: 'text',
		caught: 'recognizes messages to the bot in a group',
		message: /a message with the text "and you\?" is received/,
	},
	{
		what: 'replies are not seen',
		file: 'incoming.ts',
		take: 'own: sender === bot.user_id',
		give: 'own: false',
		caught: 'recognizes replies to the bot in a group',
		message: /a reply to the bot is addressed/,
	},
	{
		what: 'threads are not seen',
		file: 'incoming.ts',
		take: "relation?.rel_type === 'm.thread' ? relation.event_id : undefined",
		give: 'undefined',
		caught: 'recognizes threads, and sends to them',
		message: /a message in a thread has its thread_id/,
	},
	{
		what: 'attachments are dropped',
		file: 'incoming.ts',
		take: "['m.image', 'an image'],",
		give: '',
		caught: 'reports attachments',
		message: /a message with an attachment is received/,
	},
	{
		what: 'files cannot be loaded',
		file: 'index.ts',
		take: 'load: download,',
		give: '',
		caught: 'loads a file, even on a later connection',
		message: /there is connection\.load, or the suite has the flag `abilities: \{ files: false \}`/,
	},
	{
		what: 'files of any size are loaded',
		file: 'homeserver.ts',
		take: 'return request(url, options.max_bytes, options)',
		give: 'return request(url, Infinity, options)',
		caught: 'loads a file, even on a later connection',
		message: /load throws if the file is larger than max_bytes/,
	},
	{
		what: 'loading does not end with its signal',
		file: 'homeserver.ts',
		take: 'return request(url, options.max_bytes, options)',
		give: 'return request(url, options.max_bytes, {})',
		caught: 'loads a file, even on a later connection',
		message: /load throws once its signal has aborted/,
	},
	{
		what: 'the text is changed',
		file: 'incoming.ts',
		take: 'const text = attachment === undefined && ',
		give: "const text = typeof content.body === 'string' ? content.body.replaceAll('\\n', ' ') : attachment === undefined && ",
		caught: 'does not change the text',
		message: /a message with the text "two\\nlines/,
	},
	{
		what: 'it receives its own messages',
		file: 'incoming.ts',
		take: 'if (sender === bot.user_id || ',
		give: 'if (',
		caught: 'does not receive its own messages',
		message: /the bot does not receive its own messages/,
	},
	{
		what: 'receive is not awaited',
		file: 'incoming.ts',
		take: 'for (const message of messages) await link.receive(',
		give: 'for (const message of messages) void link.receive(',
		caught: 'receives refused messages again',
		message: /`lost` is called when receive throws/,
	},
	{
		what: 'a batch is delivered in parallel',
		file: 'incoming.ts',
		take: 'for (const message of messages) await link.receive({ ...message, cursor: message === last ? next_batch : since })',
		give: 'await Promise.all(messages.map((message) => link.receive({ ...message, cursor: next_batch })))',
		caught: 'receives refused messages again',
		message: /"behind it" is received|all messages are accepted then/,
	},
	{
		what: 'the first message of a batch confirms all of it',
		file: 'incoming.ts',
		take: 'cursor: message === last ? next_batch : since',
		give: 'cursor: next_batch',
		caught: 'receives refused messages again',
		message: /"behind it" is received/,
	},
	{
		what: 'refused messages are dropped',
		file: 'incoming.ts',
		take: 'await receive(batch)',
		give: 'await receive(batch).catch(() => {})',
		caught: 'receives refused messages again',
		message: /`lost` is called when receive throws/,
	},
	{
		what: 'the start of the feed is not stored',
		file: 'incoming.ts',
		take: 'await link.advance(since)',
		give: '',
		caught: 'delivers messages sent since its first connection, even if that received none',
		message: /"the very first" is received/,
	},
	{
		what: 'the cursor is not read',
		file: 'incoming.ts',
		take: 'await link.cursor()',
		give: 'null as string | null',
		caught: 'delivers messages sent while it was disconnected',
		message: /"missed 119" is received/,
	},
	{
		what: 'a gap is not filled',
		file: 'incoming.ts',
		take: 'limited ? prev_batch : undefined',
		give: 'undefined as string | undefined',
		caught: 'delivers messages sent while it was disconnected',
		message: /all messages arrive/,
	},
	{
		what: 'the newest comes first',
		file: 'incoming.ts',
		take: 'older.chunk.toReversed()',
		give: 'older.chunk',
		caught: 'delivers messages sent while it was disconnected',
		message: /all messages arrive, in order/,
	},

	// Outgoing messages
	{
		what: 'line breaks are lost in html',
		file: 'index.ts',
		take: 'formatted_body: withBreaks(text)',
		give: 'formatted_body: text',
		caught: 'sends in every format',
		message: /html keeps line breaks/,
	},
	{
		what: 'html is sent as text',
		file: 'index.ts',
		take: "...(markup === 'html' && { format: 'org.matrix.custom.html', formatted_body: withBreaks(text) }),",
		give: '...{ body: text },',
		caught: 'sends in every format',
		message: /html shows "1 < 2 & 3"/,
	},
	{
		what: 'the length limit is too high',
		file: 'index.ts',
		take: 'max_length: 8000',
		give: 'max_length: 80_000',
		caught: 'sends as much as can.formats allows',
		message: /413/,
	},
	{
		what: 'replies are sent as plain messages',
		file: 'index.ts',
		take: 'reply_to !== undefined &&',
		give: 'false &&',
		caught: 'replies to a message',
		message: /shown as a reply/,
	},
	{
		what: 'answers leave the thread',
		file: 'index.ts',
		take: 'chat.thread_id !== undefined &&',
		give: 'false &&',
		caught: 'recognizes threads, and sends to them',
		message: /a message to a thread is shown in it/,
	},
	{
		what: 'an edit reuses the nonce',
		file: 'index.ts',
		take: 'put(message.chat, randomUUID(),',
		give: 'put(message.chat, message.nonce,',
		caught: 'edits',
		message: /an edit is shown/,
	},
	{
		what: 'the nonce of an edit depends on its text',
		file: 'index.ts',
		take: 'put(message.chat, randomUUID(),',
		give: 'put(message.chat, message.nonce + content.body.slice(0, 9),',
		caught: 'edits',
		message: /an edit is shown, also one back to an earlier text/,
	},
	{
		what: 'an edit is sent as a message',
		file: 'index.ts',
		take: "rel_type: 'm.replace'",
		give: "rel_type: 'm.annotation'",
		caught: 'edits',
		message: /an edit is shown/,
	},
	{
		what: 'typing does not show',
		file: 'index.ts',
		take: 'typing: true',
		give: 'typing: false',
		caught: 'shows that it is typing',
		message: /typing is shown in the chat/,
	},
	{
		what: 'one nonce for all',
		file: 'index.ts',
		take: 'put(message.chat, message.nonce, contentOf(message))',
		give: "put(message.chat, 'nonce', contentOf(message))",
		caught: 'distinguishes messages with the same text',
		message: /another nonce is another message/,
	},

	// Exactly once
	{
		what: 'the nonce is not used',
		file: 'index.ts',
		take: 'put(message.chat, message.nonce, contentOf(message))',
		give: 'put(message.chat, randomUUID(), contentOf(message))',
		caught: 'sends once although the answer was lost',
		message: /the message is shown once/,
	},
	{
		what: 'a cut is reported as a failure',
		file: 'homeserver.ts',
		take: 'throw new Error(`${root} did not respond: ${message}`, { cause: error })',
		give: "throw link.error('failed', `${root} did not respond: ${message}`)",
		caught: 'sends once although the answer was lost',
		message: /without a code means that it is unknown/,
	},
	{
		what: 'limited without a delay',
		file: 'homeserver.ts',
		take: '{ retry_after_ms: retryAfter(headers, text) }',
		give: '{}',
		caught: 'reports `limited` if nothing was sent',
		message: /retry_after_ms says how long to wait/,
	},
	{
		what: 'a missing chat is retried forever',
		file: 'homeserver.ts',
		take: "status < 500 ? link.error('refused', message, { cause: status })",
		give: "status < 500 ? link.error('failed', message, { cause: status })",
		caught: 'reports `refused` if nothing was sent',
		message: /the code says what to do next; expected "refused", found "failed"/,
	},
	{
		what: 'a message that is too large is reported as refused',
		file: 'homeserver.ts',
		take: 'status === 400 || status === 413',
		give: 'status === 400',
		caught: 'reports `format` if nothing was sent',
		message: /expected "format"/,
	},

	// Files
	{
		what: 'files cannot be sent, though it says so',
		file: 'index.ts',
		take: 'async sendFile(file, bytes)',
		give: 'async sendsFile(file: OutgoingFile, bytes: Uint8Array)',
		caught: 'connects, and provides the methods for its abilities',
		message: /sendFile\(\), as can.files says/,
	},
	{
		what: 'a file without its bytes',
		file: 'homeserver.ts',
		take: 'body: Buffer.from(bytes)',
		give: 'body: Buffer.from(bytes.subarray(1))',
		caught: 'sends files',
		message: /with the bytes that were sent/,
	},
	{
		what: 'a file without its name',
		file: 'index.ts',
		take: 'body: name, url,',
		give: "body: 'a file', url,",
		caught: 'sends files',
		message: /a file is shown with its name/,
	},
	{
		what: 'a file gets a new nonce',
		file: 'index.ts',
		take: 'put(file.chat, file.nonce, fileContentOf(file, url))',
		give: 'put(file.chat, randomUUID(), fileContentOf(file, url))',
		caught: 'sends a file once although the answer was lost',
		message: /the file is shown once/,
	},
	{
		what: 'one nonce for all files',
		file: 'index.ts',
		take: 'put(file.chat, file.nonce, fileContentOf(file, url))',
		give: "put(file.chat, 'nonce', fileContentOf(file, url))",
		caught: 'distinguishes identical files',
		message: /another nonce is another file/,
	},

	// Closing
	{
		what: 'a cut is not reported',
		file: 'incoming.ts',
		take: "link.status('reconnecting', error.message)",
		give: 'await new Promise(() => {})',
		caught: 'reconnects after a cut, or reports the loss',
		message: /"during cut \d" is received/,
	},
	{
		what: 'an unknown status',
		file: 'incoming.ts',
		take: "link.status('reconnecting', error.message)",
		give: "link.status('fixing', error.message)",
		caught: 'reconnects after a cut, or reports the loss',
		message: /fixing is not a status/,
	},
	{
		what: 'it retries a revoked token',
		file: 'homeserver.ts',
		take: 'if (status === 401) {',
		give: 'if (status === 401) return new Error(message)\n\tif (status === 499) {',
		caught: 'reports a revoked token',
		// The retries of the example end after 2.1 s, which may be sooner than the check gives up.
		message: /`lost` is called when the token is revoked|one of the two is `refused`/,
	},
	{
		what: 'it drops a message when the token is revoked',
		file: 'homeserver.ts',
		take: 'link.lost(error)',
		give: 'void link.lost',
		caught: 'does not give up a message because the token is revoked',
		message: /`lost` is called before `send` throws/,
	},
	{
		what: 'a timer is not cleared',
		alone: true,
		file: 'index.ts',
		take: 'const closing =',
		give: 'globalThis.left = setInterval(() => {}, 60_000)\n\tconst closing =',
		caught: 'releases everything when it is closed',
		message: /no timer and no socket is left.*Timeout/,
	},
	{
		what: 'the poll is not aborted',
		alone: true,
		file: 'index.ts',
		take: 'const { call, download, upload } = openHomeserver(link, signal)',
		give: 'const { call, download, upload } = openHomeserver(link, new AbortController().signal)',
		caught: 'releases everything when it is closed',
		message: /close settles/,
	},
	{
		what: 'close waits for a message that hangs',
		alone: true,
		file: 'homeserver.ts',
		take: 'AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])])',
		give: "init.method === 'PUT' && init.signal ? init.signal : AbortSignal.any([signal, ...(init.signal ? [init.signal] : [])])",
		caught: 'closes while a message is being sent',
		message: /send settles when the connection is closed/,
	},
	{
		what: 'it reports a loss after it was closed',
		file: 'incoming.ts',
		take: 'if (!signal.aborted) link.lost(error)',
		give: 'link.lost(error)',
		caught: 'is silent once it is closed',
		message: /a closed connection reports nothing/,
	},
	{
		what: 'channels share the state of one',
		file: 'homeserver.ts',
		take: "const root = link.config.api_root.replace(/\\/$/, '')",
		give: "const root = (openHomeserver.root ??= link.config.api_root.replace(/\\/$/, ''))",
		caught: 'keeps the connections of several channels apart',
		message: /401/,
	},
]

const source = new URL('../../../skills-examples/matrix-channel/', import.meta.url).pathname
/** A random sixth each time, or every mutant with MUTANTS=all. */
const SHARE = process.env.MUTANTS === 'all' ? 1 : 6
const OFFSET = Math.floor(Math.random() * SHARE)
const chosen = mutants.filter((_, n) => n % SHARE === OFFSET)

/** Expected events occur within a few turns of the event loop; this is long enough for hundreds. */
const PATIENCE_MS = 2_000

const folder = testFolder(t)

void t.test('every mutant fits the example', (t) => {
	for (const mutant of mutants) t.equal(partsOf(mutant).length, 2, `the text to replace occurs once: ${mutant.what}`)
	t.end()
})

void t.test('one after the other', (t) => {
	for (const mutant of chosen.filter(({ alone }) => alone))
		void t.test(`caught: ${mutant.what}`, (t) => isCaught(t, mutant))
	t.end()
})

// In parallel, since they mostly wait for events that do not occur.
void t.test('in parallel', { jobs: 8 }, (t) => {
	for (const mutant of chosen.filter(({ alone }) => !alone))
		void t.test(`caught: ${mutant.what}`, (t) => isCaught(t, mutant))
	t.end()
})

/** The text of the file before and after the text to replace. */
function partsOf({ file, take }: Mutant): string[] {
	return readFileSync(join(source, file), 'utf8').split(take)
}

async function isCaught(t: Test, mutant: Mutant): Promise<void> {
	const { file, give, caught, message } = mutant
	const check = channelChecks.find(({ name }) => name === caught)
	if (!check) throw new Error(`there is no check ${caught}`)
	const home = join(folder, String(mutants.indexOf(mutant)))
	cpSync(source, home, { recursive: true })
	writeFileSync(join(home, file), partsOf(mutant).join(give))
	const { default: plugin } = (await import(join(home, 'index.ts'))) as { default: Plugin }
	const suite = { adapter: adapterOf(plugin), platform: matrixPlatform, patience_ms: PATIENCE_MS }
	const caughtIt = (): Promise<unknown> => t.rejects(runCheck(check, suite), { message })
	await (mutant.alone ? hiddenFromTap(caughtIt) : caughtIt())
	clearInterval((globalThis as { left?: NodeJS.Timeout }).left)
}

/** Hides unhandled rejections from tap: the check must detect them, and tap would fail this test. */
async function hiddenFromTap(run: () => Promise<unknown>): Promise<void> {
	const listeners = process.listeners('unhandledRejection')
	process.removeAllListeners('unhandledRejection')
	try {
		await run()
	} finally {
		for (const listener of listeners) process.on('unhandledRejection', listener)
	}
}
