/** Tables of docs/http-api.md: error codes by status, and scopes with what they permit. */
import { generalCodes } from '../../core/errors.ts'
import { builtInPlugins } from './plugins.ts'
import { declaredBy } from '../../core/host/declared.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import { meanings } from '../../plugins/system/openapi/errors.ts'
import { code, table } from './markdown.ts'

export async function codesTable(): Promise<string> {
	const byStatus = Map.groupBy(
		[...Object.entries(generalCodes), ...(await pluginCodes()).map(([name, { status }]) => [name, status] as const)],
		([, status]) => status,
	)
	const rows = [...byStatus]
		.toSorted(([a], [b]) => a - b)
		.map(([status, codes]) => {
			const meaning = meanings[status]
			if (!meaning) throw new Error(`plugins/system/openapi/errors.ts does not describe the status ${status}`)
			return [String(status), codes.map(([name]) => code(name)).join(', '), meaning.description]
		})
	return table(['Status', 'Codes', ''], rows)
}

/** The error codes of plugins with their descriptions. */
export async function pluginCodesTable(): Promise<string> {
	const rows = (await pluginCodes()).map(([name, { description }]) => [code(name), description])
	return table(['Code', ''], rows)
}

export async function scopesTable(): Promise<string> {
	const { scopes } = declaredBy(await builtInPlugins())
	return table(
		['Scope', ''],
		[...scopes].map(([scope, grants]) => [code(scope), `${grants}.`]),
	)
}

async function pluginCodes(): Promise<[string, ErrorCode][]> {
	return [...declaredBy(await builtInPlugins()).errors]
}
