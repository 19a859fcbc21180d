import fc from 'fast-check'
import t from 'tap'
import { openRun } from '../../../plugins/runs/run-log.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import { parseResultId, readResult, resultId, showResult } from '../../../plugins/runs/results.ts'
import { arbitraryText } from '../../support/arbitrary-text.ts'
import { openMemory } from '../../support/memory-engine.ts'

const uid = 'uid-of-ada'
const PIECE = 256 * 1024
const MI = 1024 * 1024

async function beginRun() {
	const engine = openMemory()
	const bus = openEventBus(engine.log, openLog({ level: 'silent', format: 'json' }))
	const log = await openRun(bus, { run_id: 'run-1', agent_id: 'ada' })
	return {
		async keep(call_id: string, text: string, limit = 1024) {
			const { content, size, change } = showResult(log, { uid, run_id: 'run-1', call_id }, text, limit)
			const step = { kind: 'tool' as const, call_id, ok: true, content, ...(size !== undefined && { size }) }
			await log.append([{ event_type: 'primitive.result', payload: {} }], step, change)
			return content
		},
		read: (call_id: string, offset: number, limit = 1000) =>
			readResult(engine.store, uid, resultId({ run_id: 'run-1', call_id }), { offset, limit }),
	}
}

void t.test('a result within the limit is unchanged and not stored separately', async (t) => {
	const run = await beginRun()
	t.equal(await run.keep('a', 'x'.repeat(1024)), 'x'.repeat(1024))
	t.equal(await run.read('a', 0), undefined)
})

void t.test('reading from the offset in the note returns the rest of the result', async (t) => {
	const run = await beginRun()
	const text = Array.from({ length: 100_000 }, (_, at) => `${at} `).join('')
	const content = await run.keep('a', text)
	const { result_id, offset } = JSON.parse(/\{.*\}/.exec(content)?.[0] ?? '') as { result_id: string; offset: number }
	t.equal(result_id, 'run-1:a')
	t.match(content, `… of ${text.length} characters`.slice(2))
	let read = content.slice(0, offset)
	for (let next: number | null = offset; next !== null;) {
		const part = await run.read('a', next, 99_999)
		t.equal(part?.total, text.length)
		read += part?.text ?? ''
		next = part?.next_offset ?? null
	}
	t.equal(read, text)
	t.ok(content.endsWith(text.slice(-256)))
})

void t.test('parts never end within a character', async (t) => {
	for (const shift of ['', 'x']) {
		const run = await beginRun()
		const text = shift + '😀'.repeat(PIECE)
		t.ok((await run.keep('a', text, 1025)).isWellFormed())
		for (const offset of [0, PIECE - 2, PIECE, 2 * PIECE - 2].map((at) => at + shift.length)) {
			for (const limit of [3, 4, 5, 1001, PIECE + 1]) {
				const part = await run.read('a', offset, limit)
				t.ok(part && part.text.length >= Math.min(limit - 1, text.length - offset))
				t.equal(part?.text, text.slice(offset, offset + (part?.text.length ?? 0)))
				t.ok(part?.text.isWellFormed())
			}
		}
	}
})

void t.test('any text can be read completely, in steps of any size', async () => {
	await fc.assert(
		fc.asyncProperty(
			arbitraryText({ minLength: 1100, maxLength: 1500 }),
			fc.integer({ min: 1, max: 600 }),
			async (text, limit) => {
				const run = await beginRun()
				await run.keep('a', text)
				let read = ''
				for (let next: number | null = 0; next !== null;) {
					const part = await run.read('a', next, limit)
					if (!part) throw new Error('nothing is stored')
					read += part.text
					next = part.next_offset
				}
				if (read !== text.toWellFormed()) throw new Error('the text changed')
			},
		),
		{ numRuns: 10 },
	)
})

void t.test('ids of calls can contain any characters', async (t) => {
	for (const call_id of ['a:b', '', 'x\0y', 'ö'.repeat(500), '../..', `\ud800`]) {
		const run = await beginRun()
		await run.keep(call_id, 'x'.repeat(2000))
		t.equal((await run.read(call_id, 0, 5000))?.text.length, 2000, JSON.stringify(call_id))
		const parsed = parseResultId(resultId({ run_id: 'run-1', call_id }))
		t.equal(parsed?.run_id, 'run-1')
		t.equal(parsed?.isOf(call_id), true)
		t.equal(parsed?.isOf('other'), false)
	}
	for (const id of ['', ':', 'run-1', 'run-1:', ':a', '::', 'a:b:c', 'a\0:b', 'a:b\0', 'a:\ud800'])
		t.equal(parseResultId(id), undefined, id)
})

void t.test('results have a limit each and per run, which the note states', async (t) => {
	const run = await beginRun()
	const first = await run.keep('0', `${'x'.repeat(9 * MI)}end`)
	t.match(first, `of ${9 * MI + 3} characters are omitted here; the first ${8 * MI} are stored; read on with`)
	t.ok(first.endsWith('end'))
	t.equal((await run.read('0', 8 * MI - 10))?.text.length, 10)
	for (let at = 1; at < 8; at++) t.match(await run.keep(String(at), 'x'.repeat(8 * MI)), 'omitted here; read on with')
	const late = await run.keep('late', 'x'.repeat(10_000))
	t.match(late, 'are not stored, since the results of this run are too long already; ask for less at a time')
	t.equal(await run.read('late', 0), undefined)
})

void t.test('results of concurrent calls do not exceed the limit of the run', async (t) => {
	const run = await beginRun()
	const ids = Array.from({ length: 10 }, (_, at) => String(at))
	const texts = await Promise.all(ids.map((id) => run.keep(id, 'x'.repeat(8 * MI))))
	t.equal(texts.filter((text) => text.includes('are not stored')).length, 2)
	t.equal((await run.read('7', 8 * MI - 1))?.text, 'x')
	t.equal(await run.read('8', 0), undefined)
})
