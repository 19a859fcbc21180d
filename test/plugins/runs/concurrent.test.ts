/** Concurrent calls of one answer: a kill during them, and several sub-agents. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeHome, startGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { ModelServer } from '../../support/model-server.ts'
import { spawnGateway } from '../../support/process.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

const config = (model: ModelServer): string =>
	`${providersAt({ mock: model.url })}default_provider: mock\nplugins: { gate: true }\n`

/** A tool that records its call, and waits until a file exists. */
const gate = `import { appendFileSync, existsSync } from 'node:fs'
export default {
	name: 'gate',
	start(ctx) {
		const at = (name) => ctx.gateway.home + '/' + name
		ctx.primitive({
			name: 'gate.wait',
			description: 'Waits until a gate opens.',
			concurrent: true,
			parameters: ctx.joi.object({ name: ctx.joi.string().required() }),
			async run({ name }, call) {
				appendFileSync(at('calls'), name + '\\n')
				while (!existsSync(at(name))) {
					if (call.signal.aborted) throw new Error('stopped')
					await new Promise((resolve) => setTimeout(resolve, 5))
				}
				return 'gate ' + name + ' is open'
			},
		})
	},
}`
const files = { 'plugins/gate/index.js': gate }
const waitAt = (...names: string[]) => ({ tools: names.map((name) => ({ name: 'gate_wait', arguments: { name } })) })

void t.test('after a kill during concurrent calls, only the unfinished ones are repeated', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const home = makeHome({ config: config(model), files }, t)
	const calls = (): string[] => readFileSync(join(home, 'calls'), 'utf8').trim().split('\n')
	const open = (name: string): void => writeFileSync(join(home, name), '')
	model.on('three gates', waitAt('a', 'b', 'c'), 'All are open.')
	open('b')

	const first = await spawnGateway(home)
	const ask = async (url: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
		const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
		return (await (await fetch(url + path, init || {})).json()) as Record<string, unknown>
	}
	await ask(first.url, '/v1/agents', { name: 'ada' })
	const stream = await openStream(first.url)
	const { run_id } = await ask(first.url, '/v1/agents/ada/runs', { prompt: 'three gates' })
	t.match((await stream.waitFor('primitive.result')).payload, { result: 'gate b is open' })
	await eventually(() => calls().length === 3)
	t.strictSame(calls().toSorted(), ['a', 'b', 'c'], 'all calls have begun')
	await first.kill()
	stream.close()

	open('a')
	open('c')
	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const after = await openStream(second.url)
	t.teardown(() => after.close())
	let run = await ask(second.url, `/v1/runs/${String(run_id)}`)
	if (run.status !== 'completed') await after.waitFor('run.completed')
	run = await ask(second.url, `/v1/runs/${String(run_id)}`)
	t.match(run, { status: 'completed', answer: 'All are open.', finish_reason: 'stop' })
	t.strictSame(calls().slice(3).toSorted(), ['a', 'c'])
	const results = model
		.requests('three gates')
		.at(-1)
		?.messages.filter(({ role }) => role === 'tool')
	t.match(
		results,
		['a', 'b', 'c'].map((name) => ({ content: `gate ${name} is open` })),
	)
})

void t.test('a run waits for several sub-agents and shows their open question', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	const gateway = await startGateway({ config: config(model), files })
	t.teardown(() => gateway.stop())
	const open = (name: string): void => writeFileSync(join(gateway.home, name), '')
	const ada = await follow(t, gateway, 'ada')
	const spawn = (prompt: string) => ({ name: 'subagent_spawn', arguments: { prompt } })
	model.on('top', { tools: [spawn('sub one'), spawn('sub two'), spawn('sub three')] }, 'All came back.')
	model.on('sub one', waitAt('one'), 'One.')
	model.on('sub two', waitAt('two'), 'Two.')
	model.on('sub three', { tools: [{ name: 'ask', arguments: { question: 'Which way?' } }] }, 'Three.')
	const run_id = await ada.start('top')
	const called = join(gateway.home, 'calls')
	await ada.waitFor(run_id, 'run.paused', 3)
	const asked = await ada.stream.waitFor('question.asked')
	await eventually(() => existsSync(called) && readFileSync(called, 'utf8').length >= 8)

	const paused = await ada.read(run_id)
	t.match(paused, { status: 'paused', open_question: { question: 'Which way?', run_id: asked.run_id } })
	open('two')
	await ada.waitFor(run_id, 'subagent.completed')
	await ada.waitFor(run_id, 'run.paused', 4)
	t.equal((await ada.read(run_id)).status, 'paused', 'two sub-agents have not completed')
	const reply = await ada.call(`ask-responses/${String(asked.payload.question_id)}`, { answer: 'left' })
	t.equal(reply.status, 200)
	await ada.waitFor(run_id, 'subagent.completed', 2)
	await ada.waitFor(run_id, 'run.paused', 5)
	t.match(await ada.read(run_id), { status: 'paused', open_question: null })
	open('one')
	await ada.ended(run_id)
	t.match(await ada.read(run_id), { status: 'completed', answer: 'All came back.', waits_for: null })
	const results = model
		.requests('top')
		.at(-1)
		?.messages.filter(({ role }) => role === 'tool')
	t.match(results, [{ content: /"One\."/ }, { content: /"Two\."/ }, { content: /"Three\."/ }])
})
