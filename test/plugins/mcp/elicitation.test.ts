/** What a server asks during a call (elicitation) becomes a question of the run. */
import t from 'tap'
import { watchDeadlines } from '../../support/deadlines.ts'
import { startGateway } from '../../support/gateway.ts'
import { add, servers, stdio } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'
import { converse } from './converse.ts'

const CALL_TIMEOUT_S = 3001
const gateway = await startGateway({ config: `mcp: {call_timeout_s: ${CALL_TIMEOUT_S}, max_call_s: 80000}\n` })
t.teardown(() => gateway.stop())

const ask = (fields: object, required: string[] = []): string =>
	`/tool mcp__own__ask ${JSON.stringify({ message: 'Who are you?', fields, required })}`

void t.test("one field: the answer is the value, and the person's time does not count", async (t) => {
	const ada = await follow(t, gateway, 'ada')
	await add(ada, stdio('own', servers.fixture))
	const deadlines = watchDeadlines(t, CALL_TIMEOUT_S * 1000)
	const run_id = await ada.start(ask({ name: { type: 'string', title: 'Name' } }, ['name']))
	const question = await ada.waitFor(run_id, 'question.asked')
	t.match(
		question.payload.question,
		/The MCP server "own" asks: Who are you\?\n\nname: Name \[text\]. "decline" refuses/,
	)
	t.equal((await ada.read(run_id)).status, 'paused')
	t.strictSame([deadlines.set(), deadlines.pending()], [2, 0], 'progress restarts the deadline, a question stops it')
	const { result } = await converse(t, ada, run_id, ['Ada Lovelace'])
	t.strictSame(JSON.parse(result), { action: 'accept', content: { name: 'Ada Lovelace' } })
	t.strictSame([deadlines.set(), deadlines.pending()], [3, 0], 'the answer restarts it, the result ends it')
	t.ok(ada.typesOf(run_id).includes('run.resumed'))
	t.equal((await ada.read(run_id)).status, 'completed')
})

void t.test('several fields are asked one by one; after an invalid answer the question is repeated', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	await add(bea, stdio('own', servers.fixture))
	const fields = {
		age: { type: 'integer', minimum: 0 },
		colour: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
		news: { type: 'boolean' },
		note: { type: 'string' },
		size: { type: 'string', default: 'medium' },
	}
	const run_id = await bea.start(ask(fields, ['age', 'colour', 'news']))
	const { asked, result } = await converse(t, bea, run_id, ['old', '36', 'green', 'yes', 'skip', 'skip'])
	t.match(asked[0].question, /age \[a whole number\] \(1 of 5\).*A JSON object answers all at once/s)
	t.match(asked[1].question, /^That answer is not valid: answer with a number/)
	t.strictSame(asked[2].options, ['Red', 'Green'])
	t.strictSame(asked[3].options, ['yes', 'no'])
	t.match(asked[4].question, /"skip" leaves it out/)
	t.strictSame(JSON.parse(result).content, { age: 36, colour: 'g', news: true, size: 'medium' })
})

void t.test('a JSON object answers all fields of a form; declining rejects the form', async (t) => {
	const cleo = await follow(t, gateway, 'cleo')
	await add(cleo, stdio('own', servers.fixture))
	const fields = { a: { type: 'number' }, b: { type: 'array', items: { type: 'string', enum: ['x', 'y'] } } }
	const filled = await converse(t, cleo, await cleo.start(ask(fields, ['a'])), [
		'{"a": 1.5, "c": 2}',
		'{"a": 1.5, "b": ["x"]}',
	])
	t.match(filled.asked[1].question, /there is no field "c"/)
	t.strictSame(JSON.parse(filled.result), { action: 'accept', content: { a: 1.5, b: ['x'] } })
	const declined = await converse(t, cleo, await cleo.start(ask(fields, ['a'])), ['decline'])
	t.strictSame(JSON.parse(declined.result), { action: 'decline' })
	const empty = await converse(t, cleo, await cleo.start(ask({})), ['accept'])
	t.strictSame(JSON.parse(empty.result), { action: 'accept', content: {} })
})

void t.test('stopping a run withdraws the question of its server', async (t) => {
	const dora = await follow(t, gateway, 'dora')
	await add(dora, stdio('own', servers.fixture))
	const run_id = await dora.start(ask({ name: { type: 'string' } }))
	const { payload } = await dora.waitFor(run_id, 'question.asked')
	await gateway.request('POST', '/v1/agents/dora/stop', { body: {} })
	t.equal((await dora.ended(run_id)).event_type, 'run.stopped')
	t.equal((await dora.call(`ask-responses/${payload.question_id}`, { answer: 'late' })).status, 409)
	t.strictSame((await dora.call('questions')).body, [])
})
