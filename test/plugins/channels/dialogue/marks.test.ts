import t from 'tap'
import { openMemory } from '../../../../core/store/memory.ts'
import { openMarks } from '../../../../plugins/channels/dialogue/marks.ts'
import type { IncomingMessage } from '../../../../plugins/channels/adapter.ts'
import type { Registry } from '../../../../plugins/channels/parts.ts'

const message = (id: string, cursor: string): IncomingMessage => ({
	id,
	cursor,
	chat: { id: 'a-chat', kind: 'private' },
	sender: { id: 'a-person' },
	text: 'hello',
	addressed: true,
})

void t.test('where a feed stands outlives a restart, by messages and without any', async (t) => {
	const engine = openMemory()
	t.teardown(() => engine[Symbol.asyncDispose]())
	const { signal } = new AbortController()
	const use = (): never => t.fail('nobody is asked') as never
	const start = () => openMarks({ store: engine.store, use, signal }, {} as Registry)

	const first = start()
	t.equal(await first.cursor('c'), null)
	await first.advance('c', 's5')
	await first.advance('c', 's6')
	t.equal(await first.cursor('c'), 's6')
	t.equal(await start().cursor('c'), 's5', 'the first place is kept at once, further ones now and then')

	const second = start()
	await second.note('c', message('1', 's7'))
	t.equal(await start().cursor('c'), 's7', 'each that is taken brings its place')

	const third = start()
	await third.advance('c', 's8')
	t.equal(await start().cursor('c'), 's8', 'which does not stay in the way of later ones')
	t.equal(await start().cursor('another'), null)
})
