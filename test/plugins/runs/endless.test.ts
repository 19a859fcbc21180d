/** A conversation that is far longer than its model's window. `CONTEXT_TURNS` sets how long. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { latest, smallProvider, startSmallModel, summaryAsked } from '../../support/small-model.ts'
import type { SmallMessage, SmallReply, SmallRequest } from '../../support/small-model.ts'

const WINDOW = 8_192
const TURNS = Number(process.env.CONTEXT_TURNS ?? 40)

/** Looks a page up in each turn, and looks for what it was told long ago. */
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

void t.test('a conversation never fails by its size, and nothing said in it is lost', async (t) => {
	const model = await startSmallModel(t, WINDOW, answerTo)
	const gateway = await startGateway({
		config: `${smallProvider(model)}plugins:\n  ledger: true\n`,
		files: { 'plugins/ledger/index.js': ledger },
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada', {
		persona: 'You are Ada. Never speak of the weather.',
		config: { context: { tokens: WINDOW - 400 }, max_tokens: 400 },
	})
	let last = ''
	for (let turn = 1; turn <= TURNS; turn++) {
		const told = turn === 3 ? 'Remember: the word of the harbour is Heron.' : `Turn ${turn}: read the next page for me.`
		last = await ada.complete(turn === TURNS ? 'What is the word that I told you?' : told)
	}
	t.equal((await ada.read(last)).answer, 'Heron', 'a fact of turn 3 is found')
	const { conversation } = await ada.read(last)
	const { status, body } = await gateway.request('GET', `/v1/agents/ada/conversations/${conversation}/context`)
	t.equal(status, 200)
	t.equal((await gateway.request('GET', '/v1/agents/ada/conversations/nowhere/context')).status, 404)
	t.ok(body.tokens <= body.budget && body.budget <= WINDOW, 'the next request fits')
	t.equal(
		body.items.reduce((sum: number, { tokens }: { tokens: number }) => sum + tokens, 0),
		body.tokens,
	)
	t.match(body.items.map(({ kind }: { kind: string }) => kind).slice(0, 4), [
		'instructions',
		'tools',
		'earlier',
		'turn',
	])
	t.equal(model.refused(), 0, 'no request is over the window')
	const requests = model.requests.filter((request) => summaryAsked(request) === undefined)
	t.ok(requests.every(({ messages }) => messages[0]?.content?.startsWith('You are Ada. Never speak of the weather.')))
	t.ok(requests.length >= 2 * TURNS)
	const before = (messages: SmallMessage[]): string[] =>
		messages
			.slice(
				0,
				messages.findIndex(({ content }) => content?.includes('<context>\n')),
			)
			.map((one) => JSON.stringify(one))
	const same = requests.slice(1).filter(({ messages }, at) => {
		const next = messages.map((one) => JSON.stringify(one))
		return before(requests[at]?.messages ?? []).every((one, place) => next[place] === one)
	})
	const share = same.length / (requests.length - 1)
	t.ok(share >= 0.8, `${Math.round(share * 100)} % of the requests begin as the one before`)
	t.comment(`${requests.length} requests, ${Math.round(share * 100)} % begin as the one before`)
	t.ok(
		requests.some(({ messages }) => JSON.stringify(messages).includes('<earlier>')),
		'it was cut',
	)
	const shown = requests.at(-1)?.messages ?? []
	t.ok(
		shown.some(({ role, content }) => role === 'tool' && content?.includes('left out here; it begins: Page')),
		'stubs say what was there',
	)
})
