/** Version 0.1.0 wrote the record of a run after its log. The gateway repairs a home in which a crash happened in between. */
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { RunRecord } from '../../../plugins/runs/contract.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { testFolder } from '../../support/folder.ts'
import { gatewayFor, startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

interface Before {
	home: string
	run: RunRecord
}

/** A home whose only run has the event `event`, with the record and the queue as they were before it. */
async function homeBehind(t: Test, prompt: string, event: string): Promise<Before> {
	const home = testFolder(t)
	const gateway = await startGateway({ home })
	const stream = await openStream(gateway.url)
	await gateway.request('POST', '/v1/agents', { body: { name: 'a' } })
	const { run_id } = (await gateway.request('POST', '/v1/agents/a/runs', { body: { prompt } })).body
	await stream.waitFor(event)
	stream.close()
	await gateway.stop()

	await using engine = await openLmdb({ path: join(home, 'data') })
	const index = await engine.store.get<{ uid: string }>(keys.index(run_id))
	const uid = index?.value.uid ?? ''
	const run = (await engine.store.get<RunRecord>(keys.run(uid, run_id)))!.value
	const { waits_for: _, ...rest } = run
	const behind: RunRecord = { ...rest, status: 'started', ended_at: null, answer: null, question: null, active_ms: 0 }
	await engine.store.put(keys.run(uid, run_id), { ...behind, usage: { input_tokens: 0, output_tokens: 0 } })
	await engine.store.put(keys.queue(uid, run.conversation), { runs: [run_id] })
	return { home, run }
}

async function eventsOf(gateway: TestGateway, run_id: string): Promise<string[]> {
	const { body } = await gateway.request('GET', `/v1/audit?run_id=${run_id}`)
	return body.events.map(({ event_type }: { event_type: string }) => event_type)
}

void t.test('the record of an ended run is completed', async (t) => {
	const { home, run } = await homeBehind(t, 'hello', 'run.completed')
	const gateway = await gatewayFor(t, { home })
	const read = async () => (await gateway.request('GET', `/v1/runs/${run.run_id}`)).body
	const found = await eventually(read, ({ status }) => status === 'completed')
	t.match(found, { answer: run.answer, usage: run.usage })
	t.equal((await eventsOf(gateway, run.run_id)).filter((type) => type === 'run.completed').length, 1)
	const next = await gateway.request('POST', '/v1/agents/a/runs', { body: { prompt: 'again' } })
	await eventually(
		async () => (await gateway.request('GET', `/v1/runs/${next.body.run_id}`)).body.status,
		(status) => status === 'completed',
	)
})

void t.test('an ended run that is cancelled before its record is repaired stays completed', async (t) => {
	const { home, run } = await homeBehind(t, 'hello', 'run.completed')
	const gateway = await gatewayFor(t, { home })
	await gateway.request('POST', `/v1/runs/${run.run_id}/cancel`)
	const { body } = await gateway.request('GET', `/v1/runs/${run.run_id}`)
	t.match(body, { status: 'completed', answer: run.answer })
	t.notOk((await eventsOf(gateway, run.run_id)).includes('run.stopped'))
})

void t.test('a paused run keeps its question and continues', async (t) => {
	const { home, run } = await homeBehind(t, '/tool ask {"question": "Which?"}', 'run.paused')
	const gateway = await gatewayFor(t, { home })
	const read = async () => (await gateway.request('GET', `/v1/runs/${run.run_id}`)).body
	const found = await eventually(read, ({ status }) => status === 'paused')
	t.match(found, { question: { question: 'Which?', question_id: run.question?.question_id }, usage: run.usage })
	await gateway.request('POST', `/v1/agents/a/ask-responses/${run.question?.question_id}`, { body: { answer: 'This' } })
	const ended = await eventually(read, ({ status }) => status === 'completed')
	t.match(ended.answer, 'This')
})
