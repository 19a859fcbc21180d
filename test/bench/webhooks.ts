/**
 * Signed deliveries to one webhook, durable before they are answered, compared with a hapi route that verifies the HMAC and writes one
 * durable record. First while the deliveries' runs execute, then while all runs wait for their model, which leaves the cost of
 * accepting a delivery.
 */
import { createHmac } from 'node:crypto'
import { bodyOf } from './connection.ts'
import type { Connection } from './connection.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { compare, inFreshProcesses, inTurns } from './rounds.ts'
import { connections, listen, startSubject } from './subject.ts'
import type { Figure, Goal } from './table.ts'
import { cpuMs } from './usage.ts'

const CLIENTS = 32
const configFor = (modelUrl: string): string => `
server: {shutdown_grace_s: 0}
runs: {max_waiting_per_agent: 100000, max_waiting_total: 1000000}
webhooks: {per_minute: 1000000, max_concurrent: 64, max_concurrent_per_webhook: 64}
default_provider: main
providers:
  main: {kind: openai, base_url: ${modelUrl}, api_key: bench, model: bench}
  local: {kind: offline}
`
/** A typical body; the same for all deliveries, so that it is signed only once. */
const body = JSON.stringify({
	action: 'opened',
	number: 7,
	repository: { full_name: 'octo/hello' },
	text: 'x'.repeat(1024),
})

interface Round {
	perSecond: number
	cpuPerDelivery: number
}

interface Hook {
	token: string
	secret: string
}

export async function webhooks(effort: Effort): Promise<Figure[]> {
	await using model = await startPeer(new URL('./peers/model-server.ts', import.meta.url))
	const whileExecuting = await measure(effort, await model.ask<string>('url'), true)
	await using silent = await startPeer(new URL('./peers/silent-model.ts', import.meta.url))
	const silentUrl = await silent.ask<string>('url')
	const whileWaiting = await inFreshProcesses(effort.processes, async () => measure(effort, silentUrl, false))
	const figures = (pairs: typeof whileExecuting, what: string, goal?: Goal): Figure[] => [
		{
			metric: `deliveries to a webhook${what}`,
			unit: '1/s',
			...compare(pairs, (round) => round.perSecond),
			...(goal && { goal }),
		},
		{ metric: `CPU time of one delivery${what}`, unit: 'ms', ...compare(pairs, (round) => round.cpuPerDelivery) },
	]
	return [...figures(whileExecuting, ' and their runs'), ...figures(whileWaiting, '', { of: 'ratio', least: 0.45 })]
}

/** `ends`: whether runs end. Then each round waits for them, and its CPU time includes theirs. */
async function measure({ rounds, deliveries, deliveriesWarmUp }: Effort, modelUrl: string, ends: boolean) {
	await using bare = await startPeer(new URL('./peers/bare-hook.ts', import.meta.url))
	await using gateway = await startSubject({ files: { 'config/gateway.yaml': configFor(modelUrl) } })
	const ours = await connections(gateway.url, CLIENTS)
	const others = await connections(await bare.ask<string>('url'), CLIENTS)
	const hook = await makeHook(ours[0] as Connection)
	await bare.ask('know', hook.secret)
	const signature = `sha256=${createHmac('sha256', hook.secret).update(body).digest('hex')}`

	let ended = 0
	let all = Promise.withResolvers<void>()
	using _stream = await listen(gateway.url, ['run.completed', 'run.failed'], () => {
		if (++ended === deliveries) all.resolve()
	})

	const round = async (pid: number, clients: readonly Connection[]): Promise<Round> => {
		let left = deliveries
		const client = async (connection: Connection): Promise<void> => {
			while (left-- > 0)
				bodyOf(await connection.sendText('POST', `/v1/hooks/${hook.token}`, body, { 'x-signature': signature }))
		}
		const cpu = cpuMs(pid)
		const began = performance.now()
		await Promise.all(clients.map(client))
		const ms = performance.now() - began
		if (ends && clients === ours) await all.promise
		all = Promise.withResolvers()
		ended = 0
		return { perSecond: (deliveries * 1000) / ms, cpuPerDelivery: (cpuMs(pid) - cpu) / deliveries }
	}
	const pairs = await inTurns(
		rounds,
		() => round(gateway.pid, ours),
		() => round(bare.pid, others),
		deliveriesWarmUp / deliveries,
	)
	for (const connection of [...ours, ...others]) connection.close()
	return pairs
}

/** Registers the webhook with the offline provider, and then switches the agent to the measured provider. */
async function makeHook(connection: Connection): Promise<Hook> {
	bodyOf(await connection.post('/v1/agents', { name: 'ada', config: { provider: 'local' } }))
	const prompt = '/tool webhook.register {"slug":"bench"}'
	const { run_id } = bodyOf<{ run_id: string }>(await connection.post('/v1/agents/ada/runs', { prompt }))
	while (bodyOf<{ status: string }>(await connection.get(`/v1/runs/${run_id}`)).status !== 'completed');
	bodyOf(await connection.sendText('PATCH', '/v1/agents/ada', '{"config": {"provider": "main"}}'))
	return bodyOf<Hook>(await connection.post('/v1/agents/ada/webhooks/bench/rotate', {}))
}
