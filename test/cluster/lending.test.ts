/**
 * Runs execute in the threads of waiting gateways, each in its own process and with its own home. Such a run survives the loss of its
 * gateway and of the working one.
 */
import t from 'tap'
import { svcFor } from '../support/cli.ts'
import { openMembers, roleOf } from '../support/cluster-processes.ts'
import { send } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import type { ManualCall } from '../support/manual-model.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { providersAt } from '../support/providers.ts'
import { eventually } from '../support/wait.ts'

/** A tool that waits for a person while its call stays in flight. */
const form = `export default {
	name: 'form',
	start(ctx) {
		ctx.primitive({
			name: 'form.fill',
			description: 'Asks a person.',
			parameters: { type: 'object' },
			run: (_args, call) => call.ask({ question: 'Well?' }),
		})
	},
}`

void t.test('threads that waiting gateways lend', { skip: withoutNats(), timeout: 300_000 }, async (t) => {
	const [cluster, model] = await Promise.all([startNats(), startManualModel()])
	const config = `
server: { shutdown_grace_s: 0 }
store: { url: '${cluster.url}', replicas: 1 }
workers: { threads: 1, runs_per_thread: 8 }
plugins: { form: true }
${providersAt({ held: model.url })}`
	const processes = openMembers({ SVC_LOG_LEVEL: 'info' })
	t.teardown(async () => {
		await processes.kill()
		await Promise.all([cluster[Symbol.asyncDispose](), model.stop()])
	})
	const start = (settings = config) =>
		processes.start(processes.newHome({ config: settings, files: { 'plugins/form/index.ts': form } }))
	let current = await start()
	const token = (await send(`${current.url}/v1/auth/tokens`, 'POST', { body: { scopes: ['*'] } })).body.token as string
	const request = (method: string, path: string, body?: unknown) =>
		send(current.url + path, method, { token, ...(body !== undefined && { body }) })
	await request('POST', '/v1/agents', { name: 'anna' })

	const members = async (): Promise<{ works: boolean; threads: number; runs: number }[]> =>
		(await request('GET', '/v1/cluster')).body.gateways
	/** Waits until waiting gateways lend `threads` threads. */
	const lent = (threads: number): Promise<unknown> =>
		eventually(async () => {
			const others = (await members()).filter(({ works }) => !works)
			return others.reduce((sum, one) => sum + one.threads, 0) === threads
		})
	/** Starts a run in a new conversation, and waits for its first model call. */
	const begin = async (prompt: string): Promise<{ id: string; call: ManualCall }> => {
		const { body } = await request('POST', '/v1/agents/anna/runs', { prompt, conversation: prompt })
		return { id: body.run_id, call: await model.called(prompt) }
	}
	const statusOf = async (id: string): Promise<string> => (await request('GET', `/v1/runs/${id}`)).body.status
	const ended = (id: string, status: string): Promise<unknown> =>
		eventually(
			() => statusOf(id),
			(found) => found === status,
		)
	const stepsIn = ({ body }: ManualCall): number => new Set(JSON.stringify(body).match(/step-\d+/g)).size
	const takeStep = (call: ManualCall, n: number): void =>
		call.callTool('memory_stm_write', JSON.stringify({ key: `step-${n}`, value: n }))

	// The first run uses the working gateway's own thread, so the next one goes to a lender.
	let lender = await start()
	await lent(1)
	const own = await begin('own')

	await t.test('lent threads and their runs are visible', async (t) => {
		const remote = await begin('away')
		t.match(await members(), [
			{ works: true, threads: 1, runs: 1 },
			{ works: false, threads: 1, runs: 1 },
		])
		const { body: ready } = await request('GET', '/readyz?verbose')
		t.match(ready, '[+]threads those of the working gateway and 1 lent by another gateway, which now executes 1 run')
		const { body: metrics } = await request('GET', '/metrics')
		t.match(metrics, /^svc_lent_threads\{gateway="[^"]*"\} 1$/m)
		t.match(metrics, /^svc_lent_thread_runs\{gateway="[^"]*"\} 1$/m)
		t.match(metrics, /^svc_worker_pool_capacity 16$/m)
		const svc = svcFor({ home: current.home })
		t.match(
			(await svc(['status'])).stdout,
			'threads that execute runs: those of the working gateway and 1 lent by another gateway',
		)
		t.match(
			(await svc(['doctor', '--only', 'store.cluster'])).stdout,
			'threads: those of the working gateway and 1 lent by another gateway',
		)
		remote.call.answer('done')
		await ended(remote.id, 'completed')
	})

	await t.test('a run on a lender is stopped', async (t) => {
		const { id, call } = await begin('stopped')
		t.match(await members(), [{ runs: 1 }, { runs: 1 }])
		t.equal((await request('POST', `/v1/runs/${id}/cancel`)).status < 300, true)
		await call.hungUp
		await ended(id, 'stopped')
		await eventually(async () => (await members())[1]?.runs === 0)
		t.match(await members(), [{ runs: 1 }, { runs: 0 }])
	})

	await t.test('a call of a run on a lender receives a person’s answer', async (t) => {
		const { id, call } = await begin('asked')
		call.callTool('form_fill', '{}')
		const [question] = await eventually(
			async () => (await request('GET', '/v1/agents/anna/questions')).body as { question_id: string }[],
			(found) => found.length > 0,
		)
		t.match(await members(), [{ runs: 1 }, { runs: 1 }])
		const path = `/v1/agents/anna/ask-responses/${question?.question_id}`
		t.equal((await request('POST', path, { answer: 'a person says so' })).status < 300, true)
		const next = await model.called('asked', 2)
		t.match(JSON.stringify(next.body), /a person says so/)
		next.answer('done')
		await ended(id, 'completed')
	})

	for (const how of ['SIGKILL', 'SIGSTOP'] as const) {
		await t.test(`a run continues when its gateway gets ${how}`, async (t) => {
			const { id, call } = await begin(how)
			takeStep(call, 1)
			const cut = await model.called(how, 2)
			t.match(await members(), [{ runs: 1 }, { runs: 1 }])
			lender.child.kill(how)
			const again = await model.called(how, 3)
			t.equal(stepsIn(again), 1, 'from its last finished step')
			if (how === 'SIGSTOP') lender.child.kill('SIGCONT')
			await cut.hungUp
			takeStep(again, 2)
			;(await model.called(how, 4)).answer('done')
			await ended(id, 'completed')
			t.equal(model.calls.filter(({ prompt }) => prompt === how).length, 4, 'nothing else is repeated')
			const { events } = (await request('GET', `/v1/audit?run_id=${id}&limit=500`)).body
			const sequences = (events as { sequence: number }[]).map(({ sequence }) => sequence).toSorted((a, b) => a - b)
			t.equal(new Set(sequences).size, sequences.length)
			t.equal((events as { event_type: string }[]).filter(({ event_type }) => event_type === 'run.completed').length, 1)
			if (how === 'SIGKILL') lender = await start()
			await lent(1)
		})
	}

	await t.test('a lender that stops completes its runs first', async (t) => {
		const other = await start(config.replace('shutdown_grace_s: 0', 'shutdown_grace_s: 60'))
		await lent(2)
		const runs = [await begin('one'), await begin('other')]
		t.match(await members(), [{ runs: 1 }, { runs: 1 }, { runs: 1 }])
		const exited = other.end()
		await lent(1)
		const late = await begin('late')
		for (const { call } of [...runs, late]) call.answer('done')
		for (const { id } of [...runs, late]) await ended(id, 'completed')
		t.equal(await exited, 0)
		t.equal(
			model.calls.filter(({ prompt }) => ['one', 'other', 'late'].includes(prompt)).length,
			3,
			'no call is repeated',
		)
	})

	await t.test('a gateway with workers.lend: false lends nothing', async (t) => {
		const other = await start(config.replace('runs_per_thread: 8', 'runs_per_thread: 8, lend: false'))
		await eventually(async () => (await members()).length === 3)
		t.match((await members()).filter(({ threads }) => threads === 0).length, 1)
		await other.end()
	})

	await t.test('after a kill of the working gateway, runs of both continue at the next one', async (t) => {
		const remote = await begin('moved')
		takeStep(remote.call, 1)
		const cut = await model.called('moved', 2)
		t.match(await members(), [{ runs: 1 }, { runs: 1 }])
		await current.kill()
		await Promise.all([cut.hungUp, own.call.hungUp])
		current = lender
		await eventually(() => roleOf(current.home) === 'working')
		const [again, first] = await Promise.all([model.called('moved', 3), model.called('own', 2)])
		t.equal(stepsIn(again), 1, 'from its last finished step')
		again.answer('done')
		first.answer('done')
		await Promise.all([ended(remote.id, 'completed'), ended(own.id, 'completed')])
		t.notMatch(current.errors(), /"level":"(error|fatal)"/)
	})
})
