/** Joins albums: Telegram delivers each file of an album as a separate message, and only one of them has the caption. */
import type { Update } from 'grammy/types'
import type { IncomingMessage } from '../channels/adapter.ts'

/** Identifies the album of an update; undefined if it belongs to none. */
export function albumOf({ message }: Update): string | undefined {
	const { chat, media_group_id } = message ?? {}
	return media_group_id === undefined ? undefined : `${chat?.id} ${media_group_id}`
}

/** Groups successive parts of an album. Keeps the order of the updates. */
export function groupAlbums(updates: readonly Update[]): Update[][] {
	const groups: Update[][] = []
	for (const update of updates) {
		const album = albumOf(update)
		const before = groups.at(-1)
		if (before?.[0] && album !== undefined && albumOf(before[0]) === album) before.push(update)
		else groups.push([update])
	}
	return groups
}

/** Joins parts with files into one message. A part without files, such as a video, stays a separate message. */
export function joinParts(parts: readonly IncomingMessage[]): IncomingMessage[] {
	const addressed = parts.some((part) => part.addressed)
	const whole: IncomingMessage[] = []
	for (const part of parts) {
		const before = whole.at(-1)
		if (!before?.attachments || !part.attachments) {
			whole.push({ ...part, addressed })
			continue
		}
		whole[whole.length - 1] = {
			...before,
			text: [before.text, part.text].filter((text) => text !== '').join('\n\n'),
			attachments: [...before.attachments, ...part.attachments],
			...((before.quoted ?? part.quoted) && { quoted: before.quoted ?? part.quoted }),
			...(part.cursor !== undefined && { cursor: part.cursor }),
		}
	}
	return whole
}
