/** What a program does with agents over MCP, by the official client. */
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { add } from '../../support/mcp.ts'
import { startModelServer } from '../../support/model-server.ts'
import { startHeldModel } from '../../support/held-model.ts'
import { follow } from '../../support/runs.ts'
import { config, connect, makeToken, until } from './client.ts'

const model = await startHeldModel()
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

/** The run with this prompt is paused. */
async function asks(t: Test, prompt: string): Promise<Answer> {
	let found: Answer
	await until(async () => {
		const runs = (await ada.call('runs')).body as Answer[]
		found = runs.find((one) => one.prompt === prompt && one.status === 'paused')
		return found
	}, `a run asks: ${prompt}`)
	t.match(found.question, { question_id: String })
	return found
}

void t.test('what there is, and that it is described', async (t) => {
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
		t.not(annotations.readOnlyHint, annotations.destructiveHint, 'what only reads destroys nothing')
	}
	t.same(
		tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name),
		['list_agents', 'search_memory', 'get_run', 'list_runs'],
	)
})

void t.test('agents in pages', async (t) => {
	const { call } = await connect(t, gateway)
	const first = await call('list_agents', { limit: 1 })
	t.match(first.structuredContent, { agents: [{ name: 'ada', persona: 'Ada knows engines.' }], next: 'ada' })
	t.same(JSON.parse(first.content[0].text), first.structuredContent)
	const second = await call('list_agents', { after: 'ada' })
	t.match(second.structuredContent, { agents: [{ name: 'held', persona: null }], next: null })
})

void t.test('a run is an ordinary one, and tells how far it is', async (t) => {
	const { call } = await connect(t, gateway)
	const told: { progress: number; message?: string | undefined }[] = []
	const prompt = '/tool memory.stm_read {}'
	const result = await call('run_agent', { agent: 'ada', prompt }, { onprogress: (one) => told.push(one) })
	const { structuredContent: run, content } = result
	t.match(run, { agent: 'ada', status: 'completed', trigger: 'mcp', prompt, question: null, error: null })
	t.equal(content[0].text, run.answer)
	t.not(result.isError, true)
	t.match(await ada.read(run.run_id), { status: 'completed', trigger: 'mcp', answer: run.answer })
	t.ok(told.some(({ message }) => message === 'calling memory.stm_read'))
	t.same(
		told.map(({ progress }) => progress),
		told.map((_, index) => index + 1),
	)
	t.match((await call('get_run', { run_id: run.run_id })).structuredContent, run)
})

void t.test('each session has a conversation of its own, and a name makes one that lasts', async (t) => {
	const [one, two] = [await connect(t, gateway), await connect(t, gateway)]
	const talk = async ({ call }: typeof one, args: object): Promise<string> =>
		(await call('run_agent', { agent: 'ada', prompt: 'hello', ...args })).structuredContent.conversation
	const first = await talk(one, {})
	t.equal(await talk(one, {}), first)
	t.not(await talk(two, {}), first)
	const named = await talk(one, { conversation: 'notes' })
	t.equal(await talk(two, { conversation: 'notes' }), named)
	const { token } = await makeToken(gateway, 'runs:write')
	const stranger = await connect(t, gateway, { token })
	t.not(await talk(stranger, { conversation: 'notes' }), named, "nobody talks in another caller's conversation")
	const read = await one.client.readResource({ uri: `svc://agents/ada/history?conversation=${named}` })
	t.equal(JSON.parse((read.contents[0] as { text: string }).text).length, 4)
})

void t.test('a question is told, and answer_question lets the run go on', async (t) => {
	const { call } = await connect(t, gateway)
	const paused = await call('run_agent', { agent: 'ada', prompt: ask })
	const { run_id, question } = paused.structuredContent
	t.match(paused.structuredContent, {
		status: 'paused',
		question: { question: 'Which one?', options: ['red', 'blue'] },
	})
	t.match(paused.content[0].text, new RegExp(`Which one\\?\n- red\n- blue\n\n.*${run_id}.*${question.question_id}`))
	const behind = await call('run_agent', { agent: 'ada', prompt: 'hello' })
	t.equal(behind.isError, true)
	t.match(behind.content[0].text, `conflict: this conversation waits for the answer to a question`)
	const { question_id } = question
	const ended = await call('answer_question', { run_id, question_id, answer: 'blue' })
	t.match(ended.structuredContent, { run_id, status: 'completed', answer: /blue/ })
	const again = await call('answer_question', { run_id, question_id, answer: 'red' })
	t.match(again, { isError: true, content: [{ text: /^already_answered: / }] })
})

void t.test('a question is answered for the run that asks, for no other', async (t) => {
	const { call } = await connect(t, gateway)
	const start = async (conversation: string) =>
		(await call('run_agent', { agent: 'ada', prompt: ask, conversation })).structuredContent
	const [one, other] = [await start('one-asks'), await start('other-asks')]
	const { question_id } = other.question
	const mixed = await call('answer_question', { run_id: one.run_id, question_id, answer: 'red' })
	t.match(mixed, { isError: true, content: [{ text: /^conflict: / }] })
	t.match(mixed.content[0].text, other.run_id)
	t.equal((await ada.read(other.run_id)).status, 'paused', 'nothing is answered')
	for (const { run_id } of [one, other]) await call('stop_run', { run_id })
})

void t.test('where the client can ask, its person is asked', async (t) => {
	const asked: Answer[] = []
	const { call, transport } = await connect(t, gateway, {
		elicit(params) {
			asked.push(params)
			return { action: 'accept', content: { answer: 'blue' } }
		},
	})
	const heard: unknown[] = []
	const { onmessage } = transport
	transport.onmessage = (message) => {
		if ('method' in message) heard.push(message.method)
		onmessage?.(message)
	}
	const { structuredContent: run } = await call('run_agent', { agent: 'ada', prompt: ask })
	t.match(run, { status: 'completed', answer: /blue/ })
	t.same(heard, ['elicitation/create'], 'what was answered is not taken back')
	const answer = { type: 'string', title: 'Answer', enum: ['red', 'blue'] }
	const requestedSchema = { type: 'object', properties: { answer }, required: ['answer'] }
	t.match(asked, [{ message: 'Which one?', requestedSchema }])
	t.equal(asked.length, 1)
})

void t.test('an approval is asked in a form or answered by its tool, and the call is made as approved', async (t) => {
	const careful = await follow(t, gateway, 'careful', { config: { tools: { ask: ['memory.store'] } } })
	const args = { agent: 'careful', prompt: '/tool memory.store {"content": "written by the model"}' }
	const stored = async (): Promise<string[]> =>
		(await careful.call('memory')).body.memories.map(({ content }: Answer) => content)

	const { call } = await connect(t, gateway)
	const paused = (await call('run_agent', args)).structuredContent
	t.match(paused, {
		status: 'paused',
		question: {
			question: /memory\.store[^]*written by the model/,
			options: ['approve', 'approve_always', 'edit', 'refuse'],
		},
	})
	const { run_id, question } = paused
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
	t.strictSame(choices, [['approve', 'approve_always', 'refuse']], 'a form has no place for other arguments')
	t.strictSame(await stored(), ['written by a person'])
})

void t.test('a person who does not want to say leaves the question open', async (t) => {
	const { call } = await connect(t, gateway, { elicit: () => ({ action: 'decline' }) })
	const { structuredContent: run } = await call('run_agent', { agent: 'ada', prompt: ask })
	t.match(run, { status: 'paused', question: { question: 'Which one?' } })
	t.match((await call('stop_run', { run_id: run.run_id })).structuredContent, { status: 'stopped', question: null })
})

void t.test('an answer from elsewhere takes the question back', async (t) => {
	let takenBack = 0
	const { call } = await connect(t, gateway, {
		elicit: (_, signal) =>
			new Promise((_resolve, reject) => {
				signal.addEventListener('abort', () => {
					takenBack++
					reject(new Error('taken back'))
				})
			}),
	})
	const prompt = `${ask}\nelsewhere`
	const result = call('run_agent', { agent: 'ada', prompt })
	const { question } = await asks(t, prompt)
	await ada.call(`ask-responses/${question.question_id}`, { answer: 'red' })
	t.match((await result).structuredContent, { status: 'completed', answer: /red/ })
	await until(() => takenBack === 1, 'the person is no longer asked')
})

void t.test('a sub-agent that asks is heard too', async (t) => {
	const { call } = await connect(t, gateway)
	const inner = JSON.stringify({ prompt: ask, wait: true })
	const paused = (await call('run_agent', { agent: 'ada', prompt: `/tool subagent.spawn ${inner}` })).structuredContent
	t.match(paused, { status: 'paused', question: { question: 'Which one?' } })
	t.not(paused.question.run_id, paused.run_id)
	const { run_id, question_id } = paused.question
	const { runs } = (await call('list_runs', { agent: 'ada', limit: 2 })).structuredContent
	t.match(runs, [{ question: { run_id, question_id } }, { run_id: paused.run_id, question: { run_id, question_id } }])
	const asker = await call('answer_question', { run_id, question_id, answer: 'red' })
	t.match(asker.structuredContent, { status: 'completed', answer: /red/ })
	await until(async () => (await ada.read(paused.run_id)).status === 'completed', 'the run above goes on')

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

void t.test('a call that is taken back stops its run', async (t) => {
	const { call } = await connect(t, gateway)
	const stop = new AbortController()
	const result = call('run_agent', { agent: 'held', prompt: 'for ever' }, { signal: stop.signal })
	const { hungUp } = await model.called('for ever')
	stop.abort('enough')
	await t.rejects(result)
	await hungUp
	await until(async () => (await held.call('runs')).body[0]?.status === 'stopped', 'the run is stopped')
	t.same((await call('list_agents', { limit: 1 })).structuredContent.next, 'ada', 'the session goes on')
})

void t.test('without waiting: start, look, list, stop', async (t) => {
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
	t.equal(runs[0].answer.length, 501, 'a list has the beginning only')

	const two = await call('run_agent', { agent: 'held', prompt: 'to be stopped', wait: false })
	await model.called('to be stopped')
	t.same((await call('stop_agent', { agent: 'held' })).structuredContent, { agent: 'held', status: 'stopped' })
	t.match(await held.read(two.structuredContent.run_id), { status: 'stopped' })
	const ended = await call('stop_run', { run_id })
	t.match(ended, { structuredContent: { status: 'completed' } }, 'what has ended stays as it is')
})

void t.test('memory is searched', async (t) => {
	const { call } = await connect(t, gateway)
	await ada.call('memory', { content: 'The difference engine computes polynomials.' })
	const found = await call('search_memory', { agent: 'ada', query: 'difference engine' })
	t.match(found.structuredContent, { memories: [{ content: /polynomials/, similarity: Number }] })
})

void t.test('what goes wrong is told in words', async (t) => {
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

void t.test('a run that fails is an error with the run in it', async (t) => {
	await follow(t, gateway, 'tired', { config: { limits: { steps: 1 } } })
	const { call } = await connect(t, gateway)
	const failed = await call('run_agent', { agent: 'tired', prompt: '/tool memory.stm_read {}' })
	t.match(failed, {
		isError: true,
		content: [{ text: /^The run failed: limit_steps: / }],
		structuredContent: { status: 'failed', error: { code: 'limit_steps' } },
	})
})

void t.test("a provider's code, and what a run cost, are in the schema by which clients check results", async (t) => {
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

void t.test('agents of a gateway are such clients too, and pass questions on', async (t) => {
	// What runs an agent may do anything, so it declares itself destructive and would ask.
	const bob = await follow(t, gateway, 'bob', { config: { tools: { allow: ['mcp__team__*'] } } })
	await add(bob, { name: 'team', transport: 'http', url: `${gateway.url}/mcp` })
	const args = JSON.stringify({ agent: 'ada', prompt: ask, conversation: 'of-bob' })
	const run_id = await bob.start(`/tool mcp__team__run_agent ${args}`)
	const { payload } = await bob.heard(run_id, 'question.asked')
	t.match(payload.question, /Which one\?/)
	t.equal((await bob.call(`ask-responses/${payload.question_id}`, { answer: 'blue' })).status, 200)
	t.equal((await bob.ended(run_id)).event_type, 'run.completed')
	t.match((await bob.read(run_id)).answer, /blue/)
})

void t.test('an agent that is deleted takes its run with it', async (t) => {
	const gone = await follow(t, gateway, 'gone', { config: { provider: 'held' } })
	const { call } = await connect(t, gateway)
	const result = call('run_agent', { agent: 'gone', prompt: 'until I am deleted' })
	await model.called('until I am deleted')
	t.equal((await gateway.request('DELETE', '/v1/agents/gone')).status, 204)
	const { isError, content } = await result
	t.equal(isError, true)
	t.match(content[0].text, /^(The run was stopped\.|not_found: )/)
	t.ok(gone)
})

void t.test('a secret that was read does not show', async (t) => {
	const value = 'correct-horse-battery-staple'
	t.equal((await gateway.request('POST', '/v1/vault/secrets', { body: { name: 'KEY', value } })).status, 201)
	const grant = { agent_id: 'ada', secret_id: 'KEY', reveal: true }
	t.equal((await gateway.request('POST', '/v1/vault/grants', { body: grant })).status, 201)
	const { call } = await connect(t, gateway)
	const result = await call('run_agent', { agent: 'ada', prompt: `/tool vault.read {"name": "KEY"}` })
	t.match(result.content[0].text, /\[redacted:KEY\]/)
	t.notMatch(JSON.stringify(result), value)
	const echo = await call('run_agent', { agent: value, prompt: 'x' })
	t.match(echo.content[0].text, new RegExp(`^not_found: .*${value}`), 'a caller reads its own words as it wrote them')
})
