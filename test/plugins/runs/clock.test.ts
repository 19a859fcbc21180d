/** Changes of the machine's clock during runs. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeHome, startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { startModelServer } from '../../support/model-server.ts'
import { spawnGateway } from '../../support/process.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const HOUR_MS = 3_600_000

void t.test('new turns follow earlier ones, although the clock was ahead before the last start', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	for (const at of [1, 2, 3]) model.on(`prompt ${at}`, `answer ${at}`)
	const home = makeHome({ config: providersAt({ mock: model.url }) }, t)
	const ask = async (prompts: string[], env: NodeJS.ProcessEnv): Promise<string[]> => {
		const gateway = await spawnGateway(home, env)
		const call = async <T>(path: string, body?: object): Promise<T> => {
			const reply = await fetch(`${gateway.url}${path}`, {
				...(body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
			})
			return (await reply.json()) as T
		}
		try {
			await call('/v1/agents', { name: 'ada' })
			for (const prompt of prompts) {
				const { run_id } = await call<{ run_id: string }>('/v1/agents/ada/runs', { prompt })
				await eventually(async () => (await call<{ status: string }>(`/v1/runs/${run_id}`)).status === 'completed')
			}
			return (await call<{ content: string }[]>('/v1/agents/ada/history')).map(({ content }) => content)
		} finally {
			await gateway.end()
		}
	}
	await ask(['prompt 1'], {
		NODE_OPTIONS: `--import=${fileURLToPath(new URL('../../homes/clock.mjs', import.meta.url))}`,
		SVC_TEST_NOW: new Date(Date.now() + 2 * HOUR_MS).toISOString(),
	})
	const history = await ask(['prompt 2', 'prompt 3'], {})
	t.strictSame(history, ['prompt 1', 'answer 1', 'prompt 2', 'answer 2', 'prompt 3', 'answer 3'])
	const [request] = model.requests('prompt 3')
	const answers = request?.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)
	t.strictSame(answers, ['answer 1', 'answer 2'])
})

void t.test('a change of the clock does not change the wall time of a run', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const gateway = await startGateway({
		config: `${providersAt({ held: model.url })}runs: {limits: {wall_time_s: 120}}\n`,
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const realNow = Date.now
	t.teardown(() => (Date.now = realNow))
	// Only a little above the limit: ids never decrease, so those of this process stay ahead for as long.
	for (const minutes of [3, -3]) {
		const prompt = `The clock moves by ${minutes} minutes.`
		const run_id = await ada.start(prompt)
		const call = await model.called(prompt)
		Date.now = () => realNow() + minutes * 60_000
		call.callTool('ask', '{"question":"Which one?"}')
		const { question_id } = (await ada.waitFor(run_id, 'question.asked')).payload
		await ada.waitFor(run_id, 'run.paused')
		await gateway.request('POST', `/v1/agents/ada/ask-responses/${question_id}`, { body: { answer: 'this' } })
		void model.called(prompt, 2).then((last) => last.answer('done'))
		t.match(await ada.ended(run_id), { event_type: 'run.completed' }, `${minutes} minutes`)
		Date.now = realNow
	}
})
