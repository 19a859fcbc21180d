/** Changes between two versions that break a client, a configuration or a script. */
import { compareSchemas } from './schemas.ts'
import type { Comparison } from './schemas.ts'
import type { Api, Operation, Response, Surface, Usage } from './surface.ts'

/** Lists the breaks, such as `event run.queued.conversation: was removed`, except those of the contract of plugins. */
export function breaksBetween(released: Omit<Surface, 'types'>, current: Omit<Surface, 'types'>): string[] {
	const breaks = [
		...breaksOfApi(released.api, current.api),
		...breaksOfEvents(released.events, current.events),
		...breaksOfSettings(released.settings, current.settings),
		...breaksOfCommands(released.commands, current.commands),
		...released.variables
			.filter((one) => !current.variables.includes(one))
			.map((one) => `variable ${one}: was removed`),
	]
	return [...new Set(breaks)]
}

function breaksOfApi(released: Api, current: Api): string[] {
	const breaks: string[] = []
	const definitions = { released: released.components.schemas, current: current.components.schemas }
	const compare = (direction: Comparison['direction']) =>
		compareSchemas({
			definitions,
			direction,
			report: (place, problem) => breaks.push(`${direction === 'read' ? 'request' : 'response'} ${place}: ${problem}`),
		})
	const [read, written] = [compare('read'), compare('written')]
	for (const [path, methods] of Object.entries(released.paths))
		for (const [method, before] of Object.entries(methods)) {
			if (!('responses' in before)) continue
			const name = `${method.toUpperCase()} ${path}`
			const now = current.paths[path]?.[method]
			if (!now) breaks.push(`route ${name}: was removed`)
			else compareOperations(name, before, now)
		}
	return breaks

	function compareOperations(name: string, before: Operation, now: Operation): void {
		const fail = (problem: string): void => void breaks.push(`route ${name}: ${problem}`)
		for (const one of before.parameters ?? []) {
			const other = now.parameters?.find((found) => found.name === one.name && found.in === one.in)
			if (!other) fail(`the parameter ${one.name} was removed`)
			else read(one.schema, other.schema, `${name} ?${one.name}`)
		}
		for (const one of now.parameters ?? [])
			if (one.required && !before.parameters?.some((found) => found.name === one.name && found.required))
				fail(`the parameter ${one.name} is required now`)
		if (now.requestBody?.required && !before.requestBody?.required) fail('a body is required now')
		for (const [type, { schema = {} }] of Object.entries(before.requestBody?.content ?? {})) {
			const other = now.requestBody?.content[type]
			if (!other) fail(`takes no ${type} any longer`)
			else read(schema, other.schema ?? {}, `${name} body`)
		}
		const [scopes, others] = [[before['x-scope'] ?? []].flat(), [now['x-scope'] ?? []].flat()]
		if (others.length > 0 && !scopes.some((scope) => others.includes(scope)))
			fail(`needs the scope ${others.join(' or ')}, which was ${scopes.join(' or ') || 'none'}`)
		for (const [status, reply] of Object.entries(before.responses)) {
			if (!/^[123]/.test(status)) continue
			const { content = {} } = responseOf(released, reply)
			const answer = now.responses[status]
			if (!answer) fail(`no longer answers ${status}`)
			else
				for (const [type, { schema = {} }] of Object.entries(content)) {
					const other = responseOf(current, answer).content?.[type]
					if (!other) fail(`${status} is no longer ${type}`)
					else written(schema, other.schema ?? {}, `${name} ${status}`)
				}
		}
	}
}

function responseOf({ components }: Api, reply: Response): Response {
	return reply.$ref === undefined ? reply : (components.responses?.[reply.$ref.split('/').at(-1) ?? ''] ?? {})
}

function breaksOfEvents(released: Surface['events'], current: Surface['events']): string[] {
	return Object.entries(released).flatMap(([type, fields]) => {
		const now = current[type]
		if (!now) return [`event ${type}: was removed`]
		return fields.flatMap((field) => {
			if (now.includes(field) || now.includes(field.replace(/\?$/, ''))) return []
			const problem = now.includes(`${field}?`) ? 'may be absent now' : 'was removed'
			return [`event ${type}.${field.replace(/\?$/, '')}: ${problem}`]
		})
	})
}

function breaksOfSettings(released: Surface['settings'], current: Surface['settings']): string[] {
	const breaks: string[] = []
	const compare = compareSchemas({
		definitions: { released: released.$defs ?? {}, current: current.$defs ?? {} },
		direction: 'read',
		defaults: true,
		report: (place, problem) => breaks.push(`setting ${place.replace(/^\./, '')}: ${problem}`),
	})
	compare(released, current, '')
	return breaks
}

function breaksOfCommands(released: Record<string, Usage>, current: Record<string, Usage>): string[] {
	return Object.entries(released).flatMap(([name, before]) => {
		const now = current[name]
		if (!now) return [`command ${name}: was removed`]
		const flags = new Set(now.options)
		const needed = (usage: Usage): number => usage.arguments.filter((one) => one.startsWith('<')).length
		const fewer = now.arguments.length < before.arguments.length && !now.arguments.some((one) => one.includes('...'))
		return [
			...before.options.filter((one) => !flags.has(one)).map((one) => `command ${name}: ${one} was removed`),
			...(needed(now) > needed(before) || fewer
				? [`command ${name}: takes ${now.arguments.join(' ') || 'nothing'}, which was ${before.arguments.join(' ')}`]
				: []),
		]
	})
}
