import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RequestRoute, Server } from '@hapi/hapi'
import type { GenerationView } from '../../../core/plugin.ts'
import { about, tagOf } from './about.ts'
import { errorSchema, sharedHeaders } from './errors.ts'
import { operationOf } from './operation.ts'
import { templateOf } from './requests.ts'
import { Schemas } from './schemas.ts'

export interface Document {
	openapi: string
	info: Record<string, unknown>
	servers: ServerObject[]
	tags: { name: string; description: string }[]
	/** By path: operations by method, and `servers` for paths of the chat API. */
	paths: Record<string, Record<string, unknown>>
	components: Record<'schemas' | 'responses' | 'headers' | 'securitySchemes', Record<string, unknown>>
}

export interface Surfaces {
	version: string
	generation: GenerationView
	/** Such as `http://127.0.0.1:17890`; null if the chat API is switched off. */
	legacyUrl: string | null
}

interface ServerObject {
	url: string
	description: string
	variables?: Record<string, { default: string }>
}

/** The operations of a route that accepts any method. */
const allMethods = ['get', 'put', 'post', 'delete', 'patch']
/** Milliseconds of work in one turn of the event loop. */
const SLICE_MS = 8

/** Makes the OpenAPI 3.1 document of all routes. Works in slices: as a whole it would block the event loop for too long. */
export async function documentOf({ version, generation, legacyUrl }: Surfaces): Promise<Document> {
	const { main, legacy } = generation.servers
	const schemas = new Schemas({ Error: errorSchema(generation.errors.keys()) })
	const paths: Document['paths'] = {}
	const tags = new Map<string, string>()
	let since = performance.now()

	const add = async (server: Server, entryOf: (path: string) => Record<string, unknown>): Promise<void> => {
		for (const route of server.table().toSorted(byPath)) {
			const path = entryOf(templateOf(route.path))
			const access = server.auth.lookup(route)
			for (const method of route.method === '*' ? allMethods : [route.method])
				path[method] ??= operationOf(route, method, access, schemas)
			for (const tag of route.settings.tags ?? [])
				if (tag !== 'api' && !tags.has(tag)) tags.set(tag, route.realm.plugin ?? '')
			if (performance.now() - since < SLICE_MS) continue
			await nextTurn()
			since = performance.now()
		}
	}

	await add(main, (path) => (paths[path] ??= {}))
	const ofMain = new Set(Object.keys(paths))
	// OpenAPI allows a path only once. Paths of the chat API that the main server has, too, are omitted.
	if (legacy) {
		const servers = [legacyServer(legacyUrl)]
		await add(legacy, (path) => (ofMain.has(path) ? {} : (paths[path] ??= { servers })))
	}
	return {
		openapi: '3.1.0',
		info: {
			title: 'Agent gateway',
			version,
			description: about,
			license: { name: 'MIT', identifier: 'MIT' },
		},
		servers: [{ url: '/', description: 'The address from which this document was loaded.' }],
		tags: [...tags].map(([name, plugin]) => tagOf(name, plugin)).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
		paths: sorted(paths),
		components: {
			schemas: sorted(schemas.components),
			responses: sorted(schemas.responses),
			headers: sharedHeaders,
			securitySchemes: {
				bearer: {
					type: 'http',
					scheme: 'bearer',
					description:
						'A token from POST /v1/auth/tokens, with one of the scopes that the operation lists, or with `*`.',
				},
			},
		},
	}
}

function sorted<T>(entries: Record<string, T>): Record<string, T> {
	return Object.fromEntries(Object.entries(entries).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function legacyServer(url: string | null): ServerObject {
	const { hostname, port } = new URL(url ?? 'http://127.0.0.1:17890')
	return {
		url: 'http://{host}:{port}',
		description: 'The chat API, which has a separate address: `server.host` and `legacy.port` of gateway.yaml.',
		// Without `description`: the published schema of OpenAPI 3.1 misspells the keyword here, so validators reject it.
		variables: { host: { default: hostname }, port: { default: port } },
	}
}

function byPath(a: RequestRoute, b: RequestRoute): number {
	return a.path < b.path ? -1 : a.path > b.path ? 1 : a.method < b.method ? -1 : 1
}

/** Converts the document to YAML, path by path: as a whole it would block the event loop. */
export async function yamlOf({ paths, components, ...head }: Document): Promise<string> {
	const { stringify } = await import('yaml')
	const write = (value: unknown): string => stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 })
	const parts = [write(head)]
	const section = async (name: string, entries: [string, unknown][], depth: string): Promise<void> => {
		parts.push(`${depth.slice(2)}${name}:\n`)
		for (const [key, value] of entries) {
			parts.push(write({ [key]: value }).replaceAll(/^(?=.)/gm, depth))
			await nextTurn()
		}
	}
	await section('paths', Object.entries(paths), '  ')
	parts.push('components:\n')
	for (const [name, group] of Object.entries(components)) await section(name, Object.entries(group), '    ')
	return parts.join('')
}
