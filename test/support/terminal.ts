/** A program on a pseudo-terminal, and what its screen shows: what a person sees, not the bytes that led to it. */
import xterm from '@xterm/headless'
import { spawn } from '@lydell/node-pty'
import { WAIT_LIMIT_MS } from './wait.ts'

export interface TerminalOptions {
	cwd: string
	env: Record<string, string>
	columns?: number
	rows?: number
}

export interface TerminalProgram {
	/** Presses keys. */
	type(keys: string): void
	/** Settles once the screen, with what was scrolled out of it, matches; rejects with the screen where the program ends before. */
	shows(what: string | RegExp): Promise<void>
	/** Lines of the screen and of what was scrolled out, without empty ones at the end. */
	screen(): string
	/** Everything that was written to the terminal. */
	written(): string
	/** Styles of the first cell at which that text stands. */
	styleOf(text: string): { bold: boolean; italic: boolean; colour: boolean } | undefined
	/** The exit code. */
	ended: Promise<number>
	kill(): void
}

/** The screen is looked at whenever something is written, so nobody waits for longer than that takes. */
export function openTerminal(
	command: string,
	args: string[],
	{ cwd, env, columns = 100, rows = 40 }: TerminalOptions,
): TerminalProgram {
	const screen = new xterm.Terminal({ cols: columns, rows, scrollback: 2_000, allowProposedApi: true })
	const pty = spawn(command, args, { name: 'xterm-256color', cols: columns, rows, cwd, env })
	const waiting = new Set<() => void>()
	let written = ''
	let isOver = false
	const look = (): void => waiting.forEach((check) => check())
	// The terminal answers what a program asks it.
	screen.onData((data) => pty.write(data))
	pty.onData((data) => {
		written += data
		screen.write(data, look)
	})
	const ended = new Promise<number>((resolve) => {
		pty.onExit(({ exitCode }) => {
			screen.write('', () => {
				isOver = true
				look()
				resolve(exitCode)
			})
		})
	})
	const lines = (): string[] => {
		const { active } = screen.buffer
		return Array.from({ length: active.length }, (_, n) => active.getLine(n)?.translateToString(true) ?? '')
	}
	const text = (): string => lines().join('\n').trimEnd()
	return {
		type: (keys) => pty.write(keys),
		shows(what) {
			const { promise, resolve, reject } = Promise.withResolvers<void>()
			const check = (): void => {
				const found = typeof what === 'string' ? text().includes(what) : what.test(text())
				if (!found && !isOver) return
				waiting.delete(check)
				clearTimeout(timer)
				if (found) resolve()
				else reject(new Error(`it ended before it showed ${String(what)}:\n${text()}`))
			}
			const late = (): void => reject(new Error(`it does not show ${String(what)}:\n${text()}`))
			const timer = setTimeout(late, WAIT_LIMIT_MS)
			waiting.add(check)
			check()
			return promise
		},
		screen: text,
		written: () => written,
		styleOf(wanted) {
			for (const [y, line] of lines().entries()) {
				const x = line.indexOf(wanted)
				const cell = x < 0 ? undefined : screen.buffer.active.getLine(y)?.getCell(x)
				if (cell) return { bold: cell.isBold() !== 0, italic: cell.isItalic() !== 0, colour: !cell.isFgDefault() }
			}
			return undefined
		},
		ended,
		kill: () => isOver || pty.kill('SIGKILL'),
	}
}
