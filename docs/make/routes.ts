/** The tables of routes in docs/http-api.md, from the OpenAPI document. */
import { code, table } from './markdown.ts'

/** The parts of docs/openapi.json that are read here. */
export interface ApiDocument {
	tags: { name: string; description?: string }[]
	paths: Record<string, Methods & { servers?: Server[] }>
}

type Methods = Record<string, Operation>

interface Server {
	variables?: { port?: { default: string } }
}

interface Operation {
	summary?: string
	tags: string[]
	'x-scope'?: string | string[]
}

export function routesTable({ paths, tags }: ApiDocument): string {
	const rows = Object.entries(paths).flatMap(([path, { servers: _elsewhere, ...methods }]) =>
		Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
	)
	const parts = tags.flatMap(({ name, description }) => {
		const own = rows.filter(({ operation }) => operation.tags[0] === name)
		if (own.length === 0) return []
		const lines = own.map(({ method, path, operation }) => [
			code(`${method} ${path}`),
			[operation['x-scope'] ?? []].flat().map(code).join(' or ') || 'none',
			operation.summary ?? '',
		])
		return [`### ${name}\n\n${description ?? ''}\n\n${table(['', 'Scope', ''], lines)}`]
	})
	return parts.join('\n\n')
}
