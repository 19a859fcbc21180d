import t from 'tap'
import { openMemory } from '../../../support/memory-engine.ts'
import { openMarks } from '../../../../plugins/channels/dialogue/marks.ts'
import type { IncomingMessage } from '../../../../plugins/channels/adapter.ts'
import type { LiveChannel } from '../../../../plugins/channels/parts.ts'
import type { Registry } from '../../../../plugins/channels/registry.ts'

const message = (id: string, cursor: string): IncomingMessage => ({
	id,
	cursor,
	chat: { id: 'a-chat', kind: 'private' },
	sender: { id: 'a-person' },
	text: 'hello',
	addressed: true,
})

void t.test('the position in a feed survives a restart, with and without messages', async (t) => {
	const engine = openMemory()
	t.teardown(() => engine[Symbol.asyncDispose]())
	const { signal } = new AbortController()
	const use = (): never => t.fail('no service is used') as never
	const start = () => openMarks({ store: engine.store, use, signal }, {} as Registry)

	const first = start()
	t.equal(await first.cursor('c'), null)
	await first.advance('c', 's5')
	await first.advance('c', 's6')
	t.equal(await first.cursor('c'), 's6')
	t.equal(await start().cursor('c'), 's5', 'the first position is stored at once, later ones occasionally')

	const second = start()
	await second.record('c', message('1', 's7'))
	t.equal(await start().cursor('c'), 's7', 'each recorded message stores its position')

	const third = start()
	await third.advance('c', 's8')
	t.equal(await start().cursor('c'), 's8', 'a later position replaces it')
	t.equal(await start().cursor('another'), null)
})

void t.test('a chat counts as bound since its binding or the last change of who is answered', async (t) => {
	const engine = openMemory()
	t.teardown(() => engine[Symbol.asyncDispose]())
	const { signal } = new AbortController()
	let heard_since: string | undefined
	const registry = {
		channel: () => (heard_since === undefined ? {} : { heard_since }) as LiveChannel,
		bound: async () => ({ created_at: '2026-03-01T00:00:00.000Z' }),
	} as unknown as Registry
	const marks = openMarks({ store: engine.store, use: () => t.fail() as never, signal }, registry)
	await marks.record('c', message('1', 's1'))
	const boundAt = async (): Promise<string | undefined> => (await marks.chats('c'))[0]?.bound_at
	t.equal(await boundAt(), '2026-03-01T00:00:00.000Z')
	heard_since = '2026-02-01T00:00:00.000Z'
	t.equal(await boundAt(), '2026-03-01T00:00:00.000Z')
	heard_since = '2026-04-01T00:00:00.000Z'
	t.equal(await boundAt(), heard_since)
})
