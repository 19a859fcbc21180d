/** Tables of docs/http-api.md that follow from the code: error codes by status, and scopes with what they open. */
import { generalCodes } from '../../core/errors.ts'
import { builtInPlugins } from './plugins.ts'
import { declaredBy } from '../../core/host/declared.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import { code, table } from './markdown.ts'

/** What callers make of a status. */
const meanings: Record<number, string> = {
	400: 'The request is invalid; `errors` lists the fields.',
	401: 'No token, or one that is unknown, revoked or expired; or a wrong signature.',
	403: 'The token lacks the scope that the message names, or the agent the grant.',
	404: 'The resource does not exist.',
	405: 'The path exists, but only for other methods.',
	409: 'The resource already exists, or its state does not allow the operation.',
	413: 'Too large.',
	415: 'Send `application/json`.',
	429: 'Too many requests; `Retry-After` gives the time to wait.',
	500: 'An internal error of the gateway; its log has the details.',
	502: 'A model, another server or a program failed.',
	503: 'Temporarily unavailable; nothing was changed.',
	504: 'A model, another server or a program took too long.',
	507: 'The disk is full; nothing was changed.',
}

export async function codesTable(): Promise<string> {
	const byStatus = Map.groupBy(
		[...Object.entries(generalCodes), ...(await pluginCodes()).map(([name, { status }]) => [name, status] as const)],
		([, status]) => status,
	)
	const rows = [...byStatus]
		.toSorted(([a], [b]) => a - b)
		.map(([status, codes]) => {
			const meaning = meanings[status]
			if (meaning === undefined) throw new Error(`docs/make/codes.ts does not say what ${status} means`)
			return [String(status), codes.map(([name]) => code(name)).join(', '), meaning]
		})
	return table(['Status', 'Codes', ''], rows)
}

/** What the codes of features mean, in the words of their plugins. */
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
