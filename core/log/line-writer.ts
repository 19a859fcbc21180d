import { writeSync } from 'node:fs'

/** Bytes of lines that wait while no more can be written. */
const WAITING_LIMIT = 1024 * 1024
/** The delay of a retry after one that wrote something. A pipe takes only 64 KiB at a time, so its reader must not wait for long. */
const RETRY_MS = 10
/** The delay is doubled up to this while nothing can be written. */
const LONGEST_RETRY_MS = 100
/** How long the lines that wait may delay the end of the process. */
const EXIT_MS = 1_000

interface LineWriterOptions {
	/** Called once lines can be written again, if some were dropped: with their number, and the code of the error, such as `ENOSPC`. */
	onDropped(lines: number, code: string): void
	fd?: number
}

/**
 * Writes lines to standard error at once, and never waits: a pipe whose reader has stopped must not stop the gateway. While a pipe
 * or a disk is full, up to 1 MiB of lines wait, and further ones are dropped. If the pipe is closed, all lines are dropped.
 */
export function openLineWriter({ onDropped, fd = 2 }: LineWriterOptions) {
	// Opening the stream of a pipe or socket makes it non-blocking.
	if (fd === 2) void process.stderr
	const waiting: Buffer[] = []
	let bytes = 0
	let dropped = 0
	let code = ''
	let retry: NodeJS.Timeout | undefined

	/** Returns what could not be written. */
	const rest = (line: Buffer): Buffer => {
		let left = line
		try {
			while (left.length > 0) left = left.subarray(writeSync(fd, left))
		} catch (error) {
			;({ code = '' } = error as NodeJS.ErrnoException)
			if (code === 'EPIPE' || code === 'EBADF') return Buffer.alloc(0)
		}
		return left
	}
	const flush = (): void => {
		while (waiting[0]) {
			const left = rest(waiting[0])
			bytes -= waiting[0].length - left.length
			if (left.length > 0) {
				waiting[0] = left
				return
			}
			waiting.shift()
		}
		clearTimeout(retry)
		retry = undefined
		process.off('exit', flushAtExit)
		const lines = dropped
		dropped = 0
		if (lines > 0) onDropped(lines, code)
	}
	const retryAfter = (ms: number): void => {
		retry = setTimeout(() => {
			retry = undefined
			const before = bytes
			flush()
			if (waiting.length > 0 && !retry) retryAfter(bytes < before ? RETRY_MS : Math.min(2 * ms, LONGEST_RETRY_MS))
		}, ms).unref()
	}
	const flushAtExit = (): void => {
		const ends = performance.now() + EXIT_MS
		const sleeper = new Int32Array(new SharedArrayBuffer(4))
		for (flush(); waiting.length > 0 && performance.now() < ends; flush()) Atomics.wait(sleeper, 0, 0, 10)
	}
	return {
		write(line: string): void {
			const left = waiting.length === 0 ? rest(Buffer.from(line)) : Buffer.from(line)
			if (left.length === 0) return
			// The rest of a line always waits: other lines must begin on a line of their own.
			if (waiting.length > 0 && bytes + left.length > WAITING_LIMIT) return void dropped++
			waiting.push(left)
			bytes += left.length
			if (retry) return
			retryAfter(RETRY_MS)
			process.on('exit', flushAtExit)
		},
	}
}
