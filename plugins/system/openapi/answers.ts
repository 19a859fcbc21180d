import { STATUS_CODES } from 'node:http'
import type { RequestRoute, RouteSettings } from '@hapi/hapi'
import { errorResponse, everyHeader, ofWrites, responseName } from './errors.ts'
import { exampleOf } from './examples.ts'
import type { JsonSchema } from './json-schema.ts'
import { isJoi } from './schemas.ts'
import type { Schemas } from './schemas.ts'

/** The properties of an operation that determine its possible errors. */
export interface RequestTraits {
	method: string
	hasCaller: boolean
	hasInput: boolean
	hasBody: boolean
}

type Content = Record<string, { schema: JsonSchema; example?: unknown }>

/** Statuses of errors that occur before the handler of a route, so they have the gateway's own schema. */
const beforeHandler: readonly (number | 'default')[] = [401, 403, 413, 415, 429, 503, 507]
const writing = ['post', 'put', 'patch', 'delete']

/** The responses of a route by status, successes first. `default`: all others. */
export function responsesOf(route: RequestRoute, traits: RequestTraits, schemas: Schemas): Record<string, unknown> {
	const contents = contentsOf(route.settings, traits.method, schemas)
	const declared = Object.entries(contents).map(([status, content]): [string, unknown] => {
		const response = { description: STATUS_CODES[status] ?? status, headers: everyHeader }
		if (Object.keys(content).length > 0) return [status, { ...response, content }]
		return [status, Number(status) < 400 ? schemas.shareResponse(responseName(status), response) : response]
	})
	const { errors: hinted = [], failure, otherFailure } = route.settings.plugins?.openapi ?? {}
	const shape = failure && schemas.of(failure)
	const other = otherFailure && eitherOf(schemas.of(otherFailure), schemas)
	const shapeOf = (status: number | 'default') => (beforeHandler.includes(status) ? undefined : other) ?? shape
	const statuses = new Set([...implied(route, traits), ...hinted].filter((status) => !(status in contents)))
	const errors = [...statuses]
		.toSorted((a, b) => a - b)
		.map((status): [string, unknown] => [String(status), errorResponse(status, shapeOf(status), schemas)])
	return Object.fromEntries([
		...declared,
		...errors,
		['default', errorResponse('default', shapeOf('default'), schemas)],
	])
}

/** The gateway's errors, or another shape. */
function eitherOf(other: JsonSchema, schemas: Schemas): JsonSchema {
	return { anyOf: [{ $ref: '#/components/schemas/Error' }, other], examples: [exampleOf(other, schemas)] }
}

function implied({ path }: RequestRoute, { method, hasCaller, hasInput, hasBody }: RequestTraits): number[] {
	return [
		...(hasInput || hasBody ? [400] : []),
		...(hasCaller ? [401, 403, 429] : []),
		...(path.includes('{') ? [404] : []),
		...(hasBody ? [413, 415] : []),
		...(writing.includes(method) ? ofWrites : []),
	]
}

function contentsOf(settings: RouteSettings, method: string, schemas: Schemas): Record<string, Content> {
	const { produces = 'application/json', answers = {} } = settings.plugins?.openapi ?? {}
	const contents: Record<string, Content> = {}
	for (const [status, rules] of Object.entries(settings.response?.status ?? {}))
		contents[status] = isJoi(rules) ? { [produces]: mediaOf(schemas.of(rules), schemas) } : {}
	for (const [status, types] of Object.entries(answers)) {
		const content = (contents[status] ??= {})
		for (const [type, rules] of Object.entries(types)) content[type] = mediaOf(schemas.of(rules), schemas)
	}
	if (Object.keys(contents).length > 0) return contents
	if (produces !== 'application/json') return { 200: { [produces]: { schema: { type: 'string' } } } }
	return method === 'delete' ? { 204: {} } : { 200: {} }
}

/** The schema and its example, as the content of a media type. */
export function mediaOf(schema: JsonSchema, schemas: Schemas): Content[string] {
	const example = exampleOf(schema, schemas)
	const { examples: _, ...rest } = schema
	return { schema: rest, ...(example !== undefined && { example }) }
}
