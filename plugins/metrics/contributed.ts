/** Reads and checks the metrics that plugins add. An error in one of them must not affect the others. */
import { messageOf } from '../../core/errors.ts'
import type { Context, Extension } from '../../core/plugin.ts'
import { within } from '../../core/util/deadline.ts'
import type { MetricSource, Reading, Readings } from './contract.ts'
import { gauge, SERIES_LIMIT } from './metric.ts'
import type { Metric } from './metric.ts'

const READ_MS = 2_000
/** Limit of distinct problems that are logged. */
const MAX_LOGGED = 100
const NAME = /^[a-z][a-z0-9_]{0,127}$/

type Contributor = Extension<'metrics'>

/** Reads every source of the current generation. Never rejects. */
export function contributed(ctx: Context): () => Promise<Metric[]> {
	const readers = new WeakMap<MetricSource, () => Promise<Readings>>()
	const logged = new Set<string>()
	const logProblem = ({ plugin }: Contributor, problem: string): void => {
		const message = `metrics of plugin "${plugin}" are omitted: ${problem}`
		if (logged.has(message) || logged.size >= MAX_LOGGED) return
		logged.add(message)
		ctx.log.warn({ plugin }, message)
	}
	const read = async (source: Contributor): Promise<Metric[]> => {
		try {
			let reader = readers.get(source.value)
			if (!reader) readers.set(source.value, (reader = rateLimited(async () => source.run(() => source.value.read()))))
			return await metricsOf(source, isBuiltIn(ctx, source.plugin), reader)
		} catch (error) {
			logProblem(source, messageOf(error))
			return []
		}
	}
	return async () => {
		const found = (await Promise.all(ctx.extensions('metrics').map(read))).flat()
		return [...new Map(found.toReversed().map((metric) => [metric.name, metric])).values()].toReversed()
	}
}

/** Why the metrics of a third-party plugin are omitted; null if they are not. Never rejects. */
export async function sourceProblem(source: Contributor): Promise<string | null> {
	try {
		await metricsOf(source, false, async () => source.run(() => source.value.read()))
		return null
	} catch (error) {
		return messageOf(error)
	}
}

function isBuiltIn({ gateway }: Context, plugin: string): boolean {
	return gateway.plugins().find(({ name }) => name === plugin)?.source === 'built in'
}

function checkNames({ plugin, value }: Contributor, builtIn: boolean): void {
	if (typeof value?.metrics !== 'object' || value.metrics === null || typeof value.read !== 'function')
		throw new Error('`metrics` must be an object, and `read` a function')
	const prefix = builtIn ? 'svc_' : `${plugin.replaceAll('-', '_')}_`
	for (const [name, { help, type }] of Object.entries(value.metrics)) {
		if (!NAME.test(name) || !name.startsWith(prefix))
			throw new Error(`the name "${name}" must begin with ${prefix}, and consist of lower-case letters, digits and _`)
		if (typeof help !== 'string' || help === '') throw new Error(`${name} needs a help text`)
		if (type !== 'gauge' && type !== 'counter') throw new Error(`${name} must be a gauge or a counter`)
		if ((type === 'counter') !== name.endsWith('_total'))
			throw new Error(`${name}: counters, and only they, end in _total`)
	}
}

async function metricsOf(source: Contributor, builtIn: boolean, read: () => Promise<Readings>): Promise<Metric[]> {
	checkNames(source, builtIn)
	const readings = await within(READ_MS, 'reading them', read())
	return Object.entries(source.value.metrics).flatMap(([name, { help, type }]) => {
		const value = readings[name]
		if (value === undefined) return []
		if (typeof value !== 'number') value.forEach((one) => checkReading(name, one))
		return gauge(name, help, typeof value === 'number' ? value : value.slice(0, SERIES_LIMIT), type)
	})
}

function checkReading(name: string, { labels, value }: Reading): void {
	const isFine = Object.entries(labels).every(([label, text]) => NAME.test(label) && typeof text === 'string')
	if (!isFine || typeof value !== 'number') throw new Error(`${name} has a value that is not {labels, value: number}`)
}

/** Limits `read` to a twentieth of the time, however often it is called: between two calls the last result is reused. */
function rateLimited<T>(read: () => Promise<T>): () => Promise<T> {
	const SHARE = 20
	let answer: Promise<T> | undefined
	let until = Infinity
	return () => {
		if (answer && performance.now() < until) return answer
		const began = performance.now()
		until = Infinity
		answer = read().finally(() => (until = performance.now() + (performance.now() - began) * SHARE))
		return answer
	}
}
