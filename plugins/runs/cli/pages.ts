import type { Cli } from '../../../core/cli/contract.ts'

/** The gateway's own limit for one page. */
export const PAGE = 500

/**
 * The pages of a list, with `limit` items together; `key`: the field of a page that has its items. A page may be shorter than its
 * limit, so pages are requested until there is no cursor.
 */
export async function pages<T>(
	{ api }: Cli,
	where: string,
	key: keyof T,
	limit: number,
	query: Record<string, string> = {},
): Promise<T[]> {
	const found: T[] = []
	let cursor: string | null = null
	let left = limit
	do {
		const fields = { ...query, limit: String(Math.min(PAGE, left)), ...(cursor !== null && { cursor }) }
		const address = `${where}?${new URLSearchParams(fields).toString()}`
		const page: T & { next_cursor: string | null } = await api.request('GET', address)
		found.push(page)
		left -= (page[key] as unknown[]).length
		cursor = page.next_cursor
	} while (left > 0 && cursor !== null)
	return found
}
