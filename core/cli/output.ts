import type { Output, Progress } from './contract.ts'
import { safe, safeJson } from './plain.ts'
import { paint, styleFor } from './style.ts'

/** Where a command writes. */
export type Sink = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

export interface OutputOptions {
	stdout: Sink
	stderr: Sink
	env: Readonly<NodeJS.ProcessEnv>
	/** Asked at each use: options are read after commands are set up. */
	json: () => boolean
	quiet: () => boolean
}

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const FRAME_MS = 100
/** From then on it shows how long it has taken. */
const COUNTED_S = 3

export function openOutput({ stdout, stderr, env, json, quiet }: OutputOptions): Output {
	const colours = (sink: Sink): boolean => sink.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
	const toAnswer = (text: string): void => void stdout.write(paint(safe(text), colours(stdout)))
	const toPeople = (text: string): void => void stderr.write(paint(safe(text), colours(stderr)))
	// A terminal may change its size while a command runs.
	// Some say 0 where they do not know it.
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
		progress(text) {
			if (json() || quiet()) return silent
			if (!stderr.isTTY || env.TERM === 'dumb') return plainly(text, toPeople)
			return spinner(text, toPeople, stderr)
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

function spinner(first: string, write: (text: string) => void, sink: Sink): Progress {
	let text = first
	let frame = 0
	const clear = (): void => void sink.write('\r\x1b[K')
	const begin = performance.now()
	const draw = (): void => {
		const seconds = Math.floor((performance.now() - begin) / 1000)
		const since = seconds >= COUNTED_S ? ` (${seconds} s)` : ''
		clear()
		const room = Math.max(10, (sink.columns ?? 80) - 3 - since.length)
		write(`${FRAMES[frame++ % FRAMES.length]} ${text.slice(0, room)}${since}`)
	}
	draw()
	const timer = setInterval(draw, FRAME_MS)
	timer.unref()
	const end = (): void => {
		clearInterval(timer)
		clear()
	}
	let over = false
	return {
		update: (next) => void (text = next),
		done(last) {
			if (over) return
			over = true
			end()
			if (last !== undefined) write(`${last}\n`)
		},
		[Symbol.dispose]() {
			this.done()
		},
	}
}
