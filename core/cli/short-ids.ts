/** Ids as people read and type them. The first half of a UUIDv7 is the time, so the end distinguishes two of them. */

const LENGTH = 8
const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi
export const wholeId = new RegExp(`^${uuid.source}$`, 'i')
/** A possible beginning or end of an id. */
export const partOfId = /^[0-9a-f-]{4,35}$/i

/** The last 8 characters. */
export function shortId(id: string): string {
	return id.slice(-LENGTH)
}

/** A text with all UUIDs in it shortened. */
export function withShortIds(text: string): string {
	return text.replace(uuid, shortId)
}

/** Whether an id begins or ends with what the user typed. */
export function matchesId(id: string, typed: string): boolean {
	return partOfId.test(typed) && (id.startsWith(typed.toLowerCase()) || id.endsWith(typed.toLowerCase()))
}
