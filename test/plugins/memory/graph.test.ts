/**
 * The graph: it finds what a comparison with every vector finds, and its file is used only with a correct checksum.
 * MEMORY_LARGE=1 uses 100,000 memories. MEMORY_DAMAGES=all tests all damages; the default is one of each kind.
 */
import {
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	truncateSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Graph } from '../../../plugins/memory/search/graph.ts'
import type { Scored } from '../../../plugins/memory/search/top-scores.ts'
import { nearest } from '../../../plugins/memory/search/nearest.ts'
import type { NearestQuery } from '../../../plugins/memory/search/nearest.ts'
import { Vectors } from '../../../plugins/memory/search/vectors.ts'
import { HASHING_DIMENSIONS, hashTerms } from '../../../plugins/memory/hashing.ts'
import { termsOf } from '../../../plugins/memory/words.ts'
import { fill, graphed, openThread, removeFolder, rowsOf, sentences } from './thread.ts'
import type { TestThread } from './thread.ts'

const LARGE = process.env.MEMORY_LARGE === '1'
const COUNT = LARGE ? 100_000 : 4_200
const QUESTIONS = LARGE ? 100 : 40
const UID = '01a1fed6-468c-7000-b91a-159978f7bae7'
const TOP = 10
/** How many a search for ten takes from the graph. */
const CANDIDATES = 40

const contents = sentences(COUNT)
const rows = rowsOf(contents)
const ask = async ({ thread }: TestThread, text: string): Promise<string[]> =>
	((await thread.ask('search', { uid: UID, query: { text, limit: TOP, tags: [] } })) ?? []).map(({ id }) => id)

void t.test(
	'the graph finds the ten nearest, as a comparison with every vector does',
	{ timeout: 600_000 },
	async (t) => {
		const exact = contents.map((content) => hashTerms(termsOf(content).terms))
		const vectors = new Vectors(HASHING_DIMENSIONS)
		for (const [at, vector] of exact.entries()) vectors.set(at, vector)
		const graph = new Graph(vectors)
		for (let at = 0; at < COUNT; at++) graph.add(at)
		while (graph.work(1_000));
		t.equal(graph.size, COUNT)

		const half = new Set(exact.keys().filter((ordinal) => ordinal % 2 === 0))
		const few = new Set([7, 99, 1_000, 4_000])
		let found = 0
		let foundInHalf = 0
		for (const question of sentences(COUNT + QUESTIONS).slice(COUNT)) {
			const query = hashTerms(termsOf(question.split(' ').slice(0, 9).join(' ')).terms)
			const cosines = exact.map((vector) => dot(vector, query))
			// Any of several equally near memories can be the tenth, so scores are compared, not ordinals.
			const least = cosines.toSorted((a, b) => b - a)[TOP - 1] as number
			const cosine = vectors.cosinesWith(query)
			const top = (options: Pick<NearestQuery, 'allowed'>): Scored[] =>
				nearest(vectors, graph, { query, cosine, most: CANDIDATES, floor: 0, ...options })
					.toSorted((a, b) => b.score - a.score)
					.slice(0, TOP)
			const near = top({})
			found += near.filter(({ ordinal }) => (cosines[ordinal] as number) >= least - 1e-3).length

			const leastInHalf = cosines.filter((_, at) => half.has(at)).toSorted((a, b) => b - a)[TOP - 1] as number
			const inHalf = top({ allowed: half })
			t.ok(inHalf.every(({ ordinal }) => half.has(ordinal)))
			foundInHalf += inHalf.filter(({ ordinal }) => (cosines[ordinal] as number) >= leastInHalf - 1e-3).length

			const ofFew = nearest(vectors, graph, { query, cosine, most: CANDIDATES, floor: -1, allowed: few })
			t.strictSame(new Set(ofFew.map(({ ordinal }) => ordinal)), few, 'allowed vectors, however distant')
		}
		const recall = found / (QUESTIONS * TOP)
		t.comment(`recall@10 of ${COUNT} memories: ${recall}`)
		t.ok(recall >= 0.95, `${(recall * 100).toFixed(1)} % of the nearest were found`)
		const recallInHalf = foundInHalf / (QUESTIONS * TOP)
		t.comment(`recall@10 of half of them, by a tag: ${recallInHalf}`)
		t.ok(recallInHalf >= 0.95, `${(recallInHalf * 100).toFixed(1)} % of the nearest allowed ones were found`)
	},
)

void t.test('a vector that contains NaN is ignored', (t) => {
	const vectors = new Vectors(2)
	vectors.set(0, Float32Array.of(1, 0))
	vectors.set(1, Float32Array.of(NaN, 1))
	t.equal(vectors.count, 1)
	t.equal(Math.round(vectors.meanCosine(Float32Array.of(1, 0))), 1)
	t.end()
})

void t.test('a graph is read from its file, then later additions and removals are applied', async (t) => {
	const first = openThread()
	t.teardown(() => removeFolder(first.folder))
	await fill(first, UID, rows)
	t.match(await graphed(first, UID), { memories: COUNT, vectors: COUNT, from_file: false })
	const before = await ask(first, 'Maya bought the red bicycle')
	await first[Symbol.asyncDispose]()
	const files = readdirSync(first.folder)
	t.strictSame(files.toSorted(), [`${UID}.json`, `${UID}.usearch`])
	for (const file of files) t.equal(statSync(join(first.folder, file)).mode & 0o777, 0o600, file)

	const second = openThread(first.folder)
	const added = rowsOf([...contents, 'Zebulon bought the red bicycle.']).at(-1)
	const removed = before[0]
	await fill(second, UID, [...rows.filter(({ id }) => id !== removed), added as (typeof rows)[0]])
	t.match(await graphed(second, UID), { memories: COUNT, in_graph: COUNT, from_file: true })
	const after = await ask(second, 'Maya bought the red bicycle')
	t.notOk(after.includes(String(removed)), 'the removed memory is not found')
	t.equal((await ask(second, 'Zebulon'))[0], added?.id, 'the added memory is found')
	await second[Symbol.asyncDispose]()
	t.strictSame(second.failures, [])
})

void t.test('a graph that cannot be saved does not end its thread', async (t) => {
	const opened = openThread()
	t.teardown(() => removeFolder(opened.folder))
	mkdirSync(join(opened.folder, `${UID}.usearch.${process.pid}.tmp`)) // the file is first written under this name
	await fill(opened, UID, rows)
	await graphed(opened, UID)
	t.equal((await ask(opened, 'Maya bought the red bicycle')).length, TOP)
	await opened[Symbol.asyncDispose]()
	t.strictSame(opened.failures, [])
})

void t.test('an index that consists mostly of removed memories is dropped, to be filled again', async (t) => {
	const opened = openThread()
	t.teardown(() => removeFolder(opened.folder))
	const lost: string[] = []
	opened.thread.onLost((uid) => lost.push(uid))
	const [kept, ...rest] = rows
	await fill(opened, UID, [kept as (typeof rows)[0]])
	for (let round = 0; round < 100 && lost.length === 0; round++) {
		const added = rest.slice(0, 500).map((row) => ({ ...row, id: `${row.id} ${round}` }))
		await opened.thread.ask('add', { uid: UID, rows: added })
		await opened.thread.ask('remove', { uid: UID, ids: added.map(({ id }) => id) })
	}
	t.strictSame(lost, [UID])
	t.equal(await opened.thread.ask('status', { uid: UID }), null)
	await opened[Symbol.asyncDispose]()
})

void t.test('a closed thread is not started again', async (t) => {
	const opened = openThread()
	t.teardown(() => removeFolder(opened.folder))
	await fill(opened, UID, rows.slice(0, 1))
	await opened[Symbol.asyncDispose]()
	await t.rejects(opened.thread.ask('status', { uid: UID }), { code: 'unavailable' })
})

type Damage = [string, (graph: string, manifest: string) => void]

/** One of each kind: a file that is missing, cut off, or altered where only a checksum shows it. */
const damages: Damage[] = [
	['the graph deleted', (graph) => rmSync(graph)],
	['the manifest truncated', (_, manifest) => truncateSync(manifest, 1_000)],
	['the graph scrambled', (graph) => writeFileSync(graph, scrambled(readFileSync(graph)))],
	['one bit of the manifest flipped', (_, manifest) => writeFileSync(manifest, flipped(readFileSync(manifest)))],
]
const moreDamages: Damage[] = [
	['the manifest deleted', (_, manifest) => rmSync(manifest)],
	['the graph truncated', (graph) => truncateSync(graph, Math.floor(statSync(graph).size / 2))],
	['the graph empty', (graph) => truncateSync(graph, 0)],
	['one bit of the graph flipped', (graph) => writeFileSync(graph, flipped(readFileSync(graph)))],
	['something other than a graph', (graph) => writeFileSync(graph, 'something else')],
]
if (process.env.MEMORY_DAMAGES === 'all') damages.push(...moreDamages)

void t.test('a damaged file is ignored and the graph rebuilt, while searches are answered', async (t) => {
	const intact = openThread()
	t.teardown(() => removeFolder(intact.folder))
	await fill(intact, UID, rows)
	await graphed(intact, UID)
	const question = 'who painted the quiet garden in the harbour?'
	const expected = await ask(intact, question)
	await intact[Symbol.asyncDispose]()
	const [graph, manifest] = [join(intact.folder, `${UID}.usearch`), join(intact.folder, `${UID}.json`)]
	const kept = [readFileSync(graph), readFileSync(manifest)] as const

	for (const [what, damage] of damages) {
		writeFileSync(graph, kept[0])
		writeFileSync(manifest, kept[1])
		damage(graph, manifest)
		const reader = openThread(intact.folder)
		await fill(reader, UID, rows)
		t.strictSame(await ask(reader, question), expected, `${what}: correct while the graph is rebuilt`)
		const status = await reader.thread.ask('status', { uid: UID })
		t.equal(status?.from_file, false, `${what}: not read`)
		if (what === 'the graph scrambled') {
			await graphed(reader, UID)
			t.strictSame(await ask(reader, question), expected, `${what}: correct afterwards`)
		}
		t.strictSame(reader.failures, [], what)
		// Ends without saving, as after a crash.
		await reader.thread.ask('drop', { uid: UID, file: false })
		await reader[Symbol.asyncDispose]()
	}
	t.notOk(existsSync(`${graph}.tmp`))
})

void t.test('all indexes together stay within their limit: those of idle agents are dropped first', async (t) => {
	const small = openThread(undefined, 2)
	t.teardown(async () => {
		await small[Symbol.asyncDispose]()
		removeFolder(small.folder)
	})
	const lost: string[] = []
	small.thread.onLost((uid) => lost.push(uid))
	const some = rows.slice(0, 500)
	for (const uid of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) await fill(small, uid, some)
	t.ok(lost.length > 0, `${lost.length} were dropped`)
	t.strictSame(lost, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].slice(0, lost.length), 'the oldest first')
	const query = { text: 'bicycle', limit: 3, tags: [] }
	t.equal(await small.thread.ask('search', { uid: 'a', query }), null)
	t.equal((await small.thread.ask('search', { uid: 'h', query }))?.length, 3)
})

function dot(a: Float32Array, b: Float32Array): number {
	let sum = 0
	for (let at = 0; at < a.length; at++) sum += (a[at] as number) * (b[at] as number)
	return sum
}

function scrambled(bytes: Buffer): Buffer {
	const copy = Buffer.from(bytes)
	let seed = 7
	for (let at = 0; at < copy.length; at += 13) {
		seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
		copy[at] = seed >>> 24
	}
	return copy
}

function flipped(bytes: Buffer): Buffer {
	const copy = Buffer.from(bytes)
	const at = Math.floor(copy.length * 0.6)
	copy[at] = (copy[at] as number) ^ 1
	return copy
}
