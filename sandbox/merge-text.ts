/** How long a piece waits for further ones: too short to be seen, long enough to spare most messages. */
const WINDOW_MS = 30
/** Characters that are passed on without waiting for the window's end. */
const SIZE_LIMIT = 16 * 1024

/** Passes the first piece on at once, and those that follow it closely as one each 30 ms; `flush`: what waits, at once. */
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
