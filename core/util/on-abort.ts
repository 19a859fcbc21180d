const listening = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `listener` when the signal aborts, unless the returned function was called before. For signals with thousands of
 * listeners: `addEventListener` compares a new one with all others. `listener` must not throw.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
	const listeners = listening.get(signal) ?? listen(signal)
	listeners.add(listener)
	return () => void listeners.delete(listener)
}

function listen(signal: AbortSignal): Set<() => void> {
	const listeners = new Set<() => void>()
	listening.set(signal, listeners)
	const tell = (): void => {
		for (const listener of listeners) listener()
	}
	signal.addEventListener('abort', tell, { once: true })
	return listeners
}
