/**
 * A process that the test kills. It writes to the folder of its argument with concurrent commits, appends and jobs, and
 * prints each acknowledgement as a line of JSON. It continues from the state of the folder, so that several processes can
 * run one after another.
 */
import { writeSync } from 'node:fs'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { entry } from '../../contracts/store/log.ts'

const { store, log, queue } = await openLmdb({ path: process.argv[2] as string })
const print = (line: Acknowledgement): void => void writeSync(1, `${JSON.stringify(line)}\n`)

export type Acknowledgement =
	| { what: 'ready' }
	/** All five keys of a scope have the value `round`. */
	| { what: 'commit'; scope: string; round: number; revs: string[] }
	| { what: 'append'; run: string; last: number; cursors: string[] }
	| { what: 'enqueue'; id: string }
	| { what: 'claim'; id: string; attempt: number }
	| { what: 'ack'; id: string }

async function commitEndlessly(scope: string): Promise<void> {
	const found = await store.get<number>([scope, 'k0'])
	for (let round = (found?.value ?? 0) + 1; ; round++) {
		const ops = Array.from({ length: 5 }, (_, i) => ({ key: [scope, `k${i}`] as const, value: round }))
		print({ what: 'commit', scope, round, revs: await store.commit(scope, ops) })
	}
}

async function appendEndlessly(run: string): Promise<void> {
	for (let { last } = await log.journal(run); ;) {
		const next = [1, 2, 3].map((n) => ({ ...entry(run, last + n), step: last + n }))
		// The record has the last sequence of the log, written in the same transaction.
		const value = last + 3
		const cursors = await log.append(run, last, next, {
			scope: 'runs',
			ops: async () => [{ key: ['runs', run], value }],
		})
		last = value
		print({ what: 'append', run, last, cursors })
	}
}

async function enqueueEndlessly(writer: number): Promise<void> {
	for (let n = 0; ; n++) {
		const id = `${process.pid}-${writer}-${n}`
		await queue.enqueue({ id, body: { id } })
		print({ what: 'enqueue', id })
	}
}

/** Acknowledges half of the jobs, and releases the others. */
async function claimEndlessly(): Promise<void> {
	let n = 0
	for await (const lease of queue.claim(() => 8, new AbortController().signal)) {
		// The number of the attempt is durable once a later write is.
		await store.put(['claims', 'last'], lease.job.id)
		print({ what: 'claim', id: lease.job.id, attempt: lease.attempt })
		if (++n % 8 > 3) await lease.ack().then(() => print({ what: 'ack', id: lease.job.id }))
		else await lease.release()
	}
}

print({ what: 'ready' })
await Promise.all([
	...['c0', 'c1', 'c2', 'c3'].map(commitEndlessly),
	...['r0', 'r1', 'r2'].map(appendEndlessly),
	...[0, 1].map(enqueueEndlessly),
	claimEndlessly(),
])
