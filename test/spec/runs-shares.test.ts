/** Shares of agents in the worker pool, over HTTP. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { deliver } from '../plugins/webhooks/sender.ts'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { Reply, TestGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import type { ManualModel } from '../support/manual-model.ts'
import { providersAt } from '../support/providers.ts'
import { assertError } from '../support/error-response.ts'
import { follow } from '../support/runs.ts'
import { eventually } from '../support/wait.ts'

/** A gateway that executes two runs at a time, with a reserve of one. */
async function start(t: Test, { runs = '', more = '' } = {}): Promise<{ gateway: TestGateway; model: ManualModel }> {
	const model = await startManualModel()
	const gateway = await startGateway({
		config: `server:
  shutdown_grace_s: 0
workers: {threads: 1, runs_per_thread: 2}
${providersAt({ held: model.url })}plugins: {openai-api: true}
runs: {${runs}}
${more}`,
	})
	t.teardown(async () => {
		await gateway.stop()
		await model.stop()
	})
	return { gateway, model }
}

/** Runs a prompt in a new conversation; settles when the run has ended. */
function complete(gateway: TestGateway, agent: string, content: string): Promise<{ status: number }> {
	return gateway.request('POST', '/v1/chat/completions', {
		body: { model: agent, messages: [{ role: 'user', content }] },
	})
}

/** Runs prompts in new conversations, in this order: starts the next run once the one before is listed. */
async function startInOrder(
	gateway: TestGateway,
	agent: string,
	...prompts: string[]
): Promise<Promise<{ status: number }>[]> {
	const count = async (): Promise<number> => (await gateway.request('GET', `/v1/agents/${agent}/runs`)).body.length
	const replies: Promise<{ status: number }>[] = []
	for (const prompt of prompts) {
		const before = await count()
		replies.push(complete(gateway, agent, prompt))
		await eventually(async () => (await count()) > before)
	}
	return replies
}

/**
 * Settles once `count` runs wait for a place in the worker pool. A run waits for its place once its job is claimed, which may
 * happen before or after the run is listed.
 */
async function waitForPlace(gateway: TestGateway, count: number): Promise<void> {
	const line = `\nsvc_worker_pool_runs{state="waiting"} ${count}\n`
	await eventually(async () => (await gateway.request<string>('GET', '/metrics')).body.includes(line))
}

/** Changes a setting of runs, and waits until it applies. Runs that wait for a place get jobs. */
async function reload(gateway: TestGateway): Promise<void> {
	const generation = async (): Promise<number> => (await gateway.request('GET', '/v1/health')).body.generation
	const before = await generation()
	const file = join(gateway.home, 'config/gateway.yaml')
	writeFileSync(file, readFileSync(file, 'utf8').replace('runs: {', 'runs: {max_waiting: 50, '))
	await eventually(async () => (await generation()) > before)
}

void t.test('the runs of one agent do not block another agent, and agents take turns', async (t) => {
	const { gateway, model } = await start(t)
	for (const name of ['ada', 'bob', 'cleo']) await follow(t, gateway, name)
	const flood = await startInOrder(gateway, 'ada', 'a1', 'a2', 'a3', 'a4')
	await Promise.all([model.called('a1'), model.called('a2')])
	const bob = complete(gateway, 'bob', 'b1')
	;(await model.called('b1')).answer('Done.')
	t.equal((await bob).status, 200)
	const prompts = (): string[] => model.calls.map(({ prompt }) => prompt)
	t.strictSame(new Set(prompts()), new Set(['a1', 'a2', 'b1']), 'the runs of ada still wait')

	const second = complete(gateway, 'bob', 'b2')
	await model.called('b2')
	const cleo = complete(gateway, 'cleo', 'c1')
	await waitForPlace(gateway, 3)
	for (const prompt of ['a1', 'a2', 'a3', 'a4', 'b2', 'c1']) (await model.called(prompt)).answer('Done.')
	await Promise.all([...flood, second, cleo])
	t.ok(prompts().indexOf('c1') < prompts().indexOf('a4'), 'cleo goes before the last of ada')
})

void t.test('a run that waits for a place survives a reload, and can be cancelled', async (t) => {
	const { gateway, model } = await start(t)
	await follow(t, gateway, 'ada')
	const flood = await startInOrder(gateway, 'ada', 'a1', 'a2', 'a3', 'a4')
	await Promise.all([model.called('a1'), model.called('a2')])
	const runs = (await gateway.request('GET', '/v1/agents/ada/runs')).body as { run_id: string; prompt: string }[]
	const last = runs.find(({ prompt }) => prompt.includes('a4'))?.run_id ?? ''
	const { status } = await gateway.request('POST', `/v1/runs/${last}/cancel`, { body: {} })
	t.equal(status, 200)
	await reload(gateway)
	for (const prompt of ['a1', 'a2', 'a3']) (await model.called(prompt)).answer('Done.')
	t.strictSame(
		(await Promise.all(flood.slice(0, 3))).map((reply) => reply.status),
		[200, 200, 200],
	)
	await flood[3]
	t.strictSame(model.calls.map(({ prompt }) => prompt).toSorted(), ['a1', 'a2', 'a3'], 'each called once')
})

void t.test(
	'runs of people go before waiting deliveries of webhooks to the same agent, also after a reload',
	async (t) => {
		const { gateway, model } = await start(t)
		await follow(t, gateway, 'ada')
		const replies = await startInOrder(gateway, 'ada', 'a1', 'a2')
		await Promise.all([model.called('a1'), model.called('a2')])
		const { body: hook } = await gateway.request('POST', '/v1/agents/ada/webhooks', { body: { slug: 'hook' } })
		for (const delivery of [1, 2]) t.equal((await deliver(gateway, hook, { delivery })).status, 200)
		await waitForPlace(gateway, 2)
		replies.push(...(await startInOrder(gateway, 'ada', 'a3', 'a4')))
		await waitForPlace(gateway, 4)
		const prompts = (): string[] => model.calls.map(({ prompt }) => prompt)
		;(await model.called('a1')).answer('Done.')
		await model.called('a3')
		t.strictSame(prompts().toSorted(), ['a1', 'a2', 'a3'])

		await reload(gateway)
		await waitForPlace(gateway, 3)
		;(await model.called('a2')).answer('Done.')
		await model.called('a4')
		t.strictSame(prompts().toSorted(), ['a1', 'a2', 'a3', 'a4'])

		for (const prompt of ['a3', 'a4']) (await model.called(prompt)).answer('Done.')
		t.ok((await Promise.all(replies)).every(({ status }) => status === 200))
		await eventually(() => model.calls.length === 6)
		t.strictSame(prompts().filter((prompt) => /"delivery":\d/.test(prompt)).length, 2)
	},
)

void t.test('the waiting runs of one agent, of one caller and of all agents are limited', async (t) => {
	const { gateway, model } = await start(t, { runs: 'max_waiting_per_agent: 2, max_waiting_total: 5' })
	for (const name of ['ada', 'bob', 'cleo']) await follow(t, gateway, name)
	const replies = await startInOrder(gateway, 'ada', 'a1', 'a2')
	await Promise.all([model.called('a1'), model.called('a2')])
	replies.push(...(await startInOrder(gateway, 'ada', 'a3', 'a4')))
	await waitForPlace(gateway, 2)
	const startRun = (name: string, token?: string) =>
		gateway.request('POST', `/v1/agents/${name}/runs`, {
			body: { prompt: 'more', conversation: `of ${token}` },
			...(token !== undefined && { token }),
		})
	assertError(t, await startRun('ada'), {
		status: 429,
		code: 'queue_full',
		message: /2 runs of this agent wait already.*runs\.max_waiting_per_agent/,
	})
	replies.push(...(await startInOrder(gateway, 'bob', 'b1')))
	await model.called('b1')
	replies.push(...(await startInOrder(gateway, 'bob', 'b2')))
	await waitForPlace(gateway, 3)
	assertError(t, await startRun('cleo'), {
		status: 429,
		code: 'queue_full',
		message: /3 runs of this caller wait for a thread already.*2 places are for others.*runs\.max_waiting_total/,
	})
	const [dan, eve, fay] = await Promise.all([1, 2, 3].map(async () => (await addToken(gateway, ['runs:write'])).token))
	for (const [token, count] of [
		[dan, 4],
		[eve, 5],
	] as const) {
		t.equal((await startRun('cleo', token)).status, 200)
		await waitForPlace(gateway, count)
	}
	assertError(t, await startRun('bob', fay), {
		status: 429,
		code: 'queue_full',
		message: /5 runs of all agents wait for a thread already.*runs\.max_waiting_total/,
	})
	for (const prompt of ['a1', 'a2', 'b1', 'a3', 'a4', 'b2']) (await model.called(prompt)).answer('Done.')
	await Promise.all(replies)
	t.equal((await startRun('cleo')).status, 200, 'a place is free again')
})

void t.test('a token with many agents cannot take all places for waiting runs, also after a reload', async (t) => {
	const { gateway, model } = await start(t, { runs: 'max_waiting_total: 6' })
	const body = { scopes: ['agents:write', 'runs:write'], agents: ['flood-*'] }
	const { token } = (await gateway.request('POST', '/v1/auth/tokens', { body })).body as { token: string }
	const flood = async (name: string): Promise<Reply<unknown>> => {
		await gateway.request('POST', '/v1/agents', { body: { name }, token })
		return gateway.request('POST', `/v1/agents/${name}/runs`, { body: { prompt: name }, token })
	}
	for (const name of ['flood-1', 'flood-2', 'flood-3']) {
		t.equal((await flood(name)).status, 200)
		await model.called(name)
	}
	for (const count of [1, 2, 3]) {
		t.equal((await flood(`flood-waits-${count}`)).status, 200)
		await waitForPlace(gateway, count)
	}
	const assertRefused = async (name: string): Promise<void> =>
		assertError(t, await flood(name), {
			status: 429,
			code: 'queue_full',
			message: /3 runs of this caller wait for a thread already.*3 places are for others/,
		})
	await assertRefused('flood-4')
	await reload(gateway)
	await waitForPlace(gateway, 3)
	await assertRefused('flood-5')

	await follow(t, gateway, 'ada')
	const { body: hook } = await gateway.request('POST', '/v1/agents/ada/webhooks', { body: { slug: 'hook' } })
	t.equal((await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'Hello.' } })).status, 200)
	await waitForPlace(gateway, 4)
	t.equal((await deliver(gateway, hook, {})).status, 200)
})

void t.test('waiting sub-agents of one token leave places to others', async (t) => {
	const { gateway, model } = await start(t, { runs: 'max_waiting_total: 4' })
	const { token } = await addToken(gateway, ['agents:write', 'runs:write'])
	for (const name of ['flood', 'more']) await gateway.request('POST', '/v1/agents', { body: { name }, token })
	const startRun = (name: string, prompt: string, by = {}) =>
		gateway.request('POST', `/v1/agents/${name}/runs`, { body: { prompt, conversation: prompt }, ...by })
	t.equal((await startRun('flood', 'spawn', { token })).status, 200)
	for (const n of [1, 2, 3, 4, 5, 6])
		(await model.called('spawn', n)).callTool(
			'subagent.spawn',
			JSON.stringify({ prompt: `part ${n}`, wait: false }),
			`call_${n}`,
		)
	await model.called('spawn', 7)
	await waitForPlace(gateway, 5)
	assertError(t, await startRun('more', 'more', { token }), {
		status: 429,
		code: 'queue_full',
		message: /5 runs of this caller wait for a thread already, and the last 2 places are for others/,
	})
	await follow(t, gateway, 'ada')
	t.equal((await startRun('ada', 'runs in the reserve')).status, 200)
	await model.called('runs in the reserve')
	t.equal((await startRun('ada', 'waits')).status, 200)
	await waitForPlace(gateway, 6)
})

void t.test('agents.max_agents limits the number of agents', async (t) => {
	const { gateway } = await start(t, { more: 'agents: {max_agents: 2}\n' })
	const create = (name: string) => gateway.request('POST', '/v1/agents', { body: { name } })
	t.strictSame([(await create('ada')).status, (await create('bob')).status], [201, 201])
	assertError(t, await create('cleo'), {
		status: 409,
		code: 'conflict',
		message: /2 agents already.*agents\.max_agents/,
	})
	assertError(t, await create('bob'), { status: 409, code: 'already_exists', message: /bob/ })
	t.equal((await gateway.request('DELETE', '/v1/agents/ada')).status < 300, true)
	t.equal((await create('cleo')).status, 201)
})
