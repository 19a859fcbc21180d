import type { Output, Progress } from './contract.ts'
import { safe, safeJson } from './plain.ts'
import { paint, styleFor } from './style.ts'

/** Where a command writes. */
export type Sink = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

export interface OutputOptions {
	stdout: Sink
	stderr: Sink
	env: Readonly<NodeJS.ProcessEnv>
	/** Functions, since the options are parsed after the commands are set up. */
	json: () => boolean
	quiet: () => boolean
}

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const FRAME_MS = 100
/** After this time the spinner shows the elapsed seconds. */
const COUNTED_S = 3

/** Makes all output safe for terminals. Colours only on terminals, and not with `NO_COLOR`. */
export function openOutput({ stdout, stderr, env, json, quiet }: OutputOptions): Output {
	const colours = (sink: Sink): boolean => sink.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
	/** The latest spinner: other lines come above it, and the beginning of a line ends it. */
	let spinning: Spinner | undefined
	const above = (text: string, write: () => void): void => {
		if (text.endsWith('\n')) spinning?.clear()
		else spinning?.done()
		write()
		spinning?.draw()
	}
	const toAnswer = (text: string): void => above(text, () => stdout.write(paint(safe(text), colours(stdout))))
	const toPeople = (text: string): void => above(text, () => stderr.write(paint(safe(text), colours(stderr))))
	// A terminal may change its size while a command runs, and some report 0 columns.
	const style = (): Output['style'] => styleFor({ columns: (stdout.isTTY && stdout.columns) || undefined })

	return {
		get json() {
			return json()
		},
		get quiet() {
			return quiet()
		},
		get style() {
			return style()
		},
		get richColumns() {
			return !json() && colours(stdout) ? Math.max(20, stdout.columns || 80) : null
		},
		answer(value, show) {
			if (json()) stdout.write(`${safeJson(value, 2)}\n`)
			else toAnswer(`${show(value, style())}\n`)
		},
		write(text) {
			if (!json()) toAnswer(text)
		},
		line(value) {
			if (json()) stdout.write(`${safeJson(value)}\n`)
		},
		note(text) {
			if (!quiet()) toPeople(`${text}\n`)
		},
		progress(text, { terminalOnly = false } = {}) {
			if (json() || quiet()) return silent
			if (!stderr.isTTY || env.TERM === 'dumb') return terminalOnly ? silent : plainly(text, toPeople)
			spinning?.done()
			const write = (shown: string): void => void stderr.write(paint(safe(shown), colours(stderr)))
			spinning = spinner(text, write, stderr, { counts: !terminalOnly })
			return spinning
		},
	}
}

const silent: Progress = { update() {}, done() {}, [Symbol.dispose]() {} }

/** One line at the beginning and one at the end, for logs. */
function plainly(text: string, write: (text: string) => void): Progress {
	let over = false
	write(`${text} …\n`)
	return {
		...silent,
		done(last) {
			if (!over && last !== undefined) write(`${last}\n`)
			over = true
		},
	}
}

interface Spinner extends Progress {
	/** Removes it from the screen until it is drawn again; does nothing once it has ended. */
	clear(): void
	draw(): void
}

/** Redraws only the symbol while the text is the same, so that what a user types meanwhile stays in place. */
function spinner(first: string, write: (text: string) => void, sink: Sink, { counts }: { counts: boolean }): Spinner {
	let text = first
	let drawn = ''
	let frame = 0
	let over = false
	const begin = performance.now()
	const clear = (): void => {
		if (over) return
		sink.write('\r\x1b[K')
		drawn = ''
	}
	const draw = (): void => {
		if (over) return
		const seconds = Math.floor((performance.now() - begin) / 1000)
		const since = counts && seconds >= COUNTED_S ? ` (${seconds} s)` : ''
		const line = `${text.slice(0, Math.max(10, (sink.columns || 80) - 3 - since.length))}${since}`
		const sign = FRAMES[frame++ % FRAMES.length] ?? ''
		if (line === drawn) {
			sink.write('\x1b7\r')
			write(sign)
			sink.write('\x1b8')
			return
		}
		clear()
		write(`${sign} ${line}`)
		drawn = line
	}
	draw()
	const timer = setInterval(draw, FRAME_MS)
	timer.unref()
	return {
		clear,
		draw,
		update: (next) => void (text = next),
		done(last) {
			if (over) return
			clear()
			over = true
			clearInterval(timer)
			if (last !== undefined) write(`${last}\n`)
		},
		[Symbol.dispose]() {
			this.done()
		},
	}
}
