/**
 * Calls `run` if no input arrives for `ms`: after that time, and after the input is read that arrived while this process was blocked.
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
