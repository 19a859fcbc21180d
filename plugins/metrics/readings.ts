import type { Context } from '../../core/plugin.ts'
import type {} from '../backups/contract.ts'
import type {} from '../channels/contract.ts'
import type {} from '../events/contract.ts'
import type {} from '../mcp/contract.ts'
import type { RunCensus } from '../runs/contract.ts'
import type {} from '../tracing/contract.ts'
import { by, gauge } from './metric.ts'
import type { Metric, Sample } from './metric.ts'

/** What the gateway and its plugins are like at this moment; what belongs to a plugin that does not run is left out. */
export function openReadings(ctx: Context): () => Promise<Metric[]> {
	const census = rarely(async () => ctx.find('runs')?.census())
	const backups = rarely(() => newestBackup(ctx))
	return async () => {
		const runs = await census()
		return [...ofGateway(ctx), ...(runs ? ofRuns(runs) : []), ...(await backups()), ...(await ofPlugins(ctx))]
	}
}

function ofGateway({ gateway, pool, queue }: Context): Metric[] {
	const { threads, active, waiting, capacity, lost_threads } = pool.stats()
	const space = gateway.storeSpace()
	return [
		gauge('svc_build_info', 'The version of the gateway, and of its Node.', [
			{ labels: { version: gateway.version, node: process.version }, value: 1 },
		]),
		gauge('svc_generation', 'Counts the reloads that changed something.', gateway.generation()),
		gauge(
			'svc_config_trouble',
			'1 where the configuration as its file now stands is not in force.',
			flag(gateway.configError()),
		),
		gauge(
			'svc_plugins_in_trouble',
			'Plugins that do not run, or not as they should.',
			gateway.plugins().filter(({ last_error }) => last_error !== null).length,
		),
		gauge('svc_store_trouble', '1 where the store refuses writes.', flag(gateway.storeTrouble())),
		...(space
			? [
					gauge('svc_store_bytes', 'Size of the store.', space.bytes),
					gauge('svc_store_free_bytes', 'What is left on its disk.', space.free_bytes),
				]
			: []),
		gauge(
			'svc_http_requests_in_flight',
			'HTTP requests whose answers have not ended, open streams among them.',
			gateway.openRequests(),
		),
		gauge('svc_worker_pool_threads', 'Worker threads that are alive; none before the first run.', threads),
		gauge(
			'svc_worker_pool_runs',
			'Runs in the worker pool.',
			by('state', [
				['active', active],
				['waiting', waiting],
			]),
		),
		gauge('svc_worker_pool_capacity', 'Runs that the worker pool works on side by side.', capacity),
		gauge('svc_worker_pool_lost_threads_total', 'Worker threads that ended by themselves.', lost_threads, 'counter'),
		gauge('svc_queue_jobs_waiting', 'Runs that wait for a place in the worker pool.', queue.waiting()),
	]
}

function ofRuns({ active, waiting, paused, questions }: RunCensus): Metric[] {
	return [
		gauge('svc_runs_active', 'Runs at work, or about to be.', active),
		gauge('svc_runs_waiting', 'Runs that wait behind another one of their conversation.', waiting),
		gauge('svc_runs_paused', 'Runs that wait for an answer, or for the end of a sub-agent.', paused),
		gauge('svc_questions_open', 'Questions that wait for an answer.', questions),
	]
}

async function ofPlugins(ctx: Context): Promise<Metric[]> {
	const events = ctx.find('events')
	const mcp = ctx.find('mcp')
	const spans = ctx.find('tracing')?.stats()
	return [
		...(events ? [gauge('svc_sse_clients', 'Open event streams.', events.streams())] : []),
		...(mcp ? [gauge('svc_mcp_servers', 'MCP servers of all agents, by status.', by('status', mcp.statuses()))] : []),
		gauge('svc_channel_up', 'Channels that are connected to their platform, by type.', await channels(ctx)),
		...(spans
			? [
					gauge(
						'svc_trace_spans_total',
						'Spans that were sent, or dropped for want of a collector.',
						by('outcome', [
							['sent', spans.sent],
							['dropped', spans.dropped],
						]),
						'counter',
					),
				]
			: []),
	]
}

async function newestBackup(ctx: Context): Promise<Metric[]> {
	// A folder that cannot be read is told of where backups are asked for.
	const listed = await ctx
		.find('backups')
		?.list()
		.catch(() => undefined)
	const newest = listed?.backups.at(-1)
	if (!newest) return []
	const made = Date.parse(newest.created_at) / 1000
	return [gauge('svc_backup_newest_timestamp_seconds', 'When the newest backup was taken, since 1970.', made)]
}

async function channels(ctx: Context): Promise<Sample[]> {
	const up = new Map<string, number>()
	for (const { type, connection } of (await ctx.find('channels')?.connections()) ?? [])
		up.set(type, (up.get(type) ?? 0) + (connection === 'connected' ? 1 : 0))
	return by('type', up)
}

function flag(trouble: string | null): number {
	return trouble === null ? 0 : 1
}

/** `look` takes at most a twentieth of the time, however often it is asked for: between two looks the last answer stands. */
function rarely<T>(look: () => Promise<T>): () => Promise<T> {
	const SHARE = 20
	let answer: Promise<T> | undefined
	let until = Infinity
	return () => {
		if (answer && performance.now() < until) return answer
		const began = performance.now()
		until = Infinity
		answer = look().finally(() => (until = performance.now() + (performance.now() - began) * SHARE))
		return answer
	}
}
