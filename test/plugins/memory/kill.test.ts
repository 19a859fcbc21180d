/** kill -9 while memories are stored: acknowledged memories are kept and found, by words and by the graph. */
import t from 'tap'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import { sentences } from './thread.ts'

const KILLS = Number(process.env.MEMORY_KILLS ?? 1)
const CLIENTS = 8

void t.test(`no memory is lost in ${KILLS} kills`, { timeout: 60_000 + KILLS * 20_000 }, async (t) => {
	const home = makeHome({}, t)
	const kept = new Map<string, string>()
	const forgotten = new Set<string>()
	const contents = sentences(100_000).values()
	for (let kill = 0; kill < KILLS; kill++) {
		const gateway = await spawnGateway(home)
		if (kill === 0) await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: 'ada' } })
		const base = `${gateway.url}/v1/agents/ada/memory`
		// Makes the index, so that every write goes to the store and to the index.
		await send(`${base}/search?q=piano`, 'GET')
		const before = kept.size
		const full = Promise.withResolvers<void>()
		const client = async (): Promise<void> => {
			for (const content of contents) {
				const stored = await send(base, 'POST', { body: { content } })
				if (stored.status !== 201) throw new Error(`stored: ${stored.status}`)
				if (kept.size % 10 === 9 && forgotten.size * 10 < kept.size) {
					// Until the deletion is acknowledged, the memory may exist or not.
					const { status } = await send(`${base}/${stored.body.id}`, 'DELETE')
					if (status !== 204) throw new Error(`forgotten: ${status}`)
					forgotten.add(stored.body.id)
				} else kept.set(stored.body.id, content)
				if (kept.size - before >= 60) full.resolve()
			}
		}
		const clients = Promise.allSettled(Array.from({ length: CLIENTS }, client))
		await Promise.race([full.promise, clients])
		await gateway.kill()
		await clients
	}

	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const base = `${gateway.url}/v1/agents/ada/memory`
	const listed = new Map<string, string>()
	for (let cursor = ''; ;) {
		const { body } = await send(`${base}?limit=100${cursor}`, 'GET')
		for (const { id, content } of body.memories) listed.set(id, content)
		if (body.next_cursor === null) break
		cursor = `&cursor=${body.next_cursor}`
	}
	t.strictSame(
		[...kept].filter(([id, content]) => listed.get(id) !== content),
		[],
		'every acknowledged memory is kept',
	)
	t.strictSame(
		[...forgotten].filter((id) => listed.has(id)),
		[],
		'no forgotten memory is kept',
	)
	for (const [id, content] of [...kept].filter((_, at) => at % 7 === 0)) {
		const { body } = await send(`${base}/search?q=${encodeURIComponent(content)}&limit=1`, 'GET')
		t.match(body[0], { id, content })
		t.ok(body[0].similarity > 0.99)
	}
	t.comment(`${kept.size} kept, ${forgotten.size} forgotten`)
})
