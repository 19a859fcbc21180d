import type { Answered } from '../../core/http/server.ts'
import { counter, histogram } from './metric.ts'

const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const METHODS = new Set(['get', 'head', 'post', 'put', 'patch', 'delete', 'options'])

/** Counts HTTP requests. Labels never contain free text of a caller, such as a path: the route's template is used instead. */
export function countRequests() {
	const requests = counter('svc_http_requests_total', 'HTTP requests by method, route and status.', [
		'method',
		'route',
		'status',
	])
	const durations = histogram(
		'svc_http_request_duration_seconds',
		'Seconds until the answer to an HTTP request was sent; for a stream, until it was open.',
		BOUNDS,
		['method', 'route'],
	)
	return {
		count({ method, route, status, ms }: Answered): void {
			const labels = [METHODS.has(method) ? method.toUpperCase() : 'other', route ?? 'none']
			durations.observe(labels, ms / 1000)
			requests.add([...labels, String(status)])
		},
		metrics: [requests, durations],
	}
}
