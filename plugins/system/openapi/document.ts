import type { Server } from '@hapi/hapi'
import { errorResponses, errorSchema } from './errors.ts'
import { operationOf, templateOf } from './operation.ts'
import { Schemas } from './schemas.ts'

export interface Document {
	openapi: string
	info: Record<string, unknown>
	servers: { url: string }[]
	tags: { name: string }[]
	paths: Record<string, Record<string, Record<string, unknown>>>
	components: {
		schemas: Record<string, unknown>
		responses: Record<string, unknown>
		securitySchemes: Record<string, unknown>
	}
}

/** For a route that takes any method. */
const allMethods = ['get', 'put', 'post', 'delete', 'patch']

const about = `Every answer but event streams and health lines is JSON. Errors have the shape \`Error\`.

A caller shows who it is by \`Authorization: Bearer <token>\`; each operation names the scope that the token needs. In
loopback mode (the default) a request from the gateway's own machine needs no token. A body must be
\`application/json\`, at most 1 MiB, and must hold no unknown fields.`

/** OpenAPI 3.1 of every route that this server has. */
export function documentOf(server: Server, version: string): Document {
	const schemas = new Schemas({ Error: errorSchema })
	const paths: Document['paths'] = {}
	const tags = new Set<string>()
	for (const route of server.table().toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
		const path = (paths[templateOf(route.path)] ??= {})
		for (const method of route.method === '*' ? allMethods : [route.method]) {
			path[method] ??= operationOf(route, method, server.auth.lookup(route), schemas)
		}
		for (const tag of route.settings.tags ?? []) if (tag !== 'api') tags.add(tag)
	}
	return {
		openapi: '3.1.0',
		info: { title: 'Agent gateway', version, description: about },
		servers: [{ url: '/' }],
		tags: [...tags].toSorted().map((name) => ({ name })),
		paths,
		components: {
			schemas: schemas.components,
			responses: errorResponses(),
			securitySchemes: {
				bearer: { type: 'http', scheme: 'bearer', description: 'A token from POST /v1/auth/tokens.' },
			},
		},
	}
}
