import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { checkFile } from '../../../core/backup/check-file.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { Engine, Lease } from '../../../core/store/ports.ts'
import { testFolder } from '../../support/folder.ts'
import type { Acknowledgement } from './writer-child.ts'

const kills = Number(process.env['STORE_KILLS'] ?? 3)
const path = join(testFolder(t), 'data')
const everything = { wholeBytes: Number.POSITIVE_INFINITY, withinMs: Number.POSITIVE_INFINITY }

/** The acknowledgements of all processes so far. */
const rounds = new Map<string, number>()
const revs = new Set<string>()
const runs = new Map<string, number>()
const events = new Map<string, string>()
const jobs = new Map<string, number>()

void t.test(`loses no acknowledged write in ${kills} kills`, async (t) => {
	for (let kill = 0; kill < kills; kill++) {
		const lines = await runAndKill(Math.ceil(Math.random() * 300))
		t.ok(lines > 0, `kill ${kill} after ${lines} acknowledgements`)
		t.equal(checkFile(join(path, 'data.mdb'), everything).damage, null)
		await using engine = await openLmdb({ path })
		await checkCommits(t, engine)
		await checkRuns(t, engine)
		await checkJobs(t, engine)
	}
})

/** Kills the child after this number of lines. Records every acknowledgement before its end, and returns their number. */
async function runAndKill(after: number): Promise<number> {
	const child = spawn(process.execPath, [fileURLToPath(new URL('./writer-child.ts', import.meta.url)), path], {
		stdio: ['ignore', 'pipe', 'inherit'],
	})
	const exit = once(child, 'exit')
	let count = 0
	try {
		for await (const line of createInterface({ input: child.stdout })) {
			record(JSON.parse(line) as Acknowledgement)
			if (++count === after) child.kill('SIGKILL')
		}
	} finally {
		child.kill('SIGKILL')
	}
	const [, signal] = (await exit) as [number | null, string | null]
	if (signal !== 'SIGKILL') throw new Error('the child ended by itself')
	return count
}

function record(acknowledged: Acknowledgement): void {
	switch (acknowledged.what) {
		case 'ready':
			return
		case 'commit':
			rounds.set(acknowledged.scope, acknowledged.round)
			for (const rev of acknowledged.revs) {
				if (revs.has(rev)) throw new Error(`the revision ${rev} was used twice`)
				revs.add(rev)
			}
			return
		case 'append':
			runs.set(acknowledged.run, acknowledged.last)
			for (const [i, cursor] of acknowledged.cursors.entries()) {
				if (events.has(cursor)) throw new Error(`the cursor ${cursor} was used twice`)
				events.set(cursor, `${acknowledged.run}-${acknowledged.last - 2 + i}`)
			}
			return
		case 'enqueue':
			if (!jobs.has(acknowledged.id)) jobs.set(acknowledged.id, 0)
			return
		case 'claim': {
			const before = jobs.get(acknowledged.id) ?? 0
			if (acknowledged.attempt <= before)
				throw new Error(`the attempt ${acknowledged.attempt} of ${acknowledged.id} occurred twice`)
			jobs.set(acknowledged.id, acknowledged.attempt)
			return
		}
		case 'ack':
			jobs.set(acknowledged.id, Number.POSITIVE_INFINITY)
	}
}

/** Each scope has its last acknowledged commit completely, or a later one that was not acknowledged before the kill. */
async function checkCommits(t: Test, { store }: Engine): Promise<void> {
	for (const [scope, round] of rounds) {
		const entries = await Array.fromAsync(store.list<number>([scope]))
		const [first] = entries
		t.equal(entries.length, 5)
		t.ok(
			first && (first.value === round || first.value === round + 1),
			`${scope} is at ${first?.value}, ${round} was acknowledged`,
		)
		t.ok(
			entries.every(({ value }) => value === first?.value),
			`${scope} has no partial commit`,
		)
		rounds.set(scope, first?.value ?? 0)
	}
}

/** The log, the journal and the record of each run have its sequences without a gap or repetition, at the acknowledged cursors. */
async function checkRuns(t: Test, { log, store }: Engine): Promise<void> {
	const read = new Map<string, string>()
	for (const [run, last] of runs) {
		const journal = await log.journal(run)
		t.ok(journal.last === last || journal.last === last + 3, `${run} is at ${journal.last}, ${last} was acknowledged`)
		t.equal((await store.get(['runs', run]))?.value, journal.last, `the record of ${run} matches its log`)
		const expected = Array.from({ length: journal.last }, (_, i) => i + 1)
		t.strictSame(journal.steps, expected)
		const sequences: number[] = []
		let after: string | null = null
		do {
			const page: Awaited<ReturnType<typeof log.read>> = await log.read({ run_id: run }, after, 500)
			for (const { cursor, event } of page.entries) {
				sequences.push(event.sequence)
				read.set(cursor, `${run}-${event.sequence}`)
			}
			after = page.next
		} while (after !== null)
		t.strictSame(sequences, expected)
		runs.set(run, journal.last)
	}
	t.ok(
		[...events].every(([cursor, event]) => read.get(cursor) === event),
		'each event is at its cursor',
	)
}

/** Every enqueued job that was not acknowledged still waits, and its attempts continue. */
async function checkJobs(t: Test, { queue }: Engine): Promise<void> {
	const waiting = queue.waiting()
	const found = new Map<string, Lease>()
	const end = new AbortController()
	if (waiting === 0) end.abort()
	for await (const lease of queue.claim(() => waiting, end.signal)) {
		found.set(lease.job.id, lease)
		if (found.size === waiting) end.abort()
	}
	const wrong = [...jobs].filter(([id, attempt]) => {
		const lease = found.get(id)
		if (attempt === Number.POSITIVE_INFINITY) return lease !== undefined
		// A claimed job may be missing, since its acknowledgement was possibly in transit.
		return lease ? lease.attempt <= attempt || lease.job.body['id'] !== id : attempt === 0
	})
	t.strictSame(wrong, [], `${waiting} jobs wait`)
	for (const [id, lease] of found) {
		await lease.ack()
		jobs.set(id, Number.POSITIVE_INFINITY)
	}
}
