/** Copies of the store under load contain everything acknowledged before, and no partial commit. */
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { newId } from '../../../core/util/ids.ts'
import type { Logger } from '../../../core/log/log.ts'
import { checkFile } from '../../../core/backup/check-file.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { Engine, LogEntry } from '../../../core/store/ports.ts'
import { testFolder } from '../../support/folder.ts'

const everything = { wholeBytes: Number.POSITIVE_INFINITY, withinMs: Number.POSITIVE_INFINITY }
const scopes = 8
const parts = 5

/** The writes acknowledged so far. */
interface Acknowledged {
	/** By scope: the round that all its records have reached. */
	rounds: Map<string, number>
	/** By run: its last sequence. */
	runs: Map<string, number>
	jobs: Set<string>
}

function entry(run: string, sequence: number): LogEntry {
	const timestamp = new Date().toISOString()
	return {
		event: {
			event_id: newId(),
			timestamp,
			agent_id: 'ada',
			run_id: run,
			sequence,
			event_type: 'tick',
			payload: { sequence },
		},
		step: sequence,
	}
}

/** Writes until the signal aborts. */
function writers(engine: Engine, acknowledged: Acknowledged, signal: AbortSignal): Promise<void>[] {
	const commits = async (scope: string): Promise<void> => {
		for (let round = 1; !signal.aborted; round++) {
			const text = `${scope} ${round} `.repeat(1 + (round % 400))
			const ops = Array.from({ length: parts }, (_, n) => ({
				key: [scope, `part${n}`] as const,
				value: { round, text },
			}))
			await engine.store.commit(scope, [
				...ops,
				{ key: [scope, 'log', String(round)], value: { round } },
				{ key: [scope, 'log', String(round - 50)], value: undefined },
			])
			acknowledged.rounds.set(scope, round)
		}
	}
	const appends = async (run: string): Promise<void> => {
		for (let last = 0; !signal.aborted; last += 2) {
			await engine.log.append(run, last, [entry(run, last + 1), entry(run, last + 2)])
			acknowledged.runs.set(run, last + 2)
		}
	}
	const jobs = async (): Promise<void> => {
		for (let n = 0; !signal.aborted; n++) {
			await engine.queue.enqueue({ id: `job-${n}`, body: { n } })
			acknowledged.jobs.add(`job-${n}`)
		}
	}
	return [
		...Array.from({ length: scopes }, (_, n) => commits(`scope${n}`)),
		...Array.from({ length: 4 }, (_, n) => appends(`run${n}`)),
		jobs(),
	]
}

for (const copyApartFrom of [0, Number.POSITIVE_INFINITY]) {
	const copier = copyApartFrom === 0 ? 'another process' : 'the process itself'
	void t.test(`copies by ${copier} under load contain every acknowledged commit`, (t) => underLoad(t, copyApartFrom))
}

async function underLoad(t: Test, copyApartFrom: number): Promise<void> {
	const folder = testFolder(t)
	const warnings: unknown[] = []
	const log = {
		warn: (...args: unknown[]) => warnings.push(args),
		debug() {},
		error: (...args: unknown[]) => warnings.push(args),
	}
	await using engine = await openLmdb({ path: join(folder, 'data'), copyApartFrom, log: log as unknown as Logger })
	const acknowledged: Acknowledged = { rounds: new Map(), runs: new Map(), jobs: new Set() }
	const stop = new AbortController()
	const work = writers(engine, acknowledged, stop.signal)
	const copies: { path: string; before: Acknowledged; after: Acknowledged }[] = []
	for (let n = 0; n < 4; n++) {
		const path = join(folder, `copy${n}`)
		mkdirSync(path)
		// So that each copy has new data.
		const wanted = (acknowledged.rounds.get('scope0') ?? 0) + 5
		while ((acknowledged.rounds.get('scope0') ?? 0) < wanted) await new Promise((resolve) => setImmediate(resolve))
		const before = structuredClone(acknowledged)
		await engine.snapshots.take(path)
		copies.push({ path, before, after: structuredClone(acknowledged) })
	}
	stop.abort()
	await Promise.all(work)

	for (const { path, before, after } of copies) {
		const file = join(path, 'data.mdb')
		t.equal(checkFile(file, everything).damage, null)
		t.equal(statSync(file).mode & 0o777, 0o600)
		t.ok(statSync(file).size <= engine.snapshots.size(), 'no larger than estimated')
		await using copy = await openLmdb({ path })
		for (const [scope, round] of before.rounds) {
			const found = await Array.fromAsync(copy.store.list<{ round: number; text: string }>([scope]))
			const records = found.filter(({ key }) => key.length === 2).map(({ value }) => value)
			const at = records[0]?.round ?? 0
			t.ok(
				at >= round && at <= (after.rounds.get(scope) ?? 0) + 1,
				`${scope}: ${round} was acknowledged, the copy has ${at}`,
			)
			t.equal(records.length, parts)
			t.ok(
				records.every((record) => record.round === at && record.text === records[0]?.text),
				'no partial commit',
			)
			t.equal(found.length - parts, Math.min(at, 50), 'including the writes and deletions of the same commit')
		}
		for (const [run, last] of before.runs) {
			const { last: at, steps } = await copy.log.journal(run)
			t.ok(at >= last && at % 2 === 0, `${run}: ${last} was acknowledged, the copy has ${at}`)
			t.strictSame(
				steps,
				Array.from({ length: at }, (_, n) => n + 1),
			)
		}
		t.ok(copy.queue.waiting() >= before.jobs.size && copy.queue.waiting() <= after.jobs.size + 1)
		await copy.store.put(['later'], 1)
		t.equal(checkFile(file, everything).damage, null, 'the copy is sound after a write')
	}
	t.strictSame(warnings, [])
}

void t.test('a copy does not contain deleted data', async (t) => {
	const folder = testFolder(t)
	await using engine = await openLmdb({ path: join(folder, 'data') })
	const mark = 'a text that must be gone '
	for (let n = 0; n < 50; n++) await engine.store.put(['agent:x', String(n)], { text: mark.repeat(100) })
	for (let n = 0; n < 50; n++) await engine.store.delete(['agent:x', String(n)])
	const copy = join(folder, 'copy')
	mkdirSync(copy)
	await engine.snapshots.take(copy)
	t.ok(readFileSync(join(folder, 'data/data.mdb'), 'latin1').includes(mark), 'the file itself still has it')
	t.notOk(readFileSync(join(copy, 'data.mdb'), 'latin1').includes(mark))
})

void t.test('closing the engine waits for a copy in progress', async (t) => {
	const folder = testFolder(t)
	const engine = await openLmdb({ path: join(folder, 'data') })
	await engine.store.put(['a'], { text: 'x'.repeat(4 * 1024 * 1024) })
	mkdirSync(join(folder, 'copy'))
	const copied = engine.snapshots.take(join(folder, 'copy'))
	await engine[Symbol.asyncDispose]()
	await copied
	t.equal(checkFile(join(folder, 'copy/data.mdb'), everything).damage, null)
	await t.rejects(engine.snapshots.take(join(folder, 'copy')), { code: 'unavailable' })
})

void t.test('a copy into a nonempty folder, or of the in-memory store, is refused', async (t) => {
	const folder = testFolder(t)
	await using engine = await openLmdb({ path: join(folder, 'data') })
	await t.rejects(engine.snapshots.take(join(folder, 'data')), { code: 'unavailable', message: /not empty/ })
	await using memory = openMemory()
	await t.rejects(memory.snapshots.take(folder), { code: 'unavailable', message: /memory/ })
})

void t.test('if the other process fails, this process makes the copy', async (t) => {
	const folder = testFolder(t)
	const warnings: unknown[] = []
	const log = { warn: (...args: unknown[]) => warnings.push(args), debug() {} } as unknown as Logger
	await using engine = await openLmdb({ path: join(folder, 'data'), copyApartFrom: 0, log })
	await engine.store.put(['a'], 1)
	const copy = join(folder, 'copy')
	mkdirSync(copy)
	const copied = engine.snapshots.take(copy)
	mkdirSync(join(copy, 'data.mdb')) // makes the process that was just started fail
	await copied
	t.equal(warnings.length, 1)
	t.equal(checkFile(join(copy, 'data.mdb'), everything).damage, null)
})

void t.test('a copy by another process can be aborted', async (t) => {
	const folder = testFolder(t)
	await using engine = await openLmdb({ path: join(folder, 'data'), copyApartFrom: 0 })
	await engine.store.put(['a'], 1)
	const abort = new AbortController()
	mkdirSync(join(folder, 'copy'))
	const copied = engine.snapshots.take(join(folder, 'copy'), abort.signal)
	abort.abort()
	await t.rejects(copied, { name: 'AbortError' })
	mkdirSync(join(folder, 'again'))
	await engine.snapshots.take(join(folder, 'again'))
	t.equal(checkFile(join(folder, 'again/data.mdb'), everything).damage, null)
})
