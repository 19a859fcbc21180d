interface Listeners {
	/** In cells, for the same reason as the values of a TransientMap. */
	all: Set<{ listener: (() => void) | undefined }>
	/** The only listener of the signal, which calls all of them. */
	tell(): void
}

const listening = new WeakMap<AbortSignal, Listeners>()

/**
 * Calls `listener` when the signal aborts, unless the returned function was called before. For signals with thousands of
 * listeners: `addEventListener` compares a new one with all others. `listener` must not throw.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
	const listeners = listening.get(signal) ?? listen(signal)
	const cell: { listener: (() => void) | undefined } = { listener }
	listeners.all.add(cell)
	return () => {
		cell.listener = undefined
		if (!listeners.all.delete(cell) || listeners.all.size > 0) return
		// Node keeps a signal of `AbortSignal.any` in memory for as long as it has a listener.
		signal.removeEventListener('abort', listeners.tell)
		listening.delete(signal)
	}
}

function listen(signal: AbortSignal): Listeners {
	const all: Listeners['all'] = new Set()
	const tell = (): void => {
		for (const { listener } of all) listener?.()
	}
	signal.addEventListener('abort', tell, { once: true })
	const listeners = { all, tell }
	listening.set(signal, listeners)
	return listeners
}
