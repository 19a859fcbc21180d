/** Pruning a long log keeps a limited part of it in memory. */
import t from 'tap'
import type { Client } from '../../../plugins/cluster/nats/client.ts'
import { pruneLog } from '../../../plugins/cluster/nats/log-prune.ts'
import type { LogRecord } from '../../../plugins/cluster/nats/log-record.ts'
import { namesOf } from '../../../plugins/cluster/nats/streams.ts'

const RECORDS = 25_000
const timestamp = '2026-01-01T00:00:00.000Z'

void t.test('a long log is pruned in parts', async (t) => {
	const purges: number[] = []
	const api = async (name: string, body: { seq: number }) => {
		t.equal(name, 'STREAM.PURGE.svc_events')
		purges.push(body.seq)
		return {}
	}
	const source = {
		async *forwards() {
			for (let seq = 1; seq <= RECORDS; seq++)
				yield { seq, run: `run-${seq}`, entries: [{ event: { timestamp } }] } as unknown as LogRecord
		},
		async *backwards() {},
	}
	const sizes: number[] = []
	const removed = await pruneLog({ api } as unknown as Client, namesOf('svc'), source, {
		before: '2026-02-01T00:00:00.000Z',
		keep: async () => false,
		newest: RECORDS + 1,
		onRemoved: (seqs, runs) => sizes.push(seqs.size, runs.size),
	})
	t.equal(removed, RECORDS)
	t.ok(Math.max(...sizes) <= 10_000, `${Math.max(...sizes)} at once`)
	t.strictSame(purges, [10_001, 20_001, RECORDS + 1])
})
