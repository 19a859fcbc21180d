/** The same fact is one memory, and a newer fact ranks before the one that it contradicts. */
import t from 'tap'
import { newerFirst } from '../../../plugins/memory/newer-first.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { assertError } from '../../support/error-response.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const createAgent = (name: string) => gateway.request('POST', '/v1/agents', { body: { name } })
const store = (name: string, body: object) => gateway.request('POST', `/v1/agents/${name}/memory`, { body })
const list = async (name: string): Promise<Answer[]> =>
	(await gateway.request('GET', `/v1/agents/${name}/memory`)).body.memories
const found = async (name: string, q: string): Promise<string[]> =>
	(await gateway.request('GET', `/v1/agents/${name}/memory/search?q=${encodeURIComponent(q)}`)).body.map(
		({ content }: Answer) => content,
	)

void t.test('the same content is one memory, with the tags of both', async (t) => {
	await createAgent('same')
	const [first, second] = await Promise.all(
		['The cat is called Biscotto.', ' The cat  is called\nBiscotto. '].map((content, at) =>
			store('same', { content, tags: [`tag-${at}`] }),
		),
	)
	t.equal(first?.body.id, second?.body.id)
	t.equal((await list('same')).length, 1)
	t.strictSame((await list('same'))[0].tags.toSorted(), ['tag-0', 'tag-1'])
	t.not((await store('same', { content: 'The CAT is called Biscotto.' })).body.id, first?.body.id, 'case matters')
	await gateway.request('DELETE', `/v1/agents/same/memory/${first?.body.id}`)
	const again = await store('same', { content: 'The cat is called Biscotto.' })
	t.not(again.body.id, first?.body.id, 'a forgotten memory is stored as a new one')
	t.strictSame(again.body.tags, [])
})

void t.test('a memory ranks before the one that it replaces, whatever the question', async (t) => {
	await createAgent('moves')
	const berlin = await store('moves', { content: 'The user lives in Berlin.' })
	const munich = await store('moves', { content: 'Since May her home is Munich.', replaces: [berlin.body.id] })
	t.strictSame(munich.body.replaces, [berlin.body.id])
	t.match((await list('moves')).at(-1), { replaced_by: munich.body.id })
	t.strictSame(await found('moves', 'Where in Berlin does the user live?'), [
		'Since May her home is Munich.',
		'The user lives in Berlin.',
	])
	assertError(t, await store('moves', { content: 'Hm.', replaces: ['none'] }), {
		status: 404,
		code: 'not_found',
		message: /"none"/,
	})
	await gateway.request('DELETE', `/v1/agents/moves/memory/${munich.body.id}`)
	t.strictSame(await found('moves', 'Where does the user live?'), ['The user lives in Berlin.'])
})

void t.test('forgetting a memory makes the one it replaced current, or links that to the next one', async (t) => {
	await createAgent('forgets')
	const forget = (id: string) => gateway.request('DELETE', `/v1/agents/forgets/memory/${id}`)
	const links = async (): Promise<unknown[]> =>
		(await list('forgets')).map(({ id, replaces, replaced_by }: Answer) => ({ id, replaces, replaced_by }))
	const berlin = (await store('forgets', { content: 'The user lives in Berlin.' })).body.id
	const munich = (await store('forgets', { content: 'She moved to Munich.', replaces: [berlin] })).body.id
	const rome = (await store('forgets', { content: 'Her home is Rome now.', replaces: [munich] })).body.id
	await forget(munich)
	t.strictSame(await links(), [
		{ id: rome, replaces: [berlin], replaced_by: undefined },
		{ id: berlin, replaces: undefined, replaced_by: rome },
	])
	await forget(rome)
	t.strictSame(await links(), [{ id: berlin, replaces: undefined, replaced_by: undefined }])
})

void t.test('a text that differs in one value replaces the older one, unless it is about another item', async (t) => {
	await createAgent('values')
	const old = await store('values', { content: 'The rent of the flat is 900 euros.' })
	const now = await store('values', { content: 'The rent of the flat is 950 euros.' })
	t.strictSame(now.body.replaces, [old.body.id])
	t.strictSame(await found('values', 'Is the rent 900 euros?'), [
		'The rent of the flat is 950 euros.',
		'The rent of the flat is 900 euros.',
	])
	const back = await store('values', { content: 'The rent of the flat is 900 euros.' })
	t.match(back.body, { id: old.body.id, replaces: [now.body.id] })
	t.equal(back.body.replaced_by, undefined)
	t.equal((await found('values', 'rent of the flat'))[0], 'The rent of the flat is 900 euros.')
	for (const content of ['Invoice 17 was paid.', 'Invoice 18 was paid.'])
		t.equal((await store('values', { content })).body.replaces, undefined)
	await store('values', { content: 'The flat has 3 rooms on floor 2.' })
	t.equal(
		(await store('values', { content: 'The flat has 4 rooms on floor 5.' })).body.replaces,
		undefined,
		'two values',
	)
})

void t.test('a cycle of replacements loses no memory', (t) => {
	const cycle = [{ id: 'a', replaces: ['b'] }, { id: 'b', replaces: ['a'] }, { id: 'c' }]
	t.strictSame(
		newerFirst(cycle)
			.map(({ id }) => id)
			.toSorted(),
		['a', 'b', 'c'],
	)
	t.end()
})

void t.test('a long chain of replacements is ordered from newest to oldest', (t) => {
	const chain = Array.from({ length: 50_000 }, (_, n) => ({ id: String(n), replaces: [String(n - 1)] }))
	t.strictSame(
		newerFirst(chain).map(({ id }) => id),
		chain.toReversed().map(({ id }) => id),
	)
	t.end()
})
