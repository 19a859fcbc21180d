/** The part of a caller that identifies it. */
export interface Caller {
	/** Null for a local caller without a token. */
	token_id: string | null
	local: boolean
}

/** What stays open for longer than a request, by its caller: so that ten thousand streams of one token are one question. */
export class Callers<Who extends Caller, Open> {
	readonly #groups = new Map<string, { caller: Who; open: Set<Open> }>()
	#checking = false

	add(caller: Who, one: Open): void {
		const key = keyOf(caller)
		const group = this.#groups.get(key)
		if (group) group.open.add(one)
		else this.#groups.set(key, { caller, open: new Set([one]) })
	}

	remove(caller: Who, one: Open): void {
		const key = keyOf(caller)
		const group = this.#groups.get(key)
		group?.open.delete(one)
		if (group?.open.size === 0) this.#groups.delete(key)
	}

	/**
	 * Checks for each caller whether it is still valid, and passes on what is open for those that are not. A check that
	 * fails counts as invalid. Does nothing while an earlier check is still running.
	 */
	async check(isGood: (caller: Who) => Promise<boolean>, lost: (one: Open) => void): Promise<void> {
		if (this.#checking) return
		this.#checking = true
		try {
			for (const { caller, open } of this.#groups.values()) {
				const good = await isGood(caller).catch(() => false)
				if (!good) for (const one of open) lost(one)
			}
		} finally {
			this.#checking = false
		}
	}
}

function keyOf({ token_id, local }: Caller): string {
	return `${local ? 'local' : 'remote'} ${token_id ?? ''}`
}
