import type { Credentials } from '../auth/contract.ts'

/** Open streams by caller, so that ten thousand streams of one token are one question. */
export class Callers<Stream> {
	readonly #groups = new Map<string, { credentials: Credentials; streams: Set<Stream> }>()
	#checking = false

	add(credentials: Credentials, stream: Stream): void {
		const key = keyOf(credentials)
		const group = this.#groups.get(key)
		if (group) group.streams.add(stream)
		else this.#groups.set(key, { credentials, streams: new Set([stream]) })
	}

	remove(credentials: Credentials, stream: Stream): void {
		const key = keyOf(credentials)
		const group = this.#groups.get(key)
		group?.streams.delete(stream)
		if (group?.streams.size === 0) this.#groups.delete(key)
	}

	/**
	 * Asks for each caller whether it is still good, and hands over the streams of those that are not. A question that
	 * fails counts as a no. Does nothing while an earlier check is still under way.
	 */
	async check(isGood: (credentials: Credentials) => Promise<boolean>, lost: (stream: Stream) => void): Promise<void> {
		if (this.#checking) return
		this.#checking = true
		for (const { credentials, streams } of this.#groups.values()) {
			const good = await isGood(credentials).catch(() => false)
			if (!good) for (const stream of streams) lost(stream)
		}
		this.#checking = false
	}
}

function keyOf({ token_id, local }: Credentials): string {
	return `${local ? 'local' : 'remote'} ${token_id ?? ''}`
}
