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
import { testFolder } from './folders.ts'
import type { Said } from './writer-child.ts'

const kills = Number(process.env['STORE_KILLS'] ?? 3)
const path = join(testFolder(t), 'data')
const everything = { wholeBytes: Number.POSITIVE_INFINITY, withinMs: Number.POSITIVE_INFINITY }

/** What was acknowledged so far, by all processes. */
const rounds = new Map<string, number>()
const revs = new Set<string>()
const runs = new Map<string, number>()
const events = new Map<string, string>()
const jobs = new Map<string, number>()

void t.test(`loses nothing that was acknowledged in ${kills} kills`, async (t) => {
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

/** Kills the child once it has said so many lines, and takes note of all that it said before it died. */
async function runAndKill(after: number): Promise<number> {
	const child = spawn(process.execPath, [fileURLToPath(new URL('./writer-child.ts', import.meta.url)), path], {
		stdio: ['ignore', 'pipe', 'inherit'],
	})
	const exit = once(child, 'exit')
	let count = 0
	try {
		for await (const line of createInterface({ input: child.stdout })) {
			note(JSON.parse(line) as Said)
			if (++count === after) child.kill('SIGKILL')
		}
	} finally {
		child.kill('SIGKILL')
	}
	const [, signal] = (await exit) as [number | null, string | null]
	if (signal !== 'SIGKILL') throw new Error('the child ended by itself')
	return count
}

function note(said: Said): void {
	switch (said.what) {
		case 'ready':
			return
		case 'commit':
			rounds.set(said.scope, said.round)
			for (const rev of said.revs) {
				if (revs.has(rev)) throw new Error(`the revision ${rev} was given out twice`)
				revs.add(rev)
			}
			return
		case 'append':
			runs.set(said.run, said.last)
			for (const [i, cursor] of said.cursors.entries()) {
				if (events.has(cursor)) throw new Error(`the cursor ${cursor} was given out twice`)
				events.set(cursor, `${said.run}-${said.last - 2 + i}`)
			}
			return
		case 'enqueue':
			if (!jobs.has(said.id)) jobs.set(said.id, 0)
			return
		case 'claim': {
			const before = jobs.get(said.id) ?? 0
			if (said.attempt <= before) throw new Error(`the attempt ${said.attempt} of ${said.id} came twice`)
			jobs.set(said.id, said.attempt)
			return
		}
		case 'ack':
			jobs.set(said.id, Number.POSITIVE_INFINITY)
	}
}

/** The last commit of each scope is there as a whole, or a later one that could not be acknowledged any more. */
async function checkCommits(t: Test, { store }: Engine): Promise<void> {
	for (const [scope, round] of rounds) {
		const entries = await Array.fromAsync(store.list<number>([scope]))
		const [first] = entries
		t.equal(entries.length, 5)
		t.ok(
			first && (first.value === round || first.value === round + 1),
			`${scope} stands at ${first?.value}, acknowledged was ${round}`,
		)
		t.ok(
			entries.every(({ value }) => value === first?.value),
			`${scope} is whole`,
		)
		rounds.set(scope, first?.value ?? 0)
	}
}

/** Every run's sequences are there without gap or repeat, in the log, the journal and the record, at the cursors given out. */
async function checkRuns(t: Test, { log, store }: Engine): Promise<void> {
	const read = new Map<string, string>()
	for (const [run, last] of runs) {
		const journal = await log.journal(run)
		t.ok(
			journal.last === last || journal.last === last + 3,
			`${run} stands at ${journal.last}, acknowledged was ${last}`,
		)
		t.equal((await store.get(['runs', run]))?.value, journal.last, `the record of ${run} is where its log is`)
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
		'each event stands at its cursor',
	)
}

/** Every job is there that was enqueued and not acknowledged, and its attempts go on. */
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
		// A job may be gone whose acknowledgement was on its way: it had been claimed, then.
		return lease ? lease.attempt <= attempt || lease.job.body['id'] !== id : attempt === 0
	})
	t.strictSame(wrong, [], `${waiting} jobs wait`)
	for (const [id, lease] of found) {
		await lease.ack()
		jobs.set(id, Number.POSITIVE_INFINITY)
	}
}
