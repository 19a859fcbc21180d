/** Questions that a tool asks during its call (`ToolCall.ask`), over HTTP. */
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { tidy } from '../../plugins/runs/maintenance.ts'
import { contextProbe } from '../support/context-probe.ts'
import { endedRun } from '../support/ended-run.ts'
import { makeHome, send, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { assertError } from '../support/error-response.ts'
import { runSettings } from '../support/run-settings.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { eventually } from '../support/wait.ts'

/** Tools that ask during a call. GET /v1/form returns the calls, and the errors of abandoned ones. */
const form = `
const calls = []
const outcomes = []
const note = (call, promise) => promise.catch((error) => {
	outcomes.push({ run_id: call.run_id, code: error.code })
	throw error
})
export default {
	name: 'form',
	needs: ['auth'],
	start(ctx) {
		ctx.primitive({
			name: 'form.fill',
			description: 'Asks for each field, one after another.',
			parameters: { type: 'object' },
			async run({ fields }, call) {
				calls.push(call.key)
				const answers = []
				for (const field of fields) answers.push(await note(call, call.ask({ question: field, options: ['yes', 'no'] })))
				return { answers }
			},
		})
		ctx.primitive({
			name: 'form.all',
			description: 'Asks for all fields at once.',
			parameters: { type: 'object' },
			run: ({ fields }, call) => Promise.all(fields.map((question) => call.ask({ question }))),
		})
		ctx.primitive({
			name: 'form.impatient',
			description: 'Asks, and answers before the person does.',
			async run(_args, call) {
				call.ask({ question: 'Too late?' }).catch(() => {})
				while ((await ctx.use('runs').questions(call.agent)).length === 0) await new Promise(setImmediate)
				return 'done without you'
			},
		})
		ctx.primitive({
			name: 'form.either',
			description: 'Continues without an answer.',
			run: (_args, call) => call.ask({ question: 'Or not?' }).catch((error) => ({ without: error.code })),
		})
		ctx.tools(() => [{
			name: 'form.once',
			description: 'Asks in a call that must not be made twice.',
			events: { called: 'form.called', result: 'form.result', failed: 'form.failed' },
			run: (_args, call) => call.ask({ question: 'Once?' }),
		}])
	},
	http(server) {
		server.route({ method: 'GET', path: '/v1/form', handler: () => ({ calls, outcomes }) })
	},
}
`
const config = 'server:\n  shutdown_grace_s: 0\nplugins:\n  form: true\n  probe: true\n'
const probe = contextProbe()
const files = { 'plugins/form/index.js': form, ...probe.files }

const gateway = await startGateway({ config, files })
t.teardown(() => gateway.stop())

/** Waits until the n-th question of a run has paused it, and returns its id. */
async function questionOf(ada: Followed, run_id: string, n = 1): Promise<string> {
	const { payload } = await ada.waitFor(run_id, 'question.asked', n)
	await ada.waitFor(run_id, 'run.paused', n)
	return String(payload.question_id)
}

const answer = (ada: Followed, question_id: string, text: string) =>
	ada.call(`ask-responses/${question_id}`, { answer: text })
const fill = (...fields: string[]): string => `/tool form.fill ${JSON.stringify({ fields })}`

void t.test('a call asks, waits, and continues with the answer', async (t) => {
	const ada = await follow(t, gateway, 'asker')
	const run_id = await ada.start(fill('Name?'))
	const question_id = await questionOf(ada, run_id)
	const question = { question_id, question: 'Name?', options: ['yes', 'no'] }
	t.match(await ada.read(run_id), { status: 'paused', question })
	t.match((await ada.call('questions')).body, [{ ...question, run_id }])
	t.match((await ada.call('runs?status=paused')).body, [{ run_id }])

	t.strictSame((await answer(ada, question_id, 'Ada')).body, { question_id, status: 'answered' })
	await ada.ended(run_id)
	t.strictSame(ada.typesOf(run_id).slice(4), [
		'primitive.called',
		'question.asked',
		'run.paused',
		'question.answered',
		'run.resumed',
		'primitive.result',
		'model.request',
		'model.response',
		'message.assistant',
		'run.completed',
	])
	t.strictSame((await ada.waitFor(run_id, 'question.asked')).payload, question)
	t.strictSame((await ada.waitFor(run_id, 'run.paused')).payload, { question_id })
	t.strictSame((await ada.waitFor(run_id, 'question.answered')).payload, {
		question_id,
		answer: 'Ada',
		actor: { kind: 'local' },
	})
	t.strictSame((await ada.waitFor(run_id, 'run.resumed')).payload, { reason: 'answer', question_id })
	t.match((await ada.waitFor(run_id, 'primitive.result')).payload, { result: '{"answers":["Ada"]}' })
	t.match(await ada.read(run_id), { status: 'completed', question: null })
	t.strictSame((await ada.call('questions')).body, [])
	assertError(t, await answer(ada, question_id, 'Eve'), { status: 409, code: 'already_answered' })
	const { calls } = (await gateway.request('GET', '/v1/form')).body
	t.equal(calls.filter((key: string) => key.startsWith(run_id)).length, 1, 'the call was made once')
})

void t.test('several questions of one call are asked one after another, even if it asks them at once', async (t) => {
	const ada = await follow(t, gateway, 'serial')
	for (const [prompt, result] of [
		[fill('a?', 'b?', 'c?'), '{"answers":["1","2","3"]}'],
		['/tool form.all {"fields":["a?","b?","c?"]}', '["1","2","3"]'],
	] as const) {
		const run_id = await ada.start(prompt)
		for (const n of [1, 2, 3]) {
			const question_id = await questionOf(ada, run_id, n)
			t.match((await ada.call('questions')).body, [{ question_id }], 'one question is open at a time')
			t.equal((await answer(ada, question_id, String(n))).status, 200)
		}
		await ada.ended(run_id)
		t.match((await ada.waitFor(run_id, 'primitive.result')).payload, { result })
		const pauses = ada.typesOf(run_id).filter((type) => type === 'run.paused' || type === 'run.resumed')
		t.strictSame(pauses, ['run.paused', 'run.resumed', 'run.paused', 'run.resumed', 'run.paused', 'run.resumed'])
	}
	const many = await ada.start(`/tool form.all ${JSON.stringify({ fields: Array(20).fill('?') })}`)
	t.match((await ada.waitFor(many, 'primitive.failed')).payload, { code: 'queue_full', message: /one after another/ })
	await ada.ended(many)
	t.strictSame((await ada.call('questions')).body, [], 'the questions of the failed call are withdrawn')
})

void t.test('one of many concurrent answers is accepted', async (t) => {
	const ada = await follow(t, gateway, 'once')
	const run_id = await ada.start(fill('Once?'))
	const question_id = await questionOf(ada, run_id)
	const replies = await Promise.all(Array.from({ length: 10 }, (_, n) => answer(ada, question_id, `answer ${n}`)))
	t.equal(replies.filter((reply) => reply.status === 200).length, 1)
	const accepted = replies.findIndex((reply) => reply.status === 200)
	await ada.ended(run_id)
	t.match((await ada.waitFor(run_id, 'primitive.result')).payload, { result: `{"answers":["answer ${accepted}"]}` })
})

void t.test('a stop or a cancel withdraws the question, and the call gets an error', async (t) => {
	const ada = await follow(t, gateway, 'stopped')
	for (const end of [() => ada.call('stop', {}), (id: string) => gateway.request('POST', `/v1/runs/${id}/cancel`)]) {
		const run_id = await ada.start(fill('Still there?'))
		const question_id = await questionOf(ada, run_id)
		t.equal((await end(run_id)).status, 200)
		t.match(await ada.read(run_id), { status: 'stopped', question: null })
		t.strictSame((await ada.call('questions')).body, [])
		assertError(t, await answer(ada, question_id, 'yes'), { status: 409, code: 'conflict' })
		await ada.complete('Hello again.')
		const { events } = (await gateway.request('GET', `/v1/audit?run_id=${run_id}`)).body
		t.equal(events[0].event_type, 'run.stopped', 'it is the last event')
		const { outcomes } = (await gateway.request('GET', '/v1/form')).body
		t.match(outcomes.at(-1), { run_id, code: 'stopped' })
	}
})

void t.test('a call that ends without its answer withdraws the question', async (t) => {
	const ada = await follow(t, gateway, 'impatient')
	const run_id = await ada.start('/tool form.impatient {}')
	const question_id = await questionOf(ada, run_id)
	await ada.ended(run_id)
	t.match((await ada.waitFor(run_id, 'run.resumed')).payload, { reason: 'withdrawn', question_id })
	const types = ada.typesOf(run_id)
	t.ok(types.indexOf('run.resumed') < types.indexOf('primitive.result'), 'before its result')
	t.match(await ada.read(run_id), { status: 'completed', question: null, answer: /done without you/ })
	assertError(t, await answer(ada, question_id, 'late'), {
		status: 409,
		code: 'conflict',
		message: /withdrawn with the call/,
	})
})

void t.test('the time that a call waits for an answer does not count as wall time', async (t) => {
	const ada = await follow(t, gateway, 'patient', { config: { limits: { wall_time_s: 3 } } })
	const run_id = await ada.start(`${fill('Take your time?')}\n/tool memory.stm_read {}`)
	const question_id = await questionOf(ada, run_id)
	await pause(5_100) // longer than the limit and its grace period
	t.match(await ada.read(run_id), { status: 'paused' })
	await answer(ada, question_id, 'thanks')
	t.equal((await ada.ended(run_id)).event_type, 'run.completed')
})

void t.test('a question expires, and the call can continue without an answer', async (t) => {
	const ctx = { ...probe.context(), config: runSettings }
	const ada = await follow(t, gateway, 'expiring')
	const run_id = await ada.start('/tool form.either {}')
	const question_id = await questionOf(ada, run_id)
	const day = 24 * 3600 * 1000
	await tidy(ctx, Date.now() + 6 * day)
	t.match(await ada.read(run_id), { status: 'paused' }, 'not yet')
	await tidy(ctx, Date.now() + 8 * day)
	await ada.ended(run_id)
	t.match((await ada.waitFor(run_id, 'run.resumed')).payload, { reason: 'expired', question_id })
	t.match((await ada.waitFor(run_id, 'primitive.result')).payload, { result: '{"without":"question_expired"}' })
	assertError(t, await answer(ada, question_id, 'late'), {
		status: 409,
		code: 'conflict',
		message: /not answered in time/,
	})
})

void t.test('a reload of the runs plugin leaves the question open', async (t) => {
	const ada = await follow(t, gateway, 'reloaded')
	const run_id = await ada.start(fill('Still?'))
	const question_id = await questionOf(ada, run_id)
	writeFileSync(`${gateway.home}/config/gateway.yaml`, `${config}runs:\n  max_waiting: 7\n`)
	await gateway.running.gateway.reload()
	t.match(await ada.read(run_id), { status: 'paused', question: { question_id } })
	t.equal((await answer(ada, question_id, 'yes')).status, 200)
	t.equal((await ada.ended(run_id)).event_type, 'run.completed')
})

for (const how of ['stopped', 'killed'] as const) {
	void t.test(
		`a gateway that is ${how} withdraws the question, and asks again if the call can be repeated`,
		async (t) => {
			const home = makeHome({ config, files }, t)
			const first = await spawnGateway(home)
			t.teardown(() => first.kill())
			const at = (url: string): Pick<TestGateway, 'url' | 'request'> => ({
				url,
				request: (method, path, options) => send(url + path, method, options),
			})
			const adaBefore = await follow(t, at(first.url), 'ada')
			const bobBefore = await follow(t, at(first.url), 'bob')
			const cyBefore = await follow(t, at(first.url), 'cy')
			const again = await adaBefore.start(fill('Again?'))
			const once = await bobBefore.start('/tool form.once {}')
			// This call returns as soon as the question is withdrawn, which must not become its result.
			const either = await cyBefore.start('/tool form.either {}')
			const [old, lost] = [await questionOf(adaBefore, again), await questionOf(bobBefore, once)]
			await questionOf(cyBefore, either)
			await (how === 'killed' ? first.kill() : first.end())

			const second = await startGateway({ home })
			t.teardown(() => second.stop())
			const ada = await follow(t, second, 'ada')
			const bob = await follow(t, second, 'bob')
			// The run may have ended before the stream was open.
			const interrupted = await endedRun(second.url, once)
			t.match(interrupted, { status: 'completed', answer: /tool_interrupted|nothing waits for the answer/ })
			assertError(t, await answer(bob, lost, 'x'), { status: 409, code: 'conflict', message: /withdrawn/ })

			const openOf = (agent: Followed) =>
				eventually(
					async () => (await agent.call('questions')).body,
					({ length }) => length > 0,
				)
			t.match(await openOf(await follow(t, second, 'cy')), [{ question: 'Or not?', run_id: either }])
			const open = await openOf(ada)
			t.match(open, [{ question: 'Again?', run_id: again }])
			const { question_id } = open[0]
			t.not(question_id, old)
			assertError(t, await answer(ada, old, 'x'), { status: 409, code: 'conflict', message: /withdrawn .*is repeated/ })
			t.equal((await answer(ada, question_id, 'yes')).status, 200)
			await ada.ended(again)
			t.match(await ada.read(again), { status: 'completed', answer: /yes/ })
			const { events } = (await second.request('GET', `/v1/audit?run_id=${again}`)).body
			const types: string[] = events.map((event: { event_type: string }) => event.event_type)
			for (const [type, times] of [
				['question.asked', 2],
				['question.answered', 1],
				['primitive.result', 1],
			] as const)
				t.equal(types.filter((one) => one === type).length, times, type)
		},
	)
}
