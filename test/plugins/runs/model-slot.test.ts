/** Runs that wait for a slot of their provider, across restarts of the gateway. */
import t from 'tap'
import { slotsOf } from '../../../plugins/models/slots.ts'
import { endedRun } from '../../support/ended-run.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'
import { eventually } from '../../support/wait.ts'

void t.test('restarts while a run waits do not count as restarts in its step', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const { url, requests } = models.add(() => chatCompletion({ content: 'My turn.' }))
	const provider = { kind: 'openai' as const, base_url: url, model: 'm', max_concurrent_calls: 1 }
	const home = makeHome(
		{ config: `server: {shutdown_grace_s: 0}\nproviders: {crowded: ${JSON.stringify(provider)}}\n` },
		t,
	)
	// Slots are shared in the process, so this call keeps the run waiting.
	const slot = slotsOf(new Map([['crowded', provider]]))
	const release = await slot('crowded', 'another', new AbortController().signal, () => {})

	let gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { body } = await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'Hello.' } })
	const events = async (): Promise<string[]> => {
		const page = await gateway.request('GET', `/v1/audit?run_id=${body.run_id}&limit=100`)
		return page.body.events.map(({ event_type }: { event_type: string }) => event_type)
	}
	for (let n = 1; n <= 6; n++) {
		await eventually(events, (types) => types.filter((type) => type === 'model.queued').length === n)
		t.equal(requests.length, 0)
		if (n === 6) break
		await gateway.stop()
		gateway = await startGateway({ home })
	}
	release()
	const ended = await endedRun(gateway.url, body.run_id)
	t.match(ended, { status: 'completed', answer: 'My turn.', error: null })
})
