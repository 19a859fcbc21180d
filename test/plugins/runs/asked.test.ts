/** Questions of sub-agents, as those who talk with the run above hear of them. */
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import type { OpenQuestion } from '../../../plugins/runs/contract.ts'
import { watchAsked } from '../../../plugins/runs/asked.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'

/** Waits for any run, as another plugin may, and lends its context to the test. */
const helper = `export default {
	name: 'helper',
	needs: ['runs'],
	start(ctx) {
		globalThis.lentByAskedHelper = ctx
		ctx.defer(() => delete globalThis.lentByAskedHelper, 'what was lent')
		ctx.primitive({
			name: 'helper.wait',
			description: 'Waits for a run.',
			parameters: { type: 'object' },
			run: ({ run_id }, call) => call.waitFor(run_id),
		})
	},
}
`
const config = 'plugins: { helper: true }\n'
const gateway = await startGateway({ config, files: { 'plugins/helper/index.js': helper } })
t.teardown(() => gateway.stop())
const lent = () => (globalThis as unknown as { lentByAskedHelper: Context }).lentByAskedHelper
const runs = () => lent().use('runs')
const DAY_MS = 24 * 3_600_000

const asking = (question: string): string => `/tool ask ${JSON.stringify({ question })}`
const spawning = (...prompts: string[]): string =>
	prompts.map((prompt) => `/tool subagent.spawn ${JSON.stringify({ prompt })}`).join('\n')

void t.test('each question below is told once, and that it is open no more', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const heard: (string | null)[] = []
	const news: PromiseWithResolvers<void>[] = []
	const told = async (count: number): Promise<void> => {
		while (heard.length < count) {
			const next = Promise.withResolvers<void>()
			news.push(next)
			await next.promise
		}
	}
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
				stop = watchAsked(lent(), id, (asked: OpenQuestion | null) => {
					heard.push(asked && asked.question)
					for (const { resolve } of news.splice(0)) resolve()
				})
				return []
			},
		},
	)
	for (const [count, question] of [
		[1, 'One?'],
		[3, 'Two?'],
	] as const) {
		await told(count)
		const run = await ada.read(run_id)
		t.match(run, { status: 'paused', question: null, open_question: { question } })
		t.strictSame(await runs().asked(await runs().get(run_id)), run.open_question)
		const [open] = (await ada.call('questions')).body
		t.equal(open.run_id, run.open_question.run_id)
		// Whoever comes only now is told too.
		const late = Promise.withResolvers<OpenQuestion | null>()
		const leave = watchAsked(lent(), run_id, late.resolve)
		t.strictSame(await late.promise, run.open_question)
		leave()
		await ada.call(`ask-responses/${open.question_id}`, { answer: question.toLowerCase() })
	}
	await ada.ended(run_id)
	await told(4)
	t.strictSame(heard, ['One?', null, 'Two?', null])
	t.match(await ada.read(run_id), { status: 'completed', open_question: null })
})

void t.test('what another run asks, that is waited for but no sub-agent, is not asked here', async (t) => {
	const bob = await follow(t, gateway, 'bob')
	const other = await bob.start(asking('Elsewhere?'))
	await bob.heard(other, 'run.paused')
	await bob.call('reset', {})
	const run_id = await bob.start(`/tool helper.wait ${JSON.stringify({ run_id: other })}`)
	await bob.heard(run_id, 'run.paused')
	t.match(await bob.read(run_id), { status: 'paused', waits_for: other, open_question: null })
	const { open_question } = await bob.read(other)
	t.match(open_question, { run_id: other, question: 'Elsewhere?' })
	await bob.call(`ask-responses/${open_question.question_id}`, { answer: 'here' })
	await bob.ended(run_id)
	t.match(await bob.read(run_id), { status: 'completed', open_question: null })
})

void t.test('a question that nobody answered in time is asked no more, and the run above goes on', async (t) => {
	const cid = await follow(t, gateway, 'cid')
	const run_id = await cid.start(spawning(asking('Anybody?')))
	const [asked, over] = [Promise.withResolvers<OpenQuestion>(), Promise.withResolvers<void>()]
	const stop = watchAsked(lent(), run_id, (one) => (one ? asked.resolve(one) : over.resolve()))
	t.teardown(stop)
	t.match(await asked.promise, { question: 'Anybody?' })
	const limits = { steps: 50, tokens: 1_000, wall_time_s: 60, result_characters: 32_768 }
	const settings = {
		limits,
		max_waiting: 10,
		max_waiting_per_agent: 100,
		max_waiting_total: 1000,
		question_ttl_days: 7,
		approval_ttl_s: 86_400,
		retention_days: 30,
		keep_requests: 0,
	}
	const { events } = gateway.running.gateway // a third party's plugin cannot write the log of a run
	await tidy({ ...lent(), events, config: settings }, Date.now() + 8 * DAY_MS)
	await over.promise
	await cid.ended(run_id)
	t.match(await cid.read(run_id), {
		status: 'completed',
		answer: /subagent_failed.*question_expired/,
		open_question: null,
	})
})
