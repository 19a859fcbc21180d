/** Questions of sub-agents, reported to watchers of the parent run. */
import t from 'tap'
import type { OpenQuestion } from '../../../plugins/runs/contract.ts'
import { watchOpenQuestion } from '../../../plugins/runs/open-question.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import { runSettings } from '../../support/run-settings.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const probe = contextProbe(`ctx.primitive({
	name: 'probe.wait',
	description: 'Waits for a run.',
	parameters: { type: 'object' },
	run: ({ run_id }, call) => call.waitFor(run_id),
})`)
const gateway = await startGateway({ config: 'plugins: { probe: true }\n', files: probe.files })
t.teardown(() => gateway.stop())
const runs = () => probe.context().use('runs')
const DAY_MS = 24 * 3_600_000

const asking = (question: string): string => `/tool ask ${JSON.stringify({ question })}`
const spawning = (...prompts: string[]): string =>
	prompts.map((prompt) => `/tool subagent.spawn ${JSON.stringify({ prompt })}`).join('\n')

void t.test('a watcher receives each question of a sub-agent once, and its end', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const received: (string | null)[] = []
	let stop = (): void => {}
	t.teardown(() => stop())
	const { agent, agent_uid: uid } = await runs().get(await ada.complete('hello'))
	const prompt = spawning(spawning(asking('One?')), asking('Two?'))
	const { run_id } = await runs().start(
		{ name: agent, uid },
		{
			prompt,
			trigger: 'api',
			also: async (id) => {
				stop = watchOpenQuestion(probe.context(), id, (asked) => received.push(asked && asked.question))
				return []
			},
		},
	)
	for (const [count, question] of [
		[1, 'One?'],
		[3, 'Two?'],
	] as const) {
		await eventually(() => received.length >= count)
		const run = await ada.read(run_id)
		t.match(run, { status: 'paused', question: null, open_question: { question } })
		t.strictSame(await runs().asked(await runs().get(run_id)), run.open_question)
		const [open] = (await ada.call('questions')).body
		t.equal(open.run_id, run.open_question.run_id)
		// A later watcher receives it too.
		const late = Promise.withResolvers<OpenQuestion | null>()
		const stopLate = watchOpenQuestion(probe.context(), run_id, late.resolve)
		t.strictSame(await late.promise, run.open_question)
		stopLate()
		await ada.call(`ask-responses/${open.question_id}`, { answer: question.toLowerCase() })
	}
	await ada.ended(run_id)
	await eventually(() => received.length >= 4)
	t.strictSame(received, ['One?', null, 'Two?', null])
	t.match(await ada.read(run_id), { status: 'completed', open_question: null })
})

void t.test('a question of a run that is not a sub-agent is not reported to the run that waits for it', async (t) => {
	const bob = await follow(t, gateway, 'bob')
	const other = await bob.start(asking('Elsewhere?'))
	await bob.waitFor(other, 'run.paused')
	await bob.call('reset', {})
	const run_id = await bob.start(`/tool probe.wait ${JSON.stringify({ run_id: other })}`)
	await bob.waitFor(run_id, 'run.paused')
	t.match(await bob.read(run_id), { status: 'paused', waits_for: other, open_question: null })
	const { open_question } = await bob.read(other)
	t.match(open_question, { run_id: other, question: 'Elsewhere?' })
	await bob.call(`ask-responses/${open_question.question_id}`, { answer: 'here' })
	await bob.ended(run_id)
	t.match(await bob.read(run_id), { status: 'completed', open_question: null })
})

void t.test('an expired question is no longer open, and the parent run continues', async (t) => {
	const cid = await follow(t, gateway, 'cid')
	const run_id = await cid.start(spawning(asking('Anybody?')))
	const [asked, over] = [Promise.withResolvers<OpenQuestion>(), Promise.withResolvers<void>()]
	const stop = watchOpenQuestion(probe.context(), run_id, (question) =>
		question ? asked.resolve(question) : over.resolve(),
	)
	t.teardown(stop)
	t.match(await asked.promise, { question: 'Anybody?' })
	const { events } = gateway.running.gateway // a third-party plugin cannot write the log of a run
	await tidy({ ...probe.context(), events, config: runSettings }, Date.now() + 8 * DAY_MS)
	await over.promise
	await cid.ended(run_id)
	t.match(await cid.read(run_id), {
		status: 'completed',
		answer: /subagent_failed.*question_expired/,
		open_question: null,
	})
})
