/** Runs of a working gateway on lenders that misbehave or leave. */
import t from 'tap'
import type { Test } from 'tap'
import { openEngine } from '../../../../core/engines/open.ts'
import { installationKey, readConfig } from '../../../../core/host/config.ts'
import { openLog } from '../../../../core/log/log.ts'
import { openRedactor } from '../../../../core/redactor/redactor.ts'
import type { ObservedLease } from '../../../../core/store/ports.ts'
import { secretFrom } from '../../../../plugins/cluster/forwarding/proof.ts'
import { openLender } from '../../../../plugins/cluster/forwarding/threads/lender.ts'
import type { Lender } from '../../../../plugins/cluster/forwarding/threads/lender.ts'
import { startGateway } from '../../../support/gateway.ts'
import { startManualModel } from '../../../support/manual-model.ts'
import { startNats, withoutNats } from '../../../support/nats.ts'
import { providersAt } from '../../../support/providers.ts'
import { follow } from '../../../support/runs.ts'
import { eventually } from '../../../support/wait.ts'

const liar = new URL('../../../fixtures/workers/liar.ts', import.meta.url)
const puppet = new URL('../../../fixtures/workers/puppet.ts', import.meta.url)
const log = openLog({ level: 'silent', format: 'json' }, openRedactor())
const usage = { input_tokens: 1, output_tokens: 2 }
const answer = { content: 'x', tool_calls: [], usage, provider: 'p', model: 'm', finish_reason: 'stop' }
const completed = { status: 'completed', answer, usage, spent: [] }

const invalid: Record<string, unknown> = {
	'a wait for an unknown question': { outcome: { status: 'paused', waits_for: 'q' } },
	'a pause for nothing': { outcome: { status: 'paused' } },
	'a stop that was not requested': { outcome: { status: 'stopped' } },
	'no outcome': { outcome: null },
	'no answer': { outcome: { ...completed, answer: undefined } },
	'an answer that is not text': { outcome: { ...completed, answer: { ...answer, content: 7 } } },
	'a call without a name': { outcome: { ...completed, answer: { ...answer, tool_calls: [{ id: 'c' }] } } },
	'usage that is not a number': { outcome: { ...completed, usage: { input_tokens: '1', output_tokens: 2 } } },
	'a negative cost': {
		outcome: { ...completed, spent: [{ provider: 'p', model: 'm', usage: { ...usage, cost: -1 } }] },
	},
	'a failure without a code': { outcome: { status: 'failed', error: { message: 'x' }, usage } },
	'an event of the gateway': { event: { event_type: 'agent.deleted', payload: { uid: 'x' } } },
	'the end of the run': { event: { event_type: 'run.completed', payload: { usage } } },
	'an event without a payload': { event: { event_type: 'model.retry' } },
	'a limit that is not a number': {
		event: { event_type: 'context.shrunk', payload: { provider: 'p', model: 'm', tokens: 'few' } },
	},
	'an empty model answer': { call: { method: 'model', params: { answer: {}, spent: [] } } },
	'an unknown method': { call: { method: 'constructor', params: {} } },
}

void t.test('a thread that sends an invalid message is lost, and its run ends', { skip: withoutNats() }, async (t) => {
	const { gateway, ada, start, occupyOwn, lend } = await working(t)
	await occupyOwn(Object.keys(invalid).length)
	await lend(liar)
	const runs = Object.entries(invalid).map(([what, message]) => ({ what, id: start(what, JSON.stringify(message)) }))
	for (const { what, id } of runs) {
		t.match(await ada.ended(await id), { event_type: 'run.failed', payload: { code: 'restart_loop' } }, what)
		const stored = ada.typesOf(await id).filter((type) => !/^(message\.user|run\.(started|resumed|failed))$/.test(type))
		t.strictSame(stored, [], `${what}: nothing is stored`)
	}
	t.equal((await gateway.request('GET', '/v1/agents/ada')).status, 200)
})

void t.test('a run survives any number of lenders that leave', { skip: withoutNats() }, async (t) => {
	const { ada, model, start, occupyOwn, lend } = await working(t)
	await occupyOwn(1)
	let lender = await lend(puppet)
	const id = await start('deaf')
	for (let left = 1; left <= 5; left++) {
		await ada.waitFor(id, 'model.request', left)
		// It lends before the other one leaves, so the run moves to it.
		const next = left < 5 ? await lend(puppet, 2) : undefined
		await lender.close(0)
		if (next) lender = next
	}
	;(await model.called('deaf')).answer('done')
	t.match(await ada.ended(id), { event_type: 'run.completed' })
})

/** A working gateway, with an agent. */
async function working(t: Test) {
	const [cluster, model] = await Promise.all([startNats(), startManualModel()])
	t.teardown(() => Promise.all([cluster[Symbol.asyncDispose](), model.stop()]))
	const env = { SVC_CLUSTER: cluster.url, SVC_CLUSTER_REPLICAS: '1' }
	const config = `
${providersAt({ mock: model.url })}default_provider: mock
workers: { threads: 1, runs_per_thread: 64 }
`
	const gateway = await startGateway({ env, config })
	t.teardown(() => gateway.stop())
	const { status } = gateway.running.gateway
	const ada = await follow(t, gateway, 'ada')
	const start = async (conversation: string, prompt = conversation): Promise<string> =>
		(await ada.call('runs', { prompt, conversation })).body.run_id as string
	const settings = readConfig({ home: gateway.home, env: { ...env, SVC_PORT: '0', SVC_LEGACY_PORT: '0' } })
	const { key } = secretFrom(await installationKey(gateway.home, process.env), settings.store.prefix)

	/** Reads the lease as a waiting gateway does. */
	const leaseNow = async (): Promise<ObservedLease> => {
		const end = new AbortController()
		const found = Promise.withResolvers<ObservedLease>()
		const onLeaseObserved = (lease: ObservedLease | null): void => {
			if (lease?.address) found.resolve(lease)
		}
		const options = { ...settings, home: t.testdir(), signal: end.signal, onLeaseObserved }
		openEngine(options as never).catch(() => {}) // it never gets the lease
		try {
			return await found.promise
		} finally {
			end.abort()
		}
	}
	const { id: tenure } = await leaseNow()

	return {
		gateway,
		ada,
		model,
		start,
		/** Starts runs on the working gateway's own thread: as many later ones go to lenders. */
		async occupyOwn(runs: number): Promise<void> {
			const prompts = Array.from({ length: runs }, (_, n) => `own ${n}`)
			await Promise.all(prompts.map(async (prompt) => start(prompt).then(() => model.called(prompt))))
		},
		/** Starts a lender, and waits until there are `lenders`. */
		async lend(worker: URL, lenders = 1): Promise<Lender> {
			const lender = openLender({
				name: 'g2',
				version: status.version,
				heap_mib: 64,
				threads: 1,
				runs_per_thread: 64,
				log,
				worker,
			})
			t.teardown(() => lender.close(0))
			lender.follow({ tenure, key, urls: { main: new URL(gateway.url), legacy: null } })
			await eventually(() => status.lentThreads()?.length === lenders)
			return lender
		},
	}
}
