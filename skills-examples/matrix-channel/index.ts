/**
 * A channel for Matrix (https://matrix.org), with the client-server API v3 and the built-in fetch, without packages.
 *
 * It is also an example for authors of channels. The contract is `plugins/channels/adapter.ts`, and `docs/writing-a-channel.md`
 * explains how to write a channel. This file declares what the platform supports, and sends messages; `incoming.ts` receives them,
 * and `homeserver.ts` makes requests. `mark`, `find` and `draft` are not needed: Matrix supports nonces, and has no drafts.
 */
import { randomUUID } from 'node:crypto'
import type { Plugin } from '../../core/plugin.ts'
import type {
	ChannelAdapter,
	ChatRef,
	Connection,
	Link,
	OutgoingFile,
	OutgoingMessage,
} from '../../plugins/channels/adapter.ts'
import { openHomeserver, orElse } from './homeserver.ts'
import { openFeed } from './incoming.ts'

export default {
	name: 'matrix-channel',
	version: '1.0.0',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', adapter),
} satisfies Plugin

export interface Config {
	api_root: string
	accept_invites: 'all' | 'none'
}

const TYPING_MS = 10_000

const adapter: ChannelAdapter<Config> = {
	type: 'matrix',
	label: 'Matrix',
	can: {
		// An event has at most 64 KiB, and an edit contains its text up to four times, with three bytes per character.
		formats: [
			{ markup: 'html', max_length: 4000 },
			{ markup: 'plain', max_length: 8000 },
		],
		typing_ms: TYPING_MS,
		preview: { private: 'edit', group: 'edit' },
		pace: { chat_ms: 2000, channel_ms: 100 },
		files: { max_bytes: 50_000_000 }, // a homeserver with a lower limit refuses larger files
	},
	config: (joi) =>
		joi.object({
			api_root: joi.string().required(), // the gateway checks that it is an address
			accept_invites: joi.valid('all', 'none').default('all'),
		}),
	// Never list an address here: whoever could set it would get the operator's token.
	unguarded: ['accept_invites'],
	connect,
}

async function connect(link: Link<Config>): Promise<Connection> {
	// The gateway aborts `link.signal` before it calls `close`; both end all requests in progress.
	const closing = new AbortController()
	const signal = AbortSignal.any([link.signal, closing.signal])
	const { call, download, upload } = openHomeserver(link, signal)

	const { user_id } = await call<{ user_id: string }>('GET', ['account', 'whoami'])
	const profile = call<{ displayname?: string }>('GET', ['profile', user_id, 'displayname'])
	const { displayname } = await profile.catch(orElse({ displayname: undefined })) // it has no name
	const listen = await openFeed(link, call, signal, { user_id, displayname })
	const ended = listen() // must never reject, since nobody awaits it before `close`

	function put(chat: ChatRef, txn_id: string, content: object): Promise<{ event_id: string }> {
		return call('PUT', ['rooms', chat.id, 'send', 'm.room.message', txn_id], { body: content })
	}

	return {
		name: user_id,
		// The nonce is Matrix's transaction id, so a message that is sent again after a lost response appears once.
		async send(message) {
			const { event_id } = await put(message.chat, message.nonce, contentOf(message))
			return { id: event_id }
		},
		// Not with the nonce: the homeserver would treat a second edit with the same transaction id as the first one.
		async edit(id, message) {
			const content = contentOf(message)
			const relation = { rel_type: 'm.replace', event_id: id }
			const fallback = `* ${content.body}` // for apps without support for edits
			await put(message.chat, randomUUID(), {
				...content,
				body: fallback,
				'm.new_content': content,
				'm.relates_to': relation,
			})
		},
		async typing(chat) {
			await call('PUT', ['rooms', chat.id, 'typing', user_id], { body: { typing: true, timeout: TYPING_MS } })
		},
		load: download,
		// If a response is lost, the file is stored twice, but sent once.
		async sendFile(file, bytes) {
			const url = await upload(bytes, file.media_type)
			const { event_id } = await put(file.chat, file.nonce, fileContentOf(file, url))
			return { id: event_id }
		},
		async close() {
			closing.abort()
			await ended
		},
	}
}

function contentOf({ text, markup, ...place }: OutgoingMessage) {
	return {
		msgtype: 'm.text',
		body: markup === 'html' ? withoutTags(text) : text,
		...(markup === 'html' && { format: 'org.matrix.custom.html', formatted_body: withBreaks(text) }),
		'm.mentions': {}, // names in an answer notify nobody
		...relationOf(place),
	}
}

function fileContentOf({ type, name, media_type, size, ...place }: OutgoingFile, url: string) {
	return { msgtype: `m.${type}`, body: name, url, info: { mimetype: media_type, size }, ...relationOf(place) }
}

function relationOf({ chat, reply_to }: Pick<OutgoingMessage, 'chat' | 'reply_to'>) {
	const thread = chat.thread_id !== undefined && { rel_type: 'm.thread', event_id: chat.thread_id }
	const reply = reply_to !== undefined && { 'm.in_reply_to': { event_id: reply_to } }
	return (thread || reply) && { 'm.relates_to': { ...thread, ...reply } }
}

/** Except in `pre`, a line break is `\n` in the contract's HTML, but `<br>` in Matrix. */
function withBreaks(html: string): string {
	const parts = html.split(/(<pre>.*?<\/pre>)/s)
	return parts.map((part, i) => (i % 2 === 0 ? part.replaceAll('\n', '<br>') : part)).join('')
}

function withoutTags(html: string): string {
	return html
		.replace(/<[^>]*>/g, '')
		.replaceAll('&lt;', '<')
		.replaceAll('&gt;', '>')
		.replaceAll('&amp;', '&')
}
