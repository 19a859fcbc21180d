/** Messages that plugins send to a conversation, and the runs that receive them. */
import t from 'tap'
import type { Test } from 'tap'
import type { AgentRef } from '../../../core/plugin.ts'
import type { OpenQuestion, NewMessage, RunListener } from '../../../plugins/runs/contract.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'

const probe = contextProbe()
const gateway = await startGateway({ config: 'plugins: { probe: true }\n', files: probe.files })
t.teardown(() => gateway.stop())
const runs = () => probe.context().use('runs')

const asking = (question: string): string => `/tool ask ${JSON.stringify({ question })}`
const spawning = (prompt: string): string => `/tool subagent.spawn ${JSON.stringify({ prompt })}`

async function agent(t: Test, name: string): Promise<Followed & { ref: AgentRef }> {
	const followed = await follow(t, gateway, name)
	const { agent_uid: uid } = await runs().get(await followed.complete('hello'))
	return { ...followed, ref: { name, uid } }
}
const message = (prompt: string, fields: Partial<NewMessage> = {}): NewMessage => ({
	prompt,
	trigger: 'api',
	...fields,
})

void t.test('a message starts a run, and its listener receives pieces, events and the result', async (t) => {
	const { ref } = await agent(t, 'ada')
	const pieces: string[] = []
	const types = new Set<string>()
	const answerTo = (): never => t.fail('the run asks no question') as never
	const { run_id, result } = await runs().converse(ref, message('Say this.', { answerTo }), {
		text: (piece) => pieces.push(piece),
		event: ({ event_type }) => types.add(event_type),
	})
	const { text, ...rest } = await result
	const { answer, usage } = await runs().get(run_id)
	t.match(rest, { status: 'completed', isWhole: true, usage, error: null, model: String })
	t.equal(text, answer)
	t.equal(pieces.join(''), answer)
	for (const type of ['run.started', 'message.user', 'run.completed']) t.ok(types.has(type), type)
	const late = await runs().follow(run_id)
	t.match(await late.result, { status: 'completed', text })
	t.match(await runs().result(await runs().get(run_id)), { status: 'completed', text })
	await t.rejects(runs().follow('none'), { code: 'not_found' })
	t.equal(await runs().find('none'), undefined)
	t.equal(await runs().stop(run_id), false, 'the run has ended')
})

void t.test('a question is the result, and the next message answers it or starts another run', async (t) => {
	const { ref } = await agent(t, 'bob')
	const first = await runs().converse(ref, message(asking('Which?')))
	const { question, text } = await first.result
	t.match(question, { question: 'Which?', run_id: first.run_id })
	t.equal(text, 'Which?')

	const behind = await runs().converse(ref, message('behind'), { until: ['blocked'], stopsRun: true })
	t.not(behind.run_id, first.run_id)
	t.match(await behind.result, { status: 'blocked' })
	t.equal(await runs().stop(behind.run_id), true)

	const seen: unknown[] = []
	const also: NewMessage['also'] = async (run_id, isNew) => (seen.push(run_id, isNew), [])
	const refuse = (): never => {
		throw new Error('refused')
	}
	await t.rejects(runs().converse(ref, message('no', { answerTo: refuse, also })), { message: 'refused' })
	const answerTo: NewMessage['answerTo'] = async (run, asked) => (seen.push(run.run_id, asked), 'The first.')
	const second = await runs().converse(ref, message('ignored', { answerTo, also }))
	t.strictSame(seen, [first.run_id, question, first.run_id, false])
	t.equal(second.run_id, first.run_id)
	t.match(await second.result, { status: 'completed', text: /The first/ })
	seen.splice(0)
	const third = await runs().converse(ref, message('new', { answerTo, also }))
	t.strictSame(seen, [third.run_id, true])
	await third.result
})

void t.test('a message starts a new run if the question was answered just before', async (t) => {
	const { ref, ended } = await agent(t, 'late')
	const first = await runs().converse(ref, message(asking('Who?')))
	await first.result
	const second = await runs().converse(
		ref,
		message('I do', {
			async answerTo(run, { question_id }) {
				await runs().answer(ref, question_id, 'somebody else')
				await ended(run.run_id)
				return 'too late'
			},
		}),
	)
	t.not(second.run_id, first.run_id)
	t.match(await second.result, { status: 'completed', text: /I do/ })
})

void t.test('a listener with ask receives questions, also those of sub-agents', async (t) => {
	const { ref, call } = await agent(t, 'cid')
	const asked: [OpenQuestion, boolean][] = []
	const { run_id, result } = await runs().converse(ref, message(`${asking('One?')}\n${spawning(asking('Two?'))}`), {
		async ask(question, _, isOfSubagent) {
			asked.push([question, isOfSubagent])
			return `answer to ${question.question}`
		},
	})
	t.match(await result, { status: 'completed', text: /answer to One\?[^]*answer to Two\?/ })
	t.match(asked, [
		[{ question: 'One?', run_id }, false],
		[{ question: 'Two?' }, true],
	])
	t.not(asked[1]?.[0].run_id, run_id)

	const withdrawn = Promise.withResolvers<void>()
	const relayed = await runs().converse(ref, message(asking('Three?')), {
		ask: ({ question_id }, signal) => {
			signal.addEventListener('abort', () => withdrawn.resolve())
			void call(`ask-responses/${question_id}`, { answer: 'from elsewhere' })
			return new Promise(() => {})
		},
	})
	await withdrawn.promise
	t.match(await relayed.result, { status: 'completed', text: /from elsewhere/ })

	const unanswered = await runs().converse(ref, message(spawning(asking('Four?'))), { ask: async () => null })
	t.match(await unanswered.result, {
		status: 'asks',
		text: 'A sub-agent asks:\n\nFour?',
		question: { question: 'Four?' },
	})
	const again = await runs().follow(unanswered.run_id)
	t.match(await again.result, { status: 'asks', question: { question: 'Four?' } })
	const broken = await runs().follow(unanswered.run_id, { ask: () => Promise.reject(new Error('gone')) })
	await t.rejects(broken.result, { message: 'gone' })
	t.equal(await runs().stop(unanswered.run_id), true)
})

void t.test('when the caller leaves, the run continues or is stopped', async (t) => {
	const { ref, call, read, ended } = await agent(t, 'dan')
	const leaving = async (listener: RunListener): Promise<string> => {
		const left = new AbortController()
		const { run_id, result } = await runs().converse(ref, message(asking('Still there?')), {
			...listener,
			signal: left.signal,
			ask: async (_, withdrawn) => {
				left.abort(new Error('left'))
				t.ok(withdrawn.aborted)
				return 'too late'
			},
		})
		await t.rejects(result, { message: 'left' })
		return run_id
	}
	const continued = await leaving({})
	const { open_question } = await read(continued)
	await call(`ask-responses/${open_question.question_id}`, { answer: 'yes' })
	t.equal((await ended(continued)).event_type, 'run.completed')
	t.equal((await ended(await leaving({ stopsRun: true }))).event_type, 'run.stopped')

	// The signal is aborted before the message is sent.
	const reason = new Error('never there')
	const early = await runs().converse(ref, message('hello'), { signal: AbortSignal.abort(reason), stopsRun: true })
	await t.rejects(early.result, reason)
	t.match(await runs().get(early.run_id), { status: /^(stopped|completed)$/ })
})
