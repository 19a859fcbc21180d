/** Lists that the gateway returns in pages. */
import type { Cli } from './contract.ts'

/** The gateway's limit for one page. */
export const PAGE = 500

/**
 * The pages of a list from `query.cursor` on, `limit` items in total. `key`: the field of a page that contains the items. A page
 * may be shorter than its limit, so pages are requested until there is no cursor.
 */
export async function* pages<T>(
	{ api }: Cli,
	where: string,
	key: keyof T,
	limit: number,
	query: Record<string, string> = {},
): AsyncGenerator<T & { next_cursor: string | null }> {
	let cursor = query.cursor ?? null
	let left = limit
	do {
		const fields = { ...query, limit: String(Math.min(PAGE, left)), ...(cursor !== null && { cursor }) }
		const address = `${where}?${new URLSearchParams(fields).toString()}`
		const page: T & { next_cursor: string | null } = await api.request('GET', address)
		yield page
		left -= (page[key] as unknown[]).length
		cursor = page.next_cursor
	} while (left > 0 && cursor !== null)
}
