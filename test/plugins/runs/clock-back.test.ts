/** The clock of the machine was ahead, and is right again when the gateway starts the next time. */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeHome } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { spawnGateway } from '../../support/process.ts'
import { eventually } from '../../support/wait.ts'

const HOUR_MS = 3_600_000

void t.test('a conversation goes on after its earlier turns', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	for (const at of [1, 2, 3]) model.on(`prompt ${at}`, `answer ${at}`)
	const home = makeHome({
		config: `providers:\n  mock:\n    kind: openai\n    base_url: ${model.url}\n    api_key: test\n    model: m\n`,
	})
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
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
	const said = request?.messages.flatMap(({ role, content }) => (role === 'assistant' ? content : []))
	t.strictSame(said, ['answer 1', 'answer 2'])
})
