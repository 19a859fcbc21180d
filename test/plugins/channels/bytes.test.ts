/** A platform that counts bytes: answers are split by `max_bytes`, through a gateway and for every markup. */
import t from 'tap'
import type { Test } from 'tap'
import type { Format, OutgoingMessage } from '../../../plugins/channels/adapter.ts'
import { nextPart } from '../../../plugins/channels/dialogue/part.ts'
import type { SplitPosition } from '../../../plugins/channels/dialogue/split.ts'
import { startGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'

const family = '👩‍👩‍👧'
const prose = `${family} 漢字 Grüße `.repeat(60).trim()
const code = `\`\`\`js\n${'const 漢 = "é" // 漢字\n'.repeat(60)}\`\`\``
const source = `${prose}\n\n${code}\n\n${'漢'.repeat(900)} end`

function assertValidPart(t: Test, text: string, format: Format): void {
	t.ok(Buffer.byteLength(text) <= (format.max_bytes ?? 0), `${Buffer.byteLength(text)} of ${format.max_bytes} bytes`)
	t.ok(text.length <= format.max_length || format.markup === 'html')
	t.ok(text.isWellFormed() && !text.includes('\uFFFD'), 'no character is cut')
	t.notMatch(text, /^\u200d|\u200d$/u, 'no joined emoji is cut')
	if (format.markup === 'markdown') t.equal(text.split('```').length % 2, 1, 'every code block is closed')
}

void t.test('every part fits both limits, and nothing is lost', async (t) => {
	for (const markup of ['markdown', 'html', 'plain'] as const) {
		for (const max_bytes of [256, 300, 512, 1000]) {
			const format = { markup, max_length: 400, max_bytes }
			let all = ''
			for (let place: SplitPosition = { offset: 0, fence: null }; place.offset < source.length;) {
				const { text, next } = await nextPart(source, place, format)
				assertValidPart(t, text, format)
				all += text
				place = next
			}
			for (const [sign, count] of [
				[family, 60],
				['Grüße', 60],
				['é', 60],
				['漢', 60 + 2 * 60 + 900],
			] as const)
				t.equal(all.split(sign).length - 1, count, `${markup} at ${max_bytes}: every ${sign}`)
		}
	}
})

const counter = `
export default {
	name: 'counter',
	needs: ['channels'],
	start: (ctx) => ctx.extend('channel', {
		type: 'counter', label: 'Counter',
		can: { formats: [{ markup: 'markdown', max_length: 4000, max_bytes: 512 }, { markup: 'plain', max_length: 4000, max_bytes: 512 }], pace: { chat_ms: 0, channel_ms: 0 } },
		connect: async (link) => {
			globalThis.counterLink = link
			return { send: async (message) => ({ id: String(globalThis.counterSent.push(message)) }), close: async () => {} }
		},
	}),
}
`

void t.test('an answer is sent in parts of at most max_bytes', async (t) => {
	const sent: OutgoingMessage[] = []
	const shared = Object.assign(globalThis, { counterSent: sent }) as unknown as {
		counterLink: { receive(message: object): Promise<void> }
	}
	const gateway = await startGateway({
		config: 'plugins: {counter: true}\n',
		files: { 'plugins/counter/index.js': counter },
	})
	const stream = await openStream(gateway.url)
	t.teardown(async () => {
		stream.close()
		await gateway.stop()
	})
	const post = async (path: string, body: object) => (await gateway.request('POST', path, { body })).body
	await post('/v1/agents', { name: 'ada' })
	await post('/v1/vault/secrets', { name: 'COUNTER', value: 'a token of the counter' })
	const { id } = await post('/v1/channels', { type: 'counter', bot_token_ref: 'COUNTER' })
	await stream.waitFor('channel.connected')
	await post('/v1/channels/pair', { agent_id: 'ada', channel_id: id, external_chat_id: 'here' })
	await stream.waitFor('channel.paired')
	const from = { chat: { id: 'here', kind: 'private' }, sender: { id: 'me' }, addressed: true }
	await shared.counterLink.receive({ id: '1', text: prose, ...from })
	await stream.waitFor('channel.message_sent')
	const texts = sent.map(({ text }) => text)
	t.ok(texts.length > 4, `${texts.length} messages`)
	for (const { text, markup } of sent) assertValidPart(t, text, { markup, max_length: 4000, max_bytes: 512 })
	t.equal(texts.join(' ').split(family).length - 1, 60)
})
