/** Shares of agents in the worker pool, over HTTP. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { startHeldModel } from '../support/held-model.ts'
import type { HeldModel } from '../support/held-model.ts'
import { refused } from '../support/refused.ts'
import { follow } from '../support/runs.ts'
import { eventually } from '../support/wait.ts'

/** Two runs at the same time, and a reserve of one. */
async function start(t: Test, more = ''): Promise<{ gateway: TestGateway; model: HeldModel }> {
	const model = await startHeldModel()
	const gateway = await startGateway({
		config: `server:
  shutdown_grace_s: 0
workers: {threads: 1, runs_per_thread: 2}
default_provider: held
providers:
  held:
    kind: openai
    base_url: ${model.url}
    api_key: sk-held
    model: held-1
plugins: {openai-api: true}
${more}`,
	})
	t.teardown(async () => {
		await gateway.stop()
		await model.stop()
	})
	return { gateway, model }
}

/** Starts a run in a conversation of its own; settles with the status when it has ended. */
async function ask(gateway: TestGateway, agent: string, content: string): Promise<{ status: number; body: unknown }> {
	return gateway.request('POST', '/v1/chat/completions', {
		body: { model: agent, messages: [{ role: 'user', content }] },
	})
}

const runsOf = async (gateway: TestGateway, agent: string): Promise<number> =>
	(await gateway.request('GET', `/v1/agents/${agent}/runs`)).body.length

/**
 * Settles once `count` runs wait for a place in the worker pool. A run is listed as soon as it is stored, and waits for its
 * place once its job is claimed: either may come first.
 */
async function waitForPlace(gateway: TestGateway, count: number): Promise<void> {
	const line = `\nsvc_worker_pool_runs{state="waiting"} ${count}\n`
	await eventually(async () => (await gateway.request<string>('GET', '/metrics')).body.includes(line))
}

void t.test('the runs of one agent hold up no other, and agents take turns', async (t) => {
	const { gateway, model } = await start(t)
	for (const name of ['ada', 'bob', 'cleo']) await follow(t, gateway, name)
	const flood: Promise<unknown>[] = []
	for (const prompt of ['a1', 'a2', 'a3', 'a4']) {
		flood.push(ask(gateway, 'ada', prompt))
		await eventually(async () => (await runsOf(gateway, 'ada')) === flood.length)
	}
	await Promise.all([model.called('a1'), model.called('a2')])
	const bob = ask(gateway, 'bob', 'b1')
	;(await model.called('b1')).answer('Done.')
	t.equal((await bob).status, 200)
	const prompts = (): string[] => model.calls.map(({ prompt }) => prompt)
	t.strictSame(new Set(prompts()), new Set(['a1', 'a2', 'b1']), 'the runs of ada still wait')

	const second = ask(gateway, 'bob', 'b2')
	await model.called('b2')
	const cleo = ask(gateway, 'cleo', 'c1')
	await waitForPlace(gateway, 3)
	for (const prompt of ['a1', 'a2', 'a3', 'a4', 'b2', 'c1']) (await model.called(prompt)).answer('Done.')
	await Promise.all([...flood, second, cleo])
	t.ok(prompts().indexOf('c1') < prompts().indexOf('a4'), 'cleo goes before the last of ada')
})

void t.test('a run that waits for a place survives a reload, and can be stopped', async (t) => {
	const { gateway, model } = await start(t)
	await follow(t, gateway, 'ada')
	const prompts = ['a1', 'a2', 'a3', 'a4']
	const flood: Promise<{ status: number }>[] = []
	for (const prompt of prompts) {
		flood.push(ask(gateway, 'ada', prompt))
		await eventually(async () => (await runsOf(gateway, 'ada')) === flood.length)
	}
	await Promise.all([model.called('a1'), model.called('a2')])
	const runs = (await gateway.request('GET', '/v1/agents/ada/runs')).body as { run_id: string; prompt: string }[]
	const last = runs.find(({ prompt }) => prompt.includes('a4'))?.run_id ?? ''
	const { status } = await gateway.request('POST', `/v1/runs/${last}/cancel`, { body: {} })
	t.equal(status, 200)
	const generation = async (): Promise<number> => (await gateway.request('GET', '/v1/health')).body.generation
	const before = await generation()
	const file = join(gateway.home, 'config/gateway.yaml')
	writeFileSync(file, `${readFileSync(file, 'utf8')}\nruns: {max_waiting: 50}\n`)
	await eventually(async () => (await generation()) > before)
	for (const prompt of ['a1', 'a2', 'a3']) (await model.called(prompt)).answer('Done.')
	t.strictSame(
		(await Promise.all(flood.slice(0, 3))).map((one) => one.status),
		[200, 200, 200],
	)
	await flood[3]
	t.strictSame(model.calls.map(({ prompt }) => prompt).toSorted(), ['a1', 'a2', 'a3'], 'each once')
})

void t.test('only so many runs of one agent wait, and of all agents', async (t) => {
	const { gateway, model } = await start(t, 'runs: {max_waiting_per_agent: 2, max_waiting_total: 3}\n')
	for (const name of ['ada', 'bob', 'cleo']) await follow(t, gateway, name)
	const asked: Promise<unknown>[] = []
	const wait = async (name: string, ...prompts: string[]): Promise<void> => {
		for (const prompt of prompts) {
			const before = await runsOf(gateway, name)
			asked.push(ask(gateway, name, prompt))
			await eventually(async () => (await runsOf(gateway, name)) > before)
		}
	}
	await wait('ada', 'a1', 'a2')
	await Promise.all([model.called('a1'), model.called('a2')])
	await wait('ada', 'a3', 'a4')
	await waitForPlace(gateway, 2)
	const startRun = (name: string) => gateway.request('POST', `/v1/agents/${name}/runs`, { body: { prompt: 'more' } })
	refused(t, await startRun('ada'), {
		status: 429,
		code: 'queue_full',
		says: /2 runs of this agent wait already.*runs\.max_waiting_per_agent/,
	})
	await wait('bob', 'b1')
	await model.called('b1')
	await wait('bob', 'b2')
	await waitForPlace(gateway, 3)
	refused(t, await startRun('cleo'), {
		status: 429,
		code: 'queue_full',
		says: /3 runs of all agents wait for a thread already.*runs\.max_waiting_total/,
	})
	for (const prompt of ['a1', 'a2', 'b1', 'a3', 'a4', 'b2']) (await model.called(prompt)).answer('Done.')
	await Promise.all(asked)
	t.equal((await startRun('cleo')).status, 200, 'there is room again')
})

void t.test('only so many agents can be created', async (t) => {
	const { gateway } = await start(t, 'agents: {max_agents: 2}\n')
	const create = (name: string) => gateway.request('POST', '/v1/agents', { body: { name } })
	t.strictSame([(await create('ada')).status, (await create('bob')).status], [201, 201])
	refused(t, await create('cleo'), { status: 409, code: 'conflict', says: /2 agents already.*agents\.max_agents/ })
	refused(t, await create('bob'), { status: 409, code: 'already_exists', says: /bob/ })
	t.equal((await gateway.request('DELETE', '/v1/agents/ada')).status < 300, true)
	t.equal((await create('cleo')).status, 201)
})
