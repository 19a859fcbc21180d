/** The test platform for Matrix: `skills-examples/matrix-channel` and the homeserver of the tests. */
import type { ChannelAdapter, ChatKind } from '../../../plugins/channels/adapter.ts'
import type { Context, Plugin } from '../../../core/plugin.ts'
import { startHomeserver } from '../../support/matrix.ts'
import type { TestChat, TestPlatform } from '../channel.ts'

/** The adapter that a plugin adds to the gateway. */
export function adapterOf(plugin: Plugin): ChannelAdapter {
	let adapter: ChannelAdapter | undefined
	void plugin.start?.({ extend: (_: string, value: ChannelAdapter) => (adapter = value) } as unknown as Context)
	if (!adapter) throw new Error(`plugin ${plugin.name} adds no channel`)
	return adapter
}

export async function matrixPlatform(): Promise<TestPlatform> {
	const server = await startHomeserver()
	const bot = server.user('bot', 'Bot')
	const person = server.user('alice', 'Alice')
	const other = server.user('carol', 'Carol')
	const send = /^PUT .*\/send\//
	const error = (errcode: string): object => ({ errcode, error: 'as the test wants it' })

	function chat(kind: ChatKind): TestChat {
		const id = kind === 'private' ? server.room(person, bot) : server.room(person, bot, other)
		const toBot = { 'm.mentions': { user_ids: [bot] } }
		let newest = ''
		const say = (body: string, more: object): void => {
			newest = server.say(id, person, { msgtype: 'm.text', body, ...more })
		}
		return {
			id,
			kind,
			say: (text) => (kind === 'private' ? say(text, {}) : say(`Bot: ${text}`, toBot)),
			mumble: (text) => say(text, {}),
			sayInThread(text) {
				const event_id = server.say(id, other, 'a root')
				const relation = { rel_type: 'm.thread', event_id, is_falling_back: true, 'm.in_reply_to': { event_id } }
				say(text, { ...toBot, 'm.relates_to': relation })
			},
			reply: (event_id, text) => say(text, { 'm.relates_to': { 'm.in_reply_to': { event_id } } }),
			attach: () => say('cat.jpg', { ...toBot, msgtype: 'm.image', url: 'mxc://matrix.test/cat' }),
			attachFile(bytes, name) {
				server.media.set('file', bytes)
				say(name, { ...toBot, msgtype: 'm.file', url: 'mxc://matrix.test/file', info: { size: bytes.length } })
			},
			repeat: () => server.repeat(newest),
			shown: () =>
				server.shown(id, bot).map(({ id, text, html, reply_to, thread_id, url }) => {
					const bytes = url === undefined ? undefined : server.media.get(url.split('/').at(-1) ?? '')
					if (bytes) return { id, text: '', reply_to, thread_id, file: { name: text, bytes } }
					return { id, text: read(text, html), reply_to, thread_id }
				}),
			typed: () => server.typed(id),
		}
	}

	return {
		config: { api_root: server.url },
		token: server.token(bot),
		wrong_token: 'syt_nobody-has-this-one',
		chat,
		cut: () => server.cut(),
		open: () => server.open(),
		close: () => server.close(),
		next: {
			lost: () => server.fail(send, { when: 'after' }),
			limited: () => server.fail(send, { status: 429, body: { ...error('M_LIMIT_EXCEEDED'), retry_after_ms: 250 } }),
			refused: () => server.fail(send, { status: 403, body: error('M_FORBIDDEN') }),
			format: () => server.fail(send, { status: 413, body: error('M_TOO_LARGE') }),
			stalled: () => server.fail(send, { hang: true }),
		},
		silent: () => server.fail(/./, { times: Infinity, hang: true }),
		revoke() {
			server.revoke(bot)
			server.cut()
		},
	}
}

/** The text as an app shows it: from the HTML if there is any, in which only `br` and `pre` break lines. */
function read(body: string, html: string | undefined): string {
	if (html === undefined) return body
	const parts = html.split(/(<pre>.*?<\/pre>)/s)
	const lines = parts.map((part, i) => (i % 2 === 0 ? part.replaceAll('\n', ' ').replaceAll('<br>', '\n') : part))
	const text = lines.join('').replace(/<[^>]*>/g, '')
	return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
