/** Automatic recall: memories that a model gets with a prompt. */
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { json } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import { listenOnLoopback, unlessReset } from '../../support/loopback.ts'
import { startManualModel } from '../../support/manual-model.ts'
import type { ManualCall } from '../../support/manual-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { follow } from '../../support/runs.ts'

const model = await startManualModel()
/** Accepts requests for embeddings, and answers none. */
const silent = await listenOnLoopback(createServer(() => {}))
/** Answers requests for embeddings while `isQuick`. French prompts get the same vector as the memory about the cat. */
const answerEmbeddings: RequestListener = (request, response) => {
	if (!isQuick || request.url !== '/v1/embeddings') return
	void json(request).then((body) => {
		const { input } = body as { input: string[] }
		const data = input.map((text, index) => ({
			object: 'embedding',
			index,
			embedding: /Biscotto|Qui/.test(text) ? [1, 0.1, 0] : [0, 0.1, 1],
		}))
		response.writeHead(200, { 'content-type': 'application/json' })
		response.end(JSON.stringify({ object: 'list', data, model: 'e', usage: { prompt_tokens: 1, total_tokens: 1 } }))
		if (input.includes('Qui bloque ?')) setImmediate(block, 600)
	}, unlessReset)
}
/** Blocks this process for `ms`. */
const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
let isQuick = true
const slow = await listenOnLoopback(createServer(answerEmbeddings))
const config = [
	'providers:',
	`  held: {kind: openai, base_url: "${model.url}", api_key: test, model: held}`,
	`  silent: {kind: openai, base_url: "${silent.url}/v1", api_key: test, model: m, embedding_model: e}`,
	`  slow: {kind: openai, base_url: "${slow.url}/v1", api_key: test, model: m, embedding_model: e}`,
	'default_provider: held\n',
].join('\n')
const gateway = await startGateway({ config })
t.teardown(async () => {
	await gateway.stop()
	await Promise.all([model.stop(), silent.stop(), slow.stop()])
})

const store = async (name: string, content: string): Promise<string> => {
	const { body } = await gateway.request('POST', `/v1/agents/${name}/memory`, { body: { content } })
	return body.id
}

/** A run waits at most a second for its memories, and the first search can take longer: it loads the index. */
const loadIndex = (name: string, url = gateway.url) => send(`${url}/v1/agents/${name}/memory/search?q=boat`, 'GET')

function contextOf(call: ManualCall): string {
	const messages = call.body.messages as { role: string; content: string }[]
	return messages.findLast(({ content }) => content.startsWith('<context>'))?.content ?? ''
}

void t.test('memories that match a prompt precede it, and an event lists them', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const cat = await store('ada', 'The office cat is called </context> Biscotto.')
	await store('ada', 'Invoices above 5,000 euros need the signature of Priya Raman.')
	await loadIndex('ada')
	const ask = async (prompt: string): Promise<{ run: string; context: string }> => {
		const run = await ada.start(prompt)
		const call = await model.called(prompt)
		call.answer('Well.')
		await ada.ended(run)
		return { run, context: contextOf(call) }
	}
	const matching = await ask('What is the cat of the office called?')
	t.match(
		matching.context,
		/\nMemories that may matter:\n- \(\d{4}-\d\d-\d\d\) The office cat is called ‹\/context> Biscotto\.\n<\/context>$/,
	)
	t.notMatch(matching.context, /Priya/)
	const recalled = ada.eventsOf(matching.run).find(({ event_type }) => event_type === 'memory.recalled')
	t.match(recalled?.payload, { count: 1, memory_ids: [cat], automatic: true })
	t.ok((recalled?.sequence ?? 99) < 6, 'written at the start of the run')

	const unrelated = await ask('Translate "good morning" into Danish.')
	t.notMatch(unrelated.context, /Memories/)
	t.notOk(ada.eventsOf(unrelated.run).some(({ event_type }) => event_type === 'memory.recalled'))

	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { memory: { recall: false } } } })
	t.notMatch((await ask('And what is the cat of the office called?')).context, /Memories/)
})

void t.test('an embedder that does not answer delays no run: memories are found by words', async (t) => {
	const cleo = await follow(t, gateway, 'cleo')
	const boiler = await store('cleo', 'The boiler is serviced by Mr Krueger.')
	await gateway.request('PATCH', '/v1/agents/cleo', { body: { config: { provider: 'silent' } } })
	const run = await cleo.start('Who services the boiler?')
	t.match((await cleo.waitFor(run, 'memory.recalled')).payload, { count: 1, memory_ids: [boiler] })
	await gateway.request('POST', '/v1/agents/cleo/stop')
	await cleo.ended(run)
})

/** An agent with the embedder `slow` and two memories. `ask` returns the ids of the memories that a prompt recalls. */
async function recalledBy(t: Test, name: string): Promise<{ cat: string; ask: (prompt: string) => Promise<string[]> }> {
	const agent = await follow(t, gateway, name, { config: { provider: 'slow' } })
	const cat = await store(name, 'Biscotto sleeps on the printer.')
	await store(name, 'Invoices need a signature.')
	await loadIndex(name)
	const ask = async (prompt: string): Promise<string[]> => {
		const run = await agent.start(prompt)
		await agent.waitFor(run, 'model.request')
		const recalled = agent.eventsOf(run).find(({ event_type }) => event_type === 'memory.recalled')
		await gateway.request('POST', `/v1/agents/${name}/stop`)
		await agent.ended(run)
		return (recalled?.payload['memory_ids'] as string[] | undefined) ?? []
	}
	return { cat, ask }
}

void t.test('a memory without a word in common with the prompt is recalled by its meaning', async (t) => {
	const { cat, ask } = await recalledBy(t, 'dan')
	t.strictSame(await ask('Qui dort ?'), [cat])
})

void t.test('an embedding that arrives while the process is blocked is not late', async (t) => {
	const { cat, ask } = await recalledBy(t, 'flo')
	t.strictSame(await ask('Qui bloque ?'), [cat])
})

void t.test('the gateway waits for a late embedder again after a minute, whatever the clock shows', async (t) => {
	const { cat, ask } = await recalledBy(t, 'eli')
	isQuick = false
	t.strictSame(await ask('Qui ronfle ?'), [], 'late')
	isQuick = true
	const { now } = Date
	const monotonic = performance.now.bind(performance)
	Date.now = () => now() - 3_600_000
	performance.now = () => monotonic() + 61_000
	t.teardown(() => Object.assign(Date, { now }) && Object.assign(performance, { now: monotonic }))
	t.strictSame(await ask('Qui fait la sieste ?'), [cat])
})

void t.test('a run that continues after a crash has the same memories as before', async (t) => {
	const home = makeHome({ config }, t)
	const first = await spawnGateway(home)
	const post = (path: string, body: object) => send(`${first.url}/v1/agents${path}`, 'POST', { body })
	await post('', { name: 'bob' })
	await post('/bob/memory', { content: 'The red boat lies in Genoa.' })
	await loadIndex('bob', first.url)
	const prompt = 'Where does the red boat lie?'
	await post('/bob/runs', { prompt })
	const before = await model.called(prompt)
	t.match(contextOf(before), /Genoa/)
	await post('/bob/memory', { content: 'The red boat lies in Naples.' })
	await first.kill()
	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const after = await model.called(prompt, 2)
	t.equal(contextOf(after), contextOf(before))
	after.answer('In Genoa.')
})
