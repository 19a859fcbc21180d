/** The tools for agents, called by the official client. */
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { add } from '../../support/mcp.ts'
import { startModelServer } from '../../support/model-server.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'
import { config, connect } from './client.ts'

const model = await startManualModel()
t.teardown(() => model.stop())
const priced = await startModelServer()
t.teardown(() => priced.stop())
const gateway = await startGateway({
	config: `${config}providers:
  held: {kind: openai, base_url: "${model.url}", api_key: k, model: m}
  priced: {kind: openai, base_url: "${priced.url}", api_key: k, model: m, prices: {m: {input: 2, output: 10}}}
  plain: {kind: offline}
default_provider: plain
`,
})
t.teardown(() => gateway.stop())
const ada = await follow(t, gateway, 'ada', { persona: 'Ada knows engines.' })
const held = await follow(t, gateway, 'held', { config: { provider: 'held' } })
const ask = '/tool ask {"question": "Which one?", "options": ["red", "blue"]}'

/** Waits until the run with this prompt is paused, and returns it. */
const paused = (prompt: string): Promise<Answer> =>
	eventually(async () => {
		const runs = (await ada.call('runs')).body as Answer[]
		return runs.find((run) => run.prompt === prompt && run.status === 'paused')
	})

void t.test('tools have titles, descriptions, schemas and hints', async (t) => {
	const { client } = await connect(t, gateway)
	t.match(client.getServerVersion(), { name: 'svc-gateway', version: /^\d/ })
	t.match(client.getInstructions(), /run_agent/)
	const { tools } = await client.listTools()
	t.strictSame(
		tools.map(({ name }) => name),
		['list_agents', 'search_memory', 'run_agent', 'answer_question', 'get_run', 'list_runs', 'stop_run', 'stop_agent'],
	)
	for (const tool of tools) {
		t.ok(tool.title && tool.description, `${tool.name} has a title and a description`)
		t.equal(tool.inputSchema.additionalProperties, false)
		t.equal(tool.outputSchema?.type, 'object')
		const { annotations = {} } = tool
		t.type(annotations.readOnlyHint, 'boolean')
		t.not(annotations.readOnlyHint, annotations.destructiveHint, 'a tool that only reads is not destructive')
	}
	t.same(
		tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name),
		['list_agents', 'search_memory', 'get_run', 'list_runs'],
	)
})

void t.test('agents are listed in pages', async (t) => {
	const { call } = await connect(t, gateway)
	const first = await call('list_agents', { limit: 1 })
	t.match(first.structuredContent, { agents: [{ name: 'ada', persona: 'Ada knows engines.' }], next: 'ada' })
	t.same(JSON.parse(first.content[0].text), first.structuredContent)
	const second = await call('list_agents', { after: 'ada' })
	t.match(second.structuredContent, { agents: [{ name: 'held', persona: null }], next: null })
})

void t.test('run_agent starts an ordinary run, and reports its progress', async (t) => {
	const { call } = await connect(t, gateway)
	const reports: { progress: number; message?: string | undefined }[] = []
	const prompt = '/tool memory.stm_read {}'
	const result = await call('run_agent', { agent: 'ada', prompt }, { onprogress: (report) => reports.push(report) })
	const { structuredContent: run, content } = result
	t.match(run, { agent: 'ada', status: 'completed', trigger: 'mcp', prompt, question: null, error: null })
	t.equal(content[0].text, run.answer)
	t.not(result.isError, true)
	t.match(await ada.read(run.run_id), { status: 'completed', trigger: 'mcp', answer: run.answer })
	t.ok(reports.some(({ message }) => message === 'calling memory.stm_read'))
	t.same(
		reports.map(({ progress }) => progress),
		reports.map((_, index) => index + 1),
	)
	t.match((await call('get_run', { run_id: run.run_id })).structuredContent, run)
})

void t.test('each session has its own conversation; a named one is shared by the sessions of a caller', async (t) => {
	const [one, two] = [await connect(t, gateway), await connect(t, gateway)]
	const talk = async ({ call }: typeof one, args: object): Promise<string> =>
		(await call('run_agent', { agent: 'ada', prompt: 'hello', ...args })).structuredContent.conversation
	const first = await talk(one, {})
	t.equal(await talk(one, {}), first)
	t.not(await talk(two, {}), first)
	const named = await talk(one, { conversation: 'notes' })
	t.equal(await talk(two, { conversation: 'notes' }), named)
	const { token } = await addToken(gateway, ['runs:write'])
	const stranger = await connect(t, gateway, { token })
	t.not(await talk(stranger, { conversation: 'notes' }), named, "a caller cannot use another caller's conversation")
	const read = await one.client.readResource({ uri: `svc://agents/ada/history?conversation=${named}` })
	t.equal(JSON.parse((read.contents[0] as { text: string }).text).length, 4)
})

void t.test('a question is returned, and answer_question continues the run', async (t) => {
	const { call } = await connect(t, gateway)
	const asking = await call('run_agent', { agent: 'ada', prompt: ask })
	const { run_id, question } = asking.structuredContent
	t.match(asking.structuredContent, {
		status: 'paused',
		question: { question: 'Which one?', options: ['red', 'blue'] },
	})
	t.match(asking.content[0].text, new RegExp(`Which one\\?\n- red\n- blue\n\n.*${run_id}.*${question.question_id}`))
	const queued = await call('run_agent', { agent: 'ada', prompt: 'hello' })
	t.equal(queued.isError, true)
	t.match(queued.content[0].text, `conflict: this conversation waits for the answer to a question`)
	const { question_id } = question
	const ended = await call('answer_question', { run_id, question_id, answer: 'blue' })
	t.match(ended.structuredContent, { run_id, status: 'completed', answer: /blue/ })
	const again = await call('answer_question', { run_id, question_id, answer: 'red' })
	t.match(again, { isError: true, content: [{ text: /^already_answered: / }] })
})

void t.test('a question can be answered only for the run that asks it', async (t) => {
	const { call } = await connect(t, gateway)
	const start = async (conversation: string) =>
		(await call('run_agent', { agent: 'ada', prompt: ask, conversation })).structuredContent
	const [one, other] = [await start('one-asks'), await start('other-asks')]
	const { question_id } = other.question
	const mixed = await call('answer_question', { run_id: one.run_id, question_id, answer: 'red' })
	t.match(mixed, { isError: true, content: [{ text: /^conflict: / }] })
	t.match(mixed.content[0].text, other.run_id)
	t.equal((await ada.read(other.run_id)).status, 'paused', 'the question stays open')
	for (const { run_id } of [one, other]) await call('stop_run', { run_id })
})

void t.test('a client that supports elicitation asks its person', async (t) => {
	const asked: Answer[] = []
	const { call, transport } = await connect(t, gateway, {
		elicit(params) {
			asked.push(params)
			return { action: 'accept', content: { answer: 'blue' } }
		},
	})
	const methods: unknown[] = []
	const { onmessage } = transport
	transport.onmessage = (message) => {
		if ('method' in message) methods.push(message.method)
		onmessage?.(message)
	}
	const { structuredContent: run } = await call('run_agent', { agent: 'ada', prompt: ask })
	t.match(run, { status: 'completed', answer: /blue/ })
	t.same(methods, ['elicitation/create'], 'an answered request is not cancelled')
	const answer = { type: 'string', title: 'Answer', enum: ['red', 'blue'] }
	const requestedSchema = { type: 'object', properties: { answer }, required: ['answer'] }
	t.match(asked, [{ message: 'Which one?', requestedSchema }])
	t.equal(asked.length, 1)
})

void t.test('a call is made as a person approved it, by a form or by answer_question', async (t) => {
	const careful = await follow(t, gateway, 'careful', { config: { tools: { ask: ['memory.store'] } } })
	const args = { agent: 'careful', prompt: '/tool memory.store {"content": "written by the model"}' }
	const stored = async (): Promise<string[]> =>
		(await careful.call('memory')).body.memories.map(({ content }: Answer) => content)

	const { call } = await connect(t, gateway)
	const asking = (await call('run_agent', args)).structuredContent
	t.match(asking, {
		status: 'paused',
		question: {
			question: /memory\.store[^]*written by the model/,
			options: ['approve', 'approve_always', 'edit', 'refuse'],
		},
	})
	const { run_id, question } = asking
	const reply = (answer: string) => call('answer_question', { run_id, question_id: question.question_id, answer })
	t.match(await reply('perhaps'), { isError: true, content: [{ text: /^invalid_request: / }] })
	t.strictSame(await stored(), [])
	t.match((await reply('edit {"content": "written by a person"}')).structuredContent, { run_id, status: 'completed' })
	t.strictSame(await stored(), ['written by a person'])
	t.match(await reply('approve'), { isError: true, content: [{ text: /^already_answered: / }] })

	const choices: string[][] = []
	const person = await connect(t, gateway, {
		elicit(params: Answer) {
			choices.push(params.requestedSchema.properties.answer.enum)
			return { action: 'accept', content: { answer: 'refuse' } }
		},
	})
	const refused = (await person.call('run_agent', args)).structuredContent
	t.match(refused, { status: 'completed', answer: /refused/ })
	t.strictSame(choices, [['approve', 'approve_always', 'refuse']], 'arguments cannot be edited in a form')
	t.strictSame(await stored(), ['written by a person'])
})

void t.test('a person who declines leaves the question open', async (t) => {
	const { call } = await connect(t, gateway, { elicit: () => ({ action: 'decline' }) })
	const { structuredContent: run } = await call('run_agent', { agent: 'ada', prompt: ask })
	t.match(run, { status: 'paused', question: { question: 'Which one?' } })
	t.match((await call('stop_run', { run_id: run.run_id })).structuredContent, { status: 'stopped', question: null })
})

void t.test('an answer from another client cancels the request to the person', async (t) => {
	let cancelled = 0
	const { call } = await connect(t, gateway, {
		elicit: (_, signal) =>
			new Promise((_resolve, reject) => {
				signal.addEventListener('abort', () => {
					cancelled++
					reject(new Error('cancelled'))
				})
			}),
	})
	const prompt = `${ask}\nelsewhere`
	const result = call('run_agent', { agent: 'ada', prompt })
	const { question } = await paused(prompt)
	t.match(question, { question_id: String })
	await ada.call(`ask-responses/${question.question_id}`, { answer: 'red' })
	t.match((await result).structuredContent, { status: 'completed', answer: /red/ })
	await eventually(() => cancelled === 1)
})

void t.test('the question of a sub-agent reaches the client as well', async (t) => {
	const { call } = await connect(t, gateway)
	const inner = JSON.stringify({ prompt: ask, wait: true })
	const outer = (await call('run_agent', { agent: 'ada', prompt: `/tool subagent.spawn ${inner}` })).structuredContent
	t.match(outer, { status: 'paused', question: { question: 'Which one?' } })
	t.not(outer.question.run_id, outer.run_id)
	const { run_id, question_id } = outer.question
	const { runs } = (await call('list_runs', { agent: 'ada', limit: 2 })).structuredContent
	t.match(runs, [{ question: { run_id, question_id } }, { run_id: outer.run_id, question: { run_id, question_id } }])
	const asker = await call('answer_question', { run_id, question_id, answer: 'red' })
	t.match(asker.structuredContent, { status: 'completed', answer: /red/ })
	await eventually(async () => (await ada.read(outer.run_id)).status === 'completed')

	const asked: Answer[] = []
	const person = await connect(t, gateway, {
		elicit(params) {
			asked.push(params.message)
			return { action: 'accept', content: { answer: 'blue' } }
		},
	})
	const prompt = `/tool subagent.spawn ${inner}`
	const answered = await person.call('run_agent', { agent: 'ada', prompt })
	t.match(answered.structuredContent, { status: 'completed', answer: /blue/ })
	t.strictSame(asked, ['A sub-agent asks:\n\nWhich one?'])
})

void t.test('cancelling a call stops its run', async (t) => {
	const { call } = await connect(t, gateway)
	const stop = new AbortController()
	const result = call('run_agent', { agent: 'held', prompt: 'for ever' }, { signal: stop.signal })
	const { hungUp } = await model.called('for ever')
	stop.abort('enough')
	await t.rejects(result)
	await hungUp
	await eventually(async () => (await held.call('runs')).body[0]?.status === 'stopped')
	t.same((await call('list_agents', { limit: 1 })).structuredContent.next, 'ada', 'the session continues')
})

void t.test('with wait: false, a run is started, read, listed and stopped', async (t) => {
	const { call } = await connect(t, gateway)
	const begun = await call('run_agent', { agent: 'held', prompt: 'later', wait: false })
	const { run_id } = begun.structuredContent
	t.match(begun.content[0].text, `The run ${run_id} continues`)
	const work = await model.called('later')
	t.match((await call('get_run', { run_id })).structuredContent, { status: 'started', answer: null })
	work.answer(`done ${'x'.repeat(1_000)}`)
	await held.ended(run_id)
	t.equal((await call('get_run', { run_id })).structuredContent.answer.length, 'Well, done '.length + 1_000)
	const { runs } = (await call('list_runs', { agent: 'held', status: 'completed' })).structuredContent
	t.match(runs, [{ run_id, status: 'completed' }])
	t.equal(runs[0].answer.length, 501, 'a list has only the beginning')

	const two = await call('run_agent', { agent: 'held', prompt: 'to be stopped', wait: false })
	await model.called('to be stopped')
	t.same((await call('stop_agent', { agent: 'held' })).structuredContent, { agent: 'held', status: 'stopped' })
	t.match(await held.read(two.structuredContent.run_id), { status: 'stopped' })
	const ended = await call('stop_run', { run_id })
	t.match(ended, { structuredContent: { status: 'completed' } }, 'an ended run stays as it is')
})

void t.test('search_memory finds memories', async (t) => {
	const { call } = await connect(t, gateway)
	await ada.call('memory', { content: 'The difference engine computes polynomials.' })
	const found = await call('search_memory', { agent: 'ada', query: 'difference engine' })
	t.match(found.structuredContent, { memories: [{ content: /polynomials/, similarity: Number }] })
})

void t.test('errors explain what is wrong', async (t) => {
	const { call } = await connect(t, gateway)
	const fails = async (name: string, args: object, text: RegExp): Promise<void> => {
		t.match(await call(name, args), { isError: true, content: [{ type: 'text', text }] }, `${name} ${text}`)
	}
	await fails('run_agent', { agent: 'nobody', prompt: 'x' }, /^not_found: there is no agent "nobody"$/)
	await fails('run_agent', { agent: 'ada' }, /^invalid_arguments: .*"?prompt"? is required/)
	await fails(
		'run_agent',
		{ agent: 'ada', prompt: 'x', temperature: 1 },
		/^invalid_arguments: .*temperature.* not allowed/,
	)
	await fails('run_agent', { agent: 'ada', prompt: 'é'.repeat(60_000) }, /^invalid_arguments: .*102400/)
	await fails('run_agent', { agent: 'ada', prompt: 'x', conversation: 'telegram:1' }, /^invalid_arguments: /)
	await fails('get_run', { run_id: 'none' }, /^not_found: /)
	await t.rejects(call('delete_everything'), { code: -32602, message: /there is no tool "delete_everything"/ })
})

void t.test('a failed run is an error that contains the run', async (t) => {
	await follow(t, gateway, 'tired', { config: { limits: { steps: 1 } } })
	const { call } = await connect(t, gateway)
	const failed = await call('run_agent', { agent: 'tired', prompt: '/tool memory.stm_read {}' })
	t.match(failed, {
		isError: true,
		content: [{ text: /^The run failed: limit_steps: / }],
		structuredContent: { status: 'failed', error: { code: 'limit_steps' } },
	})
})

void t.test("a provider's error code and the cost of a run match the output schema", async (t) => {
	await follow(t, gateway, 'paid', { config: { provider: 'priced' } })
	const { client, call } = await connect(t, gateway)
	await client.listTools() // from now on this client checks
	priced.on('cheap', { text: 'yes', usage: { prompt_tokens: 1000, completion_tokens: 100 } })
	const paid = await call('run_agent', { agent: 'paid', prompt: 'cheap' })
	t.match(paid.structuredContent, { status: 'completed', usage: { cost: 0.003 } })
	priced.on('no money', { status: 429, message: 'You exceeded your quota.', code: 'insufficient_quota' })
	const refused = await call('run_agent', { agent: 'paid', prompt: 'no money' })
	t.match(refused.structuredContent, { status: 'failed', error: { provider_code: 'insufficient_quota' } })
})

void t.test('histories and runs are resources', async (t) => {
	const { client } = await connect(t, gateway)
	const run_id = await ada.complete('for the history')
	const { resources } = await client.listResources()
	t.ok(resources.some(({ uri }) => uri === 'svc://agents/ada/history'))
	t.equal((await client.listResourceTemplates()).resourceTemplates.length, 2)
	const read = async (uri: string): Promise<Answer> =>
		JSON.parse(((await client.readResource({ uri })).contents[0] as { text: string }).text)
	t.match(await read('svc://agents/ada/history'), [{ role: 'user', content: 'for the history' }, { role: 'assistant' }])
	t.match(await read(`svc://runs/${run_id}`), { run_id, status: 'completed', trigger: 'api' })
	for (const uri of [
		'svc://agents/nobody/history',
		'svc://runs/none',
		'file:///etc/passwd',
		'svc://vault/all',
		'no uri',
	])
		await t.rejects(client.readResource({ uri }), { code: -32002 }, uri)
	await t.rejects(client.readResource({ uri: 'svc://agents/ada/history?conversation=%00' }), { code: -32602 })
})

void t.test('an agent can be the client of another one, and passes questions on', async (t) => {
	// A run can do anything, so run_agent declares itself destructive and would require approval.
	const bob = await follow(t, gateway, 'bob', { config: { tools: { allow: ['mcp__team__*'] } } })
	await add(bob, { name: 'team', transport: 'http', url: `${gateway.url}/mcp` })
	const args = JSON.stringify({ agent: 'ada', prompt: ask, conversation: 'of-bob' })
	const run_id = await bob.start(`/tool mcp__team__run_agent ${args}`)
	const { payload } = await bob.waitFor(run_id, 'question.asked')
	t.match(payload.question, /Which one\?/)
	t.equal((await bob.call(`ask-responses/${payload.question_id}`, { answer: 'blue' })).status, 200)
	t.equal((await bob.ended(run_id)).event_type, 'run.completed')
	t.match((await bob.read(run_id)).answer, /blue/)
})

void t.test('deleting an agent ends the call that runs it', async (t) => {
	await follow(t, gateway, 'gone', { config: { provider: 'held' } })
	const { call } = await connect(t, gateway)
	const result = call('run_agent', { agent: 'gone', prompt: 'until I am deleted' })
	await model.called('until I am deleted')
	t.equal((await gateway.request('DELETE', '/v1/agents/gone')).status, 204)
	const { isError, content } = await result
	t.equal(isError, true)
	t.match(content[0].text, /^(The run was stopped\.|not_found: )/)
})

void t.test('a secret that a run has read is redacted in the result', async (t) => {
	const value = 'correct-horse-battery-staple'
	t.equal((await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value } })).status, 201)
	const grant = { agent_id: 'ada', secret_id: 'KEY', reveal: true }
	t.equal((await gateway.request('POST', '/v1/vault/grants', { body: grant })).status, 201)
	const { call } = await connect(t, gateway)
	const result = await call('run_agent', { agent: 'ada', prompt: `/tool vault.read {"name": "KEY"}` })
	t.match(result.content[0].text, /\[redacted:KEY\]/)
	t.notMatch(JSON.stringify(result), value)
	const echo = await call('run_agent', { agent: value, prompt: 'x' })
	t.match(echo.content[0].text, new RegExp(`^not_found: .*${value}`), 'the text of the caller is not redacted')
})
