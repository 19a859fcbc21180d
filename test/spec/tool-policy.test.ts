/** Which tools an agent may use, and calls that wait for approval (`config.tools`), over HTTP. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeHome, send, startGateway } from '../support/gateway.ts'
import type { Answer, Reply } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { spawnGateway } from '../support/process.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { eventually } from '../support/wait.ts'

/**
 * Tools that append each of their executions to a file. `concurrent`: they may run beside other calls. `lab__ask` waits for
 * `openGate`, then asks its text if that is a question.
 */
const lab = `
import { appendFileSync, existsSync } from 'node:fs'
export default {
	name: 'lab',
	needs: ['auth'],
	start(ctx) {
		const file = () => process.env.LAB_FILE ?? globalThis.labFile
		const record = (name, args) => appendFileSync(file(), JSON.stringify({ name, args }) + '\\n')
		const tool = (name, more = {}) => ({
			name,
			description: 'Writes.',
			parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
			repeatable: false,
			run(args) {
				record(name, args)
				return 'wrote ' + args.text
			},
			events: { called: 'lab.called', result: 'lab.result', failed: 'lab.failed' },
			...more,
		})
		ctx.tools(() => [
			tool('lab__write'),
			tool('lab__other', { concurrent: true }),
			tool('lab__read', { concurrent: true }),
			tool('lab__erase', { destructive: true }),
			tool('lab__ask', {
				concurrent: true,
				async run({ text }, call) {
					while (!existsSync(file() + text)) {
						if (call.signal.aborted) throw new Error('stopped')
						await new Promise((resolve) => setTimeout(resolve, 5))
					}
					if (!text.endsWith('?')) return text
					appendFileSync(file() + text, 'asks')
					return call.ask({ question: text })
				},
			}),
		])
	},
	events: {
		'lab.called': { description: 'Called.', payload: { tool: 'It.', call_id: 'It.', arguments: 'Its.' } },
		'lab.result': { description: 'Done.', payload: { tool: 'It.', call_id: 'It.', result: 'Its.' } },
		'lab.failed': { description: 'Failed.', payload: { tool: 'It.', call_id: 'It.', code: 'Its.', message: 'Its.' } },
	},
}
`
const model = await startModelServer()
t.teardown(() => model.stop())
const config =
	'plugins: { lab: true }\nruns: { approval_ttl_s: 600 }\ndefault_provider: plain\n' +
	`providers: { plain: { kind: offline }, mock: { kind: openai, base_url: '${model.url}', api_key: key-of-mock, model: m } }\n`
const files = { 'plugins/lab/index.js': lab }
const gateway = await startGateway({ config, files })
const labFile = join(gateway.home, 'lab.txt')
Object.assign(globalThis, { labFile })
const openGate = (text: string, file = labFile): void => writeFileSync(file + text, '')
const hasAsked = (text: string): Promise<unknown> => eventually(() => readFileSync(labFile + text, 'utf8') === 'asks')
t.teardown(() => gateway.stop())

const executions = (text: string, file = labFile): { name: string; args: { text: string } }[] => {
	try {
		const lines = readFileSync(file, 'utf8').trim().split('\n')
		return lines.map((line) => JSON.parse(line)).filter(({ args }) => args.text.startsWith(text))
	} catch {
		return []
	}
}
const promptFor = (tool: string, args: unknown): string => `/tool ${tool} ${JSON.stringify(args)}`
const openQuestion = async (agent: Followed, run_id: string): Promise<Answer> => {
	await agent.waitFor(run_id, 'run.paused')
	return (await agent.read(run_id)).question
}
const answer = (agent: Followed, { question_id }: Answer, body: object): Promise<Reply<Answer>> =>
	agent.call(`ask-responses/${question_id}`, body)
const ask = { config: { tools: { ask: ['lab__write', 'lab__other', 'memory.store'] } } }

void t.test('a denied tool is not called, by any of its names', async (t) => {
	const agent = await follow(t, gateway, 'deny', { config: { tools: { deny: ['lab__*', 'memory.store'] } } })
	for (const name of ['lab__write', 'memory.store', 'memory_store']) {
		const run_id = await agent.complete(promptFor(name, { text: 'deny', content: 'deny' }))
		t.match((await agent.read(run_id)).answer, /there is no tool|no tool|permission_denied|tool_unknown/i, name)
	}
	t.strictSame(executions('deny'), [])
	const { body } = await gateway.request('GET', '/v1/agents/deny/memory/search?q=deny')
	t.strictSame(body, [])
})

void t.test('an approval shows invisible characters of the arguments as escapes', async (t) => {
	const agent = await follow(t, gateway, 'unseen', ask)
	// Variation selectors, fillers, joiners, tags, blanks, private use, noncharacters.
	const hidden = '\ufe01\u{e0100}\u180b\u3164\u115f\uffa0\u034f\u00ad\u{e0041}\u2800\u00a0\ue000\uffff'
	const run_id = await agent.start(promptFor('lab__write', { text: `to: ada${hidden}` }))
	const { question, question_id, arguments: args } = await openQuestion(agent, run_id)
	t.strictSame(args, { text: `to: ada${hidden}` })
	const [, shown = ''] = /```json\n([^]*)\n```/.exec(question) ?? []
	t.match(shown, /^[\n\x20-\x7e]+$/, 'only printable ASCII')
	t.strictSame(JSON.parse(shown), args)
	await agent.call(`ask-responses/${question_id}`, { answer: 'refuse' })
	await agent.ended(run_id)
})

void t.test('an approval shows the tool and its arguments, and the approved call executes once', async (t) => {
	const agent = await follow(t, gateway, 'asks', ask)
	const run_id = await agent.start(promptFor('lab__write', { text: 'one ```\u202e' }))
	const question = await openQuestion(agent, run_id)
	t.match(question, {
		kind: 'approval',
		tool: 'lab__write',
		arguments: { text: 'one ```\u202e' },
		options: ['approve', 'approve_always', 'edit', 'refuse'],
		question: /`lab__write`[^]*````json\n\{\n {2}"text": "one ```\\u202e"\n\}\n````/,
	})
	t.strictSame(
		(await agent.call('questions')).body.map(({ tool }: Answer) => tool),
		['lab__write'],
	)
	t.strictSame(executions('one'), [])
	for (const wrong of [
		{ answer: 'yes' },
		{ answer: '' },
		{ answer: 'approve it' },
		{ answer: 'edit' },
		{ answer: 'edit [1]' },
	])
		t.match(await answer(agent, question, wrong), { status: 400, body: { code: 'invalid_request' } }, wrong.answer)
	t.match(await answer(agent, question, { answer: 'approve', arguments: {} }), { status: 400 })
	t.match(await answer(agent, question, { answer: 'approve' }), { status: 200 })
	await agent.ended(run_id)
	t.equal(executions('one').length, 1)
	t.match(await answer(agent, question, { answer: 'approve' }), { status: 409, body: { code: 'already_answered' } })
	t.equal(executions('one').length, 1)
	t.strictSame(
		agent.typesOf(run_id).filter((type) => /^(question|run|lab)\./.test(type)),
		[
			'run.started',
			'question.asked',
			'run.paused',
			'question.answered',
			'run.resumed',
			'lab.called',
			'lab.result',
			'run.completed',
		],
	)
})

void t.test('a refusal reaches the model with its reason', async (t) => {
	const agent = await follow(t, gateway, 'refuses', ask)
	for (const body of [{ answer: 'refuse', reason: 'not on Fridays' }, { answer: 'refuse: not on Fridays' }]) {
		const run_id = await agent.start(promptFor('lab__write', { text: 'refused' }))
		await answer(agent, await openQuestion(agent, run_id), body)
		await agent.ended(run_id)
		t.match((await agent.read(run_id)).answer, /approval_refused.*not on Fridays/)
	}
	t.strictSame(executions('refused'), [])
})

void t.test('edited arguments must match the schema; the call uses them, and the model is informed', async (t) => {
	const agent = await follow(t, gateway, 'edits', ask)
	const run_id = await agent.start(promptFor('memory.store', { content: 'The key is under the mat.' }))
	const question = await openQuestion(agent, run_id)
	for (const args of [{}, { content: 7 }, { content: 'x', more: true }])
		t.match(await answer(agent, question, { answer: 'edit', arguments: args }), {
			status: 400,
			body: { code: 'invalid_arguments' },
		})
	t.match(await agent.read(run_id), { status: 'paused' })
	t.match(await answer(agent, question, { answer: 'edit', arguments: { content: 'x'.repeat(40_000) } }), {
		status: 400,
	})
	t.match(await answer(agent, question, { answer: 'edit', arguments: { content: 'There is no key.' } }), {
		status: 200,
	})
	await agent.ended(run_id)
	t.match((await agent.read(run_id)).answer, /a person changed the arguments.*There is no key/)
	const { body } = await gateway.request('GET', '/v1/agents/edits/memory/search?q=key')
	t.strictSame(
		body.map(({ content }: Answer) => content),
		['There is no key.'],
	)
})

void t.test('approve_always applies only to the same tool and arguments, until it is revoked', async (t) => {
	const agent = await follow(t, gateway, 'always', ask)
	const first = await agent.start(promptFor('lab__write', { text: 'always', more: 1 }))
	await answer(agent, await openQuestion(agent, first), { answer: 'approve_always' })
	await agent.ended(first)
	await agent.complete(promptFor('lab__write', { more: 1, text: 'always' }))
	t.equal(executions('always').length, 2)
	const other = await agent.start(promptFor('lab__write', { text: 'always', more: 2 }))
	await answer(agent, await openQuestion(agent, other), { answer: 'refuse' })
	await agent.ended(other)
	const tool = await agent.start(promptFor('lab__other', { text: 'always', more: 1 }))
	await answer(agent, await openQuestion(agent, tool), { answer: 'refuse' })
	await agent.ended(tool)
	t.equal(executions('always').length, 2)
	const [approval, ...none] = (await agent.call('approvals')).body
	t.match(approval, { tool: 'lab__write', arguments: { text: 'always', more: 1 } })
	t.strictSame(none, [])
	const path = `/v1/agents/always/approvals/${approval.approval_id}`
	t.match(await gateway.request('DELETE', path), { status: 204 })
	t.match(await gateway.request('DELETE', path), { status: 404 })
	const again = await agent.start(promptFor('lab__write', { text: 'always', more: 1 }))
	await answer(agent, await openQuestion(agent, again), { answer: 'refuse' })
	await agent.ended(again)
	t.equal(executions('always').length, 2)
})

void t.test('calls without approval execute, and approvals of the others are requested one at a time', async (t) => {
	const agent = await follow(t, gateway, 'several', { config: { ...ask.config, provider: 'mock' } })
	const call = (name: string, text: string) => ({ name, arguments: { text: `several ${text}` } })
	const tools = [call('lab__other', 'a'), call('lab__read', 'b'), call('lab__other', 'c'), call('lab__write', 'd')]
	model.on('several calls', { tools }, 'All done.')
	const run_id = await agent.start('several calls')
	const letters = (): string =>
		executions('several')
			.map(({ args }) => args.text.slice(-1))
			.toSorted((a, b) => a.localeCompare(b))
			.join('')
	for (const [n, executed] of ['b', 'ab', 'abc'].entries()) {
		await agent.waitFor(run_id, 'run.paused', n + 1)
		await eventually(() => letters().length === executed.length)
		t.equal(letters(), executed)
		const open = (await agent.call('questions')).body
		t.strictSame(
			open.map(({ arguments: { text } }: Answer) => text),
			[`several ${'acd'[n]}`],
		)
		await answer(agent, open[0], { answer: 'approve' })
	}
	await agent.ended(run_id)
	t.equal(letters(), 'abcd')
	t.match(await agent.read(run_id), { status: 'completed', answer: 'All done.' })
})

const shownIn = ({ question, tool }: Answer): string => tool ?? question
/** What the run shows: its status, its own question, and all open questions of its agent. */
const shown = async (agent: Followed, run_id: string): Promise<unknown[]> => {
	const { status, question } = await agent.read(run_id)
	return [status, question && shownIn(question), (await agent.call('questions')).body.map(shownIn)]
}

void t.test('a question that a concurrent call asks waits for the open approval', async (t) => {
	const agent = await follow(t, gateway, 'beside', { config: { ...ask.config, provider: 'mock' } })
	const other = await follow(t, gateway, 'meanwhile')
	const tools = [
		{ name: 'lab__ask', arguments: { text: 'beside?' } },
		{ name: 'lab__other', arguments: { text: 'beside' } },
	]
	model.on('asks beside', { tools }, 'Done.')
	const run_id = await agent.start('asks beside')
	const approval = await openQuestion(agent, run_id)
	openGate('beside?')
	await hasAsked('beside?')
	await other.complete('Many commits.')
	t.strictSame(await shown(agent, run_id), ['paused', 'lab__other', ['lab__other']])
	await answer(agent, approval, { answer: 'approve' })
	await agent.waitFor(run_id, 'run.paused', 2)
	t.strictSame(await shown(agent, run_id), ['paused', 'beside?', ['beside?']])
	t.strictSame(executions('beside'), [])
	await answer(agent, await openQuestion(agent, run_id), { answer: 'yes' })
	await agent.ended(run_id)
	t.strictSame(executions('beside'), [{ name: 'lab__other', args: { text: 'beside' } }])
	t.match(await agent.read(run_id), { status: 'completed', answer: 'Done.' })
	t.strictSame((await agent.call('questions')).body, [])
	const results = model
		.requests('asks beside')
		.at(-1)
		?.messages.filter(({ role }) => role === 'tool')
	t.match(results, [{ content: 'yes' }, { content: 'wrote beside' }])
})

void t.test('an approval waits for the open question of a concurrent call', async (t) => {
	const agent = await follow(t, gateway, 'behind', { config: { ...ask.config, provider: 'mock' } })
	const other = await follow(t, gateway, 'meanwhile')
	// A run makes eight calls at a time: the call that needs approval begins when one of the others has ended.
	const texts = ['behind?', ...Array.from({ length: 7 }, (_, n) => `behind ${n}`)]
	const tools = texts.map((text) => ({ name: 'lab__ask', arguments: { text } }))
	model.on('asks behind', { tools: [...tools, { name: 'lab__other', arguments: { text: 'behind' } }] }, 'Done.')
	openGate('behind?')
	const run_id = await agent.start('asks behind')
	const question = await openQuestion(agent, run_id)
	for (const text of texts.slice(1)) openGate(text)
	await agent.waitFor(run_id, 'lab.result', 7)
	await other.complete('Many commits.')
	t.strictSame(await shown(agent, run_id), ['paused', 'behind?', ['behind?']])
	await answer(agent, question, { answer: 'yes' })
	await agent.waitFor(run_id, 'run.paused', 2)
	t.strictSame(await shown(agent, run_id), ['paused', 'lab__other', ['lab__other']])
	await answer(agent, await openQuestion(agent, run_id), { answer: 'approve' })
	await agent.ended(run_id)
	t.match(await agent.read(run_id), { status: 'completed', answer: 'Done.' })
	const answered = ['question.asked', 'run.paused', 'question.answered', 'run.resumed']
	t.strictSame(
		agent.typesOf(run_id).filter((type) => /^(question|run)\./.test(type)),
		['run.started', ...answered, ...answered, 'run.completed'],
	)
})

void t.test('a run is stopped while a question waits for its approval', async (t) => {
	const agent = await follow(t, gateway, 'halted', { config: { ...ask.config, provider: 'mock' } })
	const tools = [
		{ name: 'lab__ask', arguments: { text: 'halted?' } },
		{ name: 'lab__other', arguments: { text: 'halted' } },
	]
	model.on('asks in vain', { tools }, 'Done.')
	const run_id = await agent.start('asks in vain')
	await openQuestion(agent, run_id)
	openGate('halted?')
	await hasAsked('halted?')
	await agent.call('stop', {})
	t.equal((await agent.ended(run_id)).event_type, 'run.stopped')
	t.strictSame((await agent.call('questions')).body, [])
	t.equal(agent.typesOf(run_id).at(-1), 'run.stopped')
	t.strictSame(executions('halted'), [])
})

void t.test('a destructive tool requires approval unless it is allowed', async (t) => {
	const agent = await follow(t, gateway, 'erases')
	const run_id = await agent.start(promptFor('lab__erase', { text: 'erase' }))
	await answer(agent, await openQuestion(agent, run_id), { answer: 'refuse' })
	await agent.ended(run_id)
	await gateway.request('PATCH', '/v1/agents/erases', { body: { config: { tools: { allow: ['lab__erase'] } } } })
	await agent.complete(promptFor('lab__erase', { text: 'erase' }))
	t.equal(executions('erase').length, 1)
})

void t.test('a sub-agent has the same policy, and its approval is an open question of its parent', async (t) => {
	const agent = await follow(t, gateway, 'parent', ask)
	const run_id = await agent.start(promptFor('subagent.spawn', { prompt: promptFor('lab__write', { text: 'below' }) }))
	const open = await eventually(async () => (await agent.read(run_id)).open_question ?? false)
	t.match(open, { kind: 'approval', tool: 'lab__write' })
	t.strictSame(executions('below'), [])
	await answer(agent, open, { answer: 'approve' })
	await agent.ended(run_id)
	t.equal(executions('below').length, 1)
})

void t.test('no other agent can approve a call, and arguments that are too long to show are refused', async (t) => {
	const [agent, other] = [await follow(t, gateway, 'owner', ask), await follow(t, gateway, 'other', ask)]
	const run_id = await agent.start(promptFor('lab__write', { text: 'owned' }))
	const question = await openQuestion(agent, run_id)
	t.match(await answer(other, question, { answer: 'approve' }), { status: 404 })
	t.strictSame(executions('owned'), [])
	// The tool is denied meanwhile, so the approval has no effect.
	await gateway.request('PATCH', '/v1/agents/owner', { body: { config: { tools: { deny: ['lab__write'] } } } })
	await answer(agent, question, { answer: 'approve' })
	await agent.ended(run_id)
	t.match((await agent.read(run_id)).answer, /permission_denied/)
	t.strictSame(executions('owned'), [])
	const giant = await other.complete(promptFor('lab__write', { text: `owned ${'x'.repeat(40_000)}` }))
	t.match((await other.read(giant)).answer, /too long to be shown/)
	t.strictSame(executions('owned'), [])
})

void t.test(
	'a pattern must be text, is no regular expression, and causes a warning if it matches nothing',
	async (t) => {
		const create = (name: string, tools: unknown) =>
			gateway.request('POST', '/v1/agents', { body: { name, config: { tools } } })
		for (const [n, tools] of [
			[],
			'memory.*',
			{ deny: 'memory.*' },
			{ ask: [7] },
			{ allow: [''] },
			{ refuse: ['*'] },
		].entries())
			t.match(await create(`bad-${n}`, tools), { status: 400 }, JSON.stringify(tools))
		const made = await create('odd', { deny: ['memory.st[a-z]re', '**', '(a+)+$', 'lab__read'], allow: ['no.such'] })
		t.match(made, { status: 201 })
		t.strictSame(
			made.body.warnings.map(({ path }: Answer) => path),
			['config.tools.allow.0', 'config.tools.deny.0', 'config.tools.deny.2'],
		)
	},
)

void t.test('an approval that expires counts as refused, and the run continues', async (t) => {
	const gateway = await startGateway({ config: 'runs: { approval_ttl_s: 1 }\n' })
	t.teardown(() => gateway.stop())
	const agent = await follow(t, gateway, 'late', { config: { tools: { ask: ['memory.*'] } } })
	const run_id = await agent.start(promptFor('memory.store', { content: 'too late' }))
	const question = (await agent.waitFor(run_id, 'question.asked')).payload
	await agent.ended(run_id)
	t.match(await agent.read(run_id), {
		status: 'completed',
		answer: /approval_refused.*nobody approved/,
		question: null,
	})
	t.match(await answer(agent, question, { answer: 'approve' }), { status: 409 })
	t.strictSame((await gateway.request('GET', '/v1/agents/late/memory')).body.memories, [])
})

void t.test('after kill -9 an approved call executes at most once, with the edited arguments', async (t) => {
	const home = makeHome({ config: `server: { shutdown_grace_s: 0 }\n${config}`, files }, t)
	const file = join(home, 'lab.txt')
	let running = await spawnGateway(home, { LAB_FILE: file })
	t.teardown(() => running.kill())
	const request = (method: string, path: string, body?: unknown) =>
		send<Answer>(running.url + path, method, body === undefined ? {} : { body })
	const restart = async (): Promise<void> => {
		await running.kill()
		running = await spawnGateway(home, { LAB_FILE: file })
	}
	await request('POST', '/v1/agents', { name: 'ada', ...ask })
	const { run_id } = (
		await request('POST', '/v1/agents/ada/runs', { prompt: promptFor('lab__write', { text: 'kill model' }) })
	).body
	const read = async (): Promise<Answer> => (await request('GET', `/v1/runs/${run_id}`)).body
	const { question_id } = await eventually(async () => (await read()).question ?? false)
	await restart()
	t.match(await read(), { status: 'paused', question: { question_id, kind: 'approval' } })
	const body = { answer: 'edit', arguments: { text: 'kill person' } }
	t.match(await request('POST', `/v1/agents/ada/ask-responses/${question_id}`, body), { status: 200 })
	await restart()
	await eventually(async () => (await read()).status === 'completed')
	const executed = executions('kill', file)
	t.ok(executed.length <= 1)
	if (executed.length === 1) t.strictSame(executed, [{ name: 'lab__write', args: { text: 'kill person' } }])
	else t.match((await read()).answer, /tool_interrupted/)
	t.match(await request('POST', `/v1/agents/ada/ask-responses/${question_id}`, body), { status: 409 })

	// A question was open beside an approved call.
	await request('PATCH', '/v1/agents/ada', { config: { ...ask.config, provider: 'mock' } })
	const tools = [
		{ name: 'lab__ask', arguments: { text: 'killed?' } },
		{ name: 'lab__other', arguments: { text: 'killed' } },
	]
	model.on('asks and dies', { tools }, 'Done.')
	const next = (await request('POST', '/v1/agents/ada/runs', { prompt: 'asks and dies' })).body.run_id
	const asked = async (kind?: string): Promise<string> => {
		const { question } = (await request('GET', `/v1/runs/${next}`)).body
		return question?.kind === kind ? question?.question_id : ''
	}
	const approval = await eventually(() => asked('approval'))
	openGate('killed?', file)
	await request('POST', `/v1/agents/ada/ask-responses/${approval}`, { answer: 'approve' })
	const lost = await eventually(() => asked())
	await restart()
	await eventually(async () => (await request('GET', `/v1/runs/${next}`)).body.status === 'completed')
	t.strictSame(executions('killed', file), [{ name: 'lab__other', args: { text: 'killed' } }])
	const results = model
		.requests('asks and dies')
		.at(-1)
		?.messages.filter(({ role }) => role === 'tool')
	t.match(results?.slice(-2), [{ content: /tool_interrupted/ }, { content: 'wrote killed' }])
	const { events } = (await request('GET', `/v1/audit?run_id=${next}&event_type=run.resumed`)).body
	t.match(events, [{ payload: { question_id: approval } }, { payload: { reason: 'withdrawn', question_id: lost } }])
	t.match(await request('POST', `/v1/agents/ada/ask-responses/${lost}`, { answer: 'yes' }), { status: 409 })
})
