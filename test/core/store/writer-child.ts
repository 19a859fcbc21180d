/**
 * A process to be killed: writes to the folder of its argument, in many ways at once, and says on standard output what
 * was acknowledged, one JSON line each. What it writes can be told from where the folder stands, so that the next one
 * goes on.
 */
import { writeSync } from 'node:fs'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { entry } from '../../contracts/store/log.ts'

const { store, log, queue } = await openLmdb({ path: process.argv[2] as string })
const say = (line: Said): void => void writeSync(1, `${JSON.stringify(line)}\n`)

export type Said =
	| { what: 'ready' }
	/** All five keys of a scope have the value `round`. */
	| { what: 'commit'; scope: string; round: number; revs: string[] }
	| { what: 'append'; run: string; last: number; cursors: string[] }
	| { what: 'enqueue'; id: string }
	| { what: 'claim'; id: string; attempt: number }
	| { what: 'ack'; id: string }

async function commitForEver(scope: string): Promise<void> {
	const found = await store.get<number>([scope, 'k0'])
	for (let round = (found?.value ?? 0) + 1; ; round++) {
		const ops = Array.from({ length: 5 }, (_, i) => ({ key: [scope, `k${i}`] as const, value: round }))
		say({ what: 'commit', scope, round, revs: await store.commit(scope, ops) })
	}
}

async function appendForEver(run: string): Promise<void> {
	for (let { last } = await log.journal(run); ;) {
		const next = [1, 2, 3].map((n) => ({ ...entry(run, last + n), step: last + n }))
		// The record says what the log says, in the same transaction.
		const value = last + 3
		const cursors = await log.append(run, last, next, {
			scope: 'runs',
			ops: async () => [{ key: ['runs', run], value }],
		})
		last = value
		say({ what: 'append', run, last, cursors })
	}
}

async function enqueueForEver(writer: number): Promise<void> {
	for (let n = 0; ; n++) {
		const id = `${process.pid}-${writer}-${n}`
		await queue.enqueue({ id, body: { id } })
		say({ what: 'enqueue', id })
	}
}

/** Acknowledges every second job, and keeps a few others. */
async function claimForEver(): Promise<void> {
	let n = 0
	for await (const lease of queue.claim(() => 8, new AbortController().signal)) {
		// The count of an attempt is durable once anything is that its holder wrote.
		await store.put(['claims', 'last'], lease.job.id)
		say({ what: 'claim', id: lease.job.id, attempt: lease.attempt })
		if (++n % 8 > 3) await lease.ack().then(() => say({ what: 'ack', id: lease.job.id }))
		else await lease.release()
	}
}

say({ what: 'ready' })
await Promise.all([
	...['c0', 'c1', 'c2', 'c3'].map(commitForEver),
	...['r0', 'r1', 'r2'].map(appendForEver),
	...[0, 1].map(enqueueForEver),
	claimForEver(),
])
