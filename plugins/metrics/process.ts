/** Metrics of the process and of Node, with the names that common dashboards expect. */
import { readdirSync, readFileSync } from 'node:fs'
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import type { NodeGCPerformanceDetail, PerformanceEntry } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { by, gauge, histogram } from './metric.ts'
import type { Metric } from './metric.ts'

/** Milliseconds between two samples of the event loop. */
const RESOLUTION_MS = 20
const GC_BOUNDS = [0.001, 0.01, 0.1, 1, 2, 5]
const gcKinds: Record<number, string> = {
	[constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
	[constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
	[constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
	[constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}

/** Node's types lack the details of a collection. */
type GcEntry = PerformanceEntry & { detail: NodeGCPerformanceDetail }

/** Samples the event loop and garbage collections from now on. */
export function watchProcess() {
	const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
	delays.enable()
	const collections = histogram(
		'nodejs_gc_duration_seconds',
		'Seconds that garbage collections took, by kind.',
		GC_BOUNDS,
		['kind'],
	)
	const observer = new PerformanceObserver((list) => {
		for (const { detail, duration } of list.getEntries() as GcEntry[]) {
			const kind = gcKinds[detail.kind ?? 0] ?? 'other'
			collections.observe([kind], duration / 1000)
		}
	})
	observer.observe({ entryTypes: ['gc'] })

	const lags = (): Metric[] => {
		// Without a sample, the monitor returns no usable values.
		const { count } = delays
		const seconds = (nanoseconds: number): number => (count === 0 ? 0 : nanoseconds / 1e9)
		const of = (what: string, help: string, nanoseconds: number): Metric =>
			gauge(`nodejs_eventloop_lag_${what}_seconds`, `${help} delay of the event loop.`, seconds(nanoseconds))
		const found = [
			of('min', 'The smallest', delays.min),
			of('max', 'The largest', delays.max),
			of('mean', 'The mean', delays.mean),
			of('stddev', 'The standard deviation of the', delays.stddev),
			of('p50', 'The 50th percentile of the', delays.percentile(50)),
			of('p90', 'The 90th percentile of the', delays.percentile(90)),
			of('p99', 'The 99th percentile of the', delays.percentile(99)),
		]
		delays.reset()
		return found
	}
	return {
		/** The values of the event loop cover the time since the last call. */
		metrics: () => [...processMetrics(), ...heapMetrics(), ...lags(), collections],
		[Symbol.dispose](): void {
			delays.disable()
			observer.disconnect()
		},
	}
}

function processMetrics(): Metric[] {
	const { user, system } = process.cpuUsage()
	const total = (what: string, help: string, microseconds: number): Metric =>
		gauge(`process_cpu_${what}seconds_total`, help, microseconds / 1e6, 'counter')
	const files = openFiles()
	return [
		total('user_', 'Seconds of CPU that the process took itself.', user),
		total('system_', 'Seconds of CPU that the system took for the process.', system),
		total('', 'Seconds of CPU that the process took, and the system for it.', user + system),
		gauge(
			'process_start_time_seconds',
			'When the process started, in seconds since 1970.',
			Math.round(performance.timeOrigin / 1000),
		),
		gauge('process_resident_memory_bytes', 'Memory of the process that is in RAM.', process.memoryUsage.rss()),
		...(files === null
			? []
			: [
					gauge('process_open_fds', 'Open files and sockets.', files.open),
					gauge('process_max_fds', 'Files and sockets that may be open.', files.limit),
				]),
	]
}

function heapMetrics(): Metric[] {
	const { heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage()
	const spaces = getHeapSpaceStatistics().map(
		({ space_name, space_used_size }) => [space_name.replace(/_space$/, ''), space_used_size] as const,
	)
	const resources = new Map<string, number>()
	for (const type of process.getActiveResourcesInfo()) resources.set(type, (resources.get(type) ?? 0) + 1)
	return [
		gauge('nodejs_heap_size_total_bytes', 'Size of the heap of the main thread.', heapTotal),
		gauge('nodejs_heap_size_used_bytes', 'What is used of it.', heapUsed),
		gauge('nodejs_external_memory_bytes', 'Memory outside of the heap that objects in it hold.', external),
		gauge('nodejs_array_buffers_bytes', 'The part of it that array buffers take.', arrayBuffers),
		gauge('nodejs_heap_space_size_used_bytes', 'What is used of each space of the heap.', by('space', spaces)),
		gauge('nodejs_active_resources', 'What keeps the event loop busy, by type.', by('type', resources)),
		gauge('nodejs_version_info', 'The version of Node.', by('version', [[process.version, 1]])),
	]
}

/** Null on systems other than Linux. */
function openFiles(): { open: number; limit: number } | null {
	try {
		const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
		return { open: readdirSync('/proc/self/fd').length, limit: Number(limit) }
	} catch {
		return null
	}
}
