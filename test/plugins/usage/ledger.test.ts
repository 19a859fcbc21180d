/** The ledger without a gateway: days, bounds and concurrent runs. */
import t from 'tap'
import { livenessKey } from '../../../core/store/agent-scope.ts'
import { change } from '../../../core/store/change.ts'
import type { ModelUsage } from '../../../core/protocol.ts'
import { costText } from '../../../plugins/shared/cost-text.ts'
import { nothing } from '../../../plugins/usage/counted.ts'
import { countOps, entriesOf, forgetDays, freeSlot, keepUsage, takeSlot } from '../../../plugins/usage/ledger.ts'
import { openMemory } from '../../support/memory-engine.ts'

const ada = { uid: 'uid-of-ada', name: 'ada' }
const days = { since: '2026-01-01', until: '2027-01-01' }
const call = (model: string, provider = 'p'): ModelUsage => ({
	provider,
	model,
	usage: { input_tokens: 2, output_tokens: 1, cost: 0.1 },
})

async function openLedger() {
	const { store } = openMemory()
	await store.put(livenessKey(ada.uid), true)
	return {
		store,
		count: (day: string, calls: ModelUsage[], slot = 0) =>
			change(store, `agent:${ada.uid}`, async () => ({
				ops: await countOps(store, ada, { day, slot, calls }),
				result: undefined,
			})),
	}
}

void t.test('old days are deleted, those of deleted agents too', async (t) => {
	const { store, count } = await openLedger()
	for (const day of ['2026-03-01', '2026-03-02', '2026-03-03']) await count(day, [call('m')])
	await keepUsage(store, ada, 'usage')
	const agents = async function* () {
		yield ada
	}
	await forgetDays(store, agents(), '2026-03-02', 'usage')
	const daysIn = async (entries: AsyncIterable<{ day: string }>) =>
		(await Array.fromAsync(entries)).map(({ day }) => day)
	t.strictSame(await daysIn(entriesOf(store, ada.uid, days)), ['2026-03-02', '2026-03-03'])
	t.strictSame(await daysIn(entriesOf(store, undefined, days)), ['2026-03-02', '2026-03-03'])
	t.strictSame(await daysIn(entriesOf(store, ada.uid, { since: '2026-03-02', until: '2026-03-03' })), ['2026-03-02'])
})

void t.test('a record has a bounded number of models, and adds up the others', async (t) => {
	const { store, count } = await openLedger()
	for (let at = 0; at < 100; at++) await count('2026-03-01', [call(`m${at}`), call(`n${at}`, 'other')])
	const rows = (await Array.fromAsync(entriesOf(store, ada.uid, days))).flatMap((entry) => entry.rows)
	t.equal(rows.length, 65)
	t.match(rows.at(-1), { provider: 'other', model: 'other', calls: 136, input_tokens: 272, cost: 13.6 })
})

void t.test('concurrent runs lose no counts', async (t) => {
	const { store, count } = await openLedger()
	const slots = Array.from({ length: 40 }, () => takeSlot(ada.uid))
	t.equal(new Set(slots).size, 16)
	await Promise.all(slots.map((slot) => count('2026-03-01', [call('m'), call('m')], slot)))
	for (const slot of slots) freeSlot(ada.uid, slot)
	t.equal(takeSlot(ada.uid), 0)
	freeSlot(ada.uid, 0)
	const entries = await Array.fromAsync(entriesOf(store, ada.uid, days))
	t.equal(
		entries.reduce((sum, { rows }) => sum + (rows[0]?.calls ?? 0), 0),
		80,
	)
})

void t.test('calls of a deleted agent are not counted, without an error', async (t) => {
	const { store, count } = await openLedger()
	await store.delete(livenessKey(ada.uid))
	await count('2026-03-01', [call('m')])
	t.strictSame(await Array.fromAsync(entriesOf(store, ada.uid, days)), [])
})

void t.test('a cost is written without an exponent', (t) => {
	t.strictSame([0, 7.5e-8, 0.1, 12, 100, 0.000000001].map(costText), [
		'0',
		'0.000000075',
		'0.1',
		'12',
		'100',
		'0.000000001',
	])
	t.equal(nothing().cost, null)
	t.end()
})
