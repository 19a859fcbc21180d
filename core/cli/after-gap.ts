/**
 * Calls `run` once no input has arrived for `ms`. Input that arrived while this process was blocked is read first.
 * Returns a function that cancels the call, for the next input.
 */
export function afterGap(ms: number, run: () => void): () => void {
	let turn: NodeJS.Immediate | undefined
	const timer = setTimeout(() => (turn = setImmediate(run)), ms)
	return () => {
		clearTimeout(timer)
		clearImmediate(turn)
	}
}
