/** A conversation much longer than its model's window. `CONTEXT_TURNS`: its turns; `CONTEXT_KILLS`: kills of the gateway meanwhile. */
import t from 'tap'
import type { Test } from 'tap'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import { latest, smallProvider, startSmallModel, summaryAsked } from '../../support/small-model.ts'
import type { SmallMessage, SmallReply, SmallRequest } from '../../support/small-model.ts'
import { eventually } from '../../support/wait.ts'

const WINDOW = 8_192
const TURNS = Number(process.env.CONTEXT_TURNS ?? 40)

/** Reads a page in each turn, and in the last one searches for a fact of an early turn. */
function answerTo(request: SmallRequest): SmallReply {
	const { prompt, results } = latest(request)
	if (summaryAsked(request) !== undefined) return `SUMMARY\nPages were read. ${'They say what they say. '.repeat(20)}`
	if (!prompt.startsWith('What is the word')) {
		if (results.length === 0) return { name: 'ledger_page', arguments: JSON.stringify({ number: prompt.length }) }
		return `The page is read. ${'It says what it says. '.repeat(5)}`
	}
	if (results.length === 0) return { name: 'conversation_search', arguments: '{"query":"word of the harbour"}' }
	const [, run_id = ''] = /"run_id":"([^"]+)"/.exec(results[0] ?? '') ?? []
	if (results.length === 1) return { name: 'conversation_read', arguments: JSON.stringify({ run_id, limit: 600 }) }
	return /word of the harbour is (\w+)/.exec(results[1] ?? '')?.[1] ?? 'I do not know'
}

const ledger = `
export default {
	name: 'ledger',
	start(ctx) {
		const page = ({ number }, { run_id }) => 'Page ' + number + ' for ' + run_id + ': ' + 'a line of the ledger with some figures 12.50, '.repeat(30)
		ctx.primitive({ name: 'ledger.page', description: 'Reads a page.', parameters: ctx.joi.object({ number: ctx.joi.number() }), run: page })
	},
}
`

/** Kills of the gateway, spread over the turns: 39 with 2,000 turns are one in 50. */
const KILLS = Number(process.env.CONTEXT_KILLS ?? 0)

interface Server {
	request: TestGateway['request']
	/** Waits until a run has ended. */
	ended(run_id: string): Promise<Answer>
	/** Kills and restarts it. */
	kill(): Promise<void>
}

/** In this process; in a separate one if it is to be killed. */
async function startServer(t: Test, config: string): Promise<Server> {
	const files = { 'plugins/ledger/index.js': ledger }
	if (KILLS === 0) {
		const gateway = await startGateway({ config, files })
		t.teardown(() => gateway.stop())
		return serverOf(gateway.request, async () => {})
	}
	const home = makeHome({ config, files }, t)
	let gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	return serverOf(
		(method, path, options) => send(gateway.url + path, method, options),
		async () => {
			await gateway.kill()
			gateway = await spawnGateway(home)
		},
	)
}

function serverOf(request: TestGateway['request'], kill: () => Promise<void>): Server {
	const read = async (run_id: string): Promise<Answer> => (await request('GET', `/v1/runs/${run_id}`)).body
	const ended = (run_id: string): Promise<Answer> =>
		eventually(
			() => read(run_id),
			(run) => run.ended_at !== null,
		)
	return { request, ended, kill }
}

const promptOf = (turn: number): string =>
	turn === 3 ? 'Remember: the word of the harbour is Heron.' : `Turn ${turn}: read the next page for me.`

void t.test('a long conversation never fails, and loses no message', { timeout: 900_000 }, async (t) => {
	let requestsBefore = 0
	const model = await startSmallModel(t, WINDOW, answerTo)
	const server = await startServer(t, `${smallProvider(model)}plugins:\n  ledger: true\n`)
	const body = {
		name: 'ada',
		persona: 'You are Ada. Never speak of the weather.',
		config: { context: { tokens: WINDOW - 400 }, max_tokens: 400 },
	}
	t.equal((await server.request('POST', '/v1/agents', { body })).status, 201)
	const failed: unknown[] = []
	const runs: Answer[] = []
	let kills = 0
	for (let turn = 1; turn <= TURNS; turn++) {
		const prompt = turn === TURNS ? 'What is the word that I told you?' : promptOf(turn)
		const { run_id } = (await server.request('POST', '/v1/agents/ada/runs', { body: { prompt } })).body
		if (Math.floor((turn * (KILLS + 1)) / TURNS) > kills && kills < KILLS) {
			kills++
			// During a model call, every second time that of the second answer.
			const wanted = requestsBefore + 1 + (kills % 2)
			await eventually(() => model.requests.length >= wanted)
			await server.kill()
		}
		const run = await server.ended(run_id)
		if (run.status !== 'completed') failed.push(run)
		runs.push(run)
		requestsBefore = model.requests.length
	}
	t.strictSame(failed, [], 'no turn fails')
	t.equal(kills, KILLS)
	t.equal(runs.at(-1).answer, 'Heron', 'a fact of turn 3 is found')
	const { conversation } = runs.at(-1)
	t.ok(runs.every((run) => run.conversation === conversation))
	const history = (await server.request('GET', '/v1/agents/ada/history')).body as { role: string; content: string }[]
	const prompts = history.filter(({ role }) => role === 'user').map(({ content }) => content)
	const wanted = runs.map(({ prompt }) => prompt).slice(-1_000)
	t.strictSame(prompts, wanted, 'the history has every prompt once')
	t.equal(history.length, wanted.length * 2, 'and every answer')

	const path = `/v1/agents/ada/conversations/${conversation}/context`
	const { status, body: context } = await server.request('GET', path)
	t.equal(status, 200)
	t.equal((await server.request('GET', '/v1/agents/ada/conversations/nowhere/context')).status, 404)
	t.ok(context.tokens <= context.budget && context.budget <= WINDOW, 'the next request fits')
	const kinds = context.items.map(({ kind }: { kind: string }) => kind)
	t.match(kinds.slice(0, 4), ['instructions', 'tools', 'earlier', 'turn'])
	t.ok(context.items[1].tokens < WINDOW * 0.45, 'the built-in tools leave room in a small window')
	const sum = context.items.reduce((all: number, { tokens }: { tokens: number }) => all + tokens, 0)
	t.equal(sum, context.tokens)
	t.match(context.summary?.text, /^Pages were read\./)

	t.equal(model.refused(), 0, 'no request exceeds the window')
	const requests = model.requests.filter((request) => summaryAsked(request) === undefined)
	t.ok(requests.every(({ messages }) => messages[0]?.content?.startsWith('You are Ada. Never speak of the weather.')))
	t.ok(requests.length >= 2 * TURNS)
	const share = unchangedShare(requests)
	t.ok(share >= 0.8, `${Math.round(share * 100)} % of the requests begin like the previous one`)
	const summaries = model.requests.length - requests.length
	t.comment(
		`${TURNS} turns, ${kills} kills, ${failed.length} failed, ${model.refused()} refused; ${requests.length} requests, ${(share * 100).toFixed(1)} % begin like the previous one; ${summaries} summaries`,
	)
	const texts = requests.map(({ messages }) => JSON.stringify(messages))
	t.ok(
		texts.some((text) => text.includes('<earlier>')),
		'older turns were removed',
	)
	t.ok(
		requests
			.at(-1)
			?.messages.some(({ role, content }) => role === 'tool' && content?.includes('omitted here; it begins: Page')),
		'a removed result is replaced by a note with its beginning',
	)
})

/** The share of requests that begin with all messages before the last prompt of the previous request. */
function unchangedShare(requests: readonly SmallRequest[]): number {
	const before = (messages: SmallMessage[]): SmallMessage[] =>
		messages.slice(
			0,
			messages.findIndex(({ content }) => content?.includes('<context>\n')),
		)
	const same = requests
		.slice(1)
		.filter(({ messages }, at) =>
			before(requests[at]?.messages ?? []).every(
				(message, place) => JSON.stringify(messages[place]) === JSON.stringify(message),
			),
		)
	return same.length / (requests.length - 1)
}
