/** How long a piece waits for further ones: too short to notice, long enough to save most messages. */
const WINDOW_MS = 30
/** This many characters are passed on without waiting for the end of the window. */
const SIZE_LIMIT = 16 * 1024

/** Passes on the first piece at once, and merges those that follow it closely, every 30 ms. `flush` passes on waiting text at once. */
export function mergeText(passOn: (text: string) => void): { add(text: string): void; flush(): void } {
	let merged = ''
	let timer: NodeJS.Timeout | undefined

	const flush = (): void => {
		clearTimeout(timer)
		timer = undefined
		if (merged === '') return
		const text = merged
		merged = ''
		passOn(text)
	}
	const windowEnds = (): void => {
		timer = undefined
		if (merged === '') return
		flush()
		timer = setTimeout(windowEnds, WINDOW_MS)
	}

	return {
		flush,
		add(text) {
			merged += text
			if (timer !== undefined && merged.length < SIZE_LIMIT) return
			flush()
			timer = setTimeout(windowEnds, WINDOW_MS)
		},
	}
}
