/** The Discord channel passes the contract suite. */
import t from 'tap'
import type { ChannelAdapter, ChatKind } from '../../../plugins/channels/adapter.ts'
import { discord as adapter } from '../../../plugins/discord/index.ts'
import { checkChannel } from '../../contracts/channel.ts'
import type { TestChat, TestPlatform } from '../../contracts/channel.ts'
import { startDiscord } from '../../support/discord.ts'
import type { Failure, Message } from '../../support/discord.ts'

checkChannel(t, {
	adapter: adapter as ChannelAdapter,
	platform: discordPlatform,
	abilities: { unguarded: false, threads: false, drafts: false },
})

async function discordPlatform(): Promise<TestPlatform> {
	const server = await startDiscord()
	const next = (how: Failure['how']): void => server.fail({ method: 'POST', path: /messages$/, how })

	function chat(kind: ChatKind): TestChat {
		const target = kind === 'private' ? server.addDirect() : server.addChannel()
		let newest: Message | undefined
		const say = (text: string, fields: object = {}): void => {
			newest = server.say(target, text, { mention: kind === 'group', more: fields })
		}
		return {
			id: target.id,
			kind,
			say: (text) => say(text),
			mumble: (text) => void server.say(target, text),
			reply: (id, text) =>
				void server.say(target, text, {
					more: { type: 19, message_reference: { message_id: id, channel_id: target.id }, mentions: [server.bot] },
				}),
			attach: () => say('', { attachments: [{ id: '1', filename: 'a.png', content_type: 'image/png' }] }),
			attachFile(bytes, filename) {
				server.files.set(filename, Buffer.from(bytes))
				const url = `${server.url}/files/${filename}`
				say('', { attachments: [{ id: '1', filename, content_type: 'image/png', size: bytes.length, url }] })
			},
			repeat() {
				if (newest) server.tell(newest)
			},
			shown: () =>
				server.written(target).map(({ id, content, message_reference, upload }) => ({
					id,
					text: content.replaceAll(/\\(\W|_)/g, '$1'),
					reply_to: message_reference?.message_id,
					file: upload,
				})),
			typed: () => server.calls.filter(({ path }) => path === `/channels/${target.id}/typing`).length,
		}
	}

	return {
		config: { api_root: server.url },
		token: server.token,
		wrong_token: 'nobody.has-this.one',
		chat,
		cut() {
			server.cut()
			server.hangUp()
		},
		open: () => server.sockets + server.requests,
		close: () => server.stop(),
		next: {
			lost: () => next('after'),
			limited: () => next({ status: 429, body: { retry_after: 9 }, headers: { 'retry-after': '9' } }),
			failed: () => next({ status: 403, body: '<html>not from the interface itself</html>' }),
			refused: () => next({ status: 403, body: { code: 50013, message: 'Missing Permissions' } }),
			format: () => next({ status: 400, body: { code: 50035, message: 'Invalid Form Body' } }),
			stalled: () => next('never'),
		},
		silent: () => void (server.silent = true),
		revoke() {
			server.token = 'another.one'
			server.close(4004)
		},
	}
}
