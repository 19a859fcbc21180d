import type { Context } from '../../core/plugin.ts'
import { by, gauge } from './metric.ts'
import type { Metric } from './metric.ts'

/** Metrics of the current state of the gateway. */
export function gatewayMetrics({ gateway, pool, queue }: Context): Metric[] {
	const { threads, active, waiting, capacity, lost_threads } = pool.stats()
	const space = gateway.storeSpace()
	return [
		gauge('svc_build_info', 'The version of the gateway, and of its Node.', [
			{ labels: { version: gateway.version, node: process.version }, value: 1 },
		]),
		gauge('svc_generation', 'Counts the reloads that changed something.', gateway.generation()),
		gauge('svc_config_trouble', '1 while the current configuration file is not in force.', flag(gateway.configError())),
		gauge(
			'svc_plugins_in_trouble',
			'Plugins that do not run, or report an error.',
			gateway.plugins().filter(({ last_error }) => last_error !== null).length,
		),
		gauge('svc_store_trouble', '1 while the store refuses writes.', flag(gateway.storeTrouble())),
		...(space
			? [
					gauge('svc_store_bytes', 'Size of the store.', space.bytes),
					gauge('svc_store_free_bytes', 'Free space on its disk.', space.free_bytes),
				]
			: []),
		gauge('svc_http_requests_in_flight', 'HTTP requests in progress, including open streams.', gateway.openRequests()),
		gauge('svc_worker_pool_threads', 'Running worker threads of this gateway; none before the first run.', threads),
		gauge(
			'svc_worker_pool_runs',
			'Runs in the worker pool.',
			by('state', [
				['active', active],
				['waiting', waiting],
			]),
		),
		gauge('svc_worker_pool_capacity', 'Runs that the worker pool executes in parallel, in lent threads too.', capacity),
		gauge('svc_worker_pool_lost_threads_total', 'Worker threads that ended unexpectedly.', lost_threads, 'counter'),
		gauge(
			'svc_queue_jobs_waiting',
			'Runs that wait for a place in the worker pool.',
			queue.waiting() + pool.places.waiting(),
		),
	]
}

function flag(trouble: string | null): number {
	return trouble === null ? 0 : 1
}
