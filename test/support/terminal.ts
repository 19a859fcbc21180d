/** A program on a pseudo-terminal, and its screen as a person sees it. */
import xterm from '@xterm/headless'
import { spawn } from '@lydell/node-pty'
import { openWatch } from './wait.ts'

export interface TerminalOptions {
	cwd: string
	env: Record<string, string>
	columns?: number
	rows?: number
}

export interface TerminalProgram {
	/** Presses keys. */
	type(keys: string): void
	/** Settles once the screen, scrollback included, matches. Rejects with the screen's text if the program ends before. */
	shows(what: string | RegExp): Promise<void>
	/** The text of the screen and its scrollback, without trailing empty lines. */
	screen(): string
	/** Everything that was written to the terminal. */
	written(): string
	/** The style of the first cell of that text. */
	styleOf(text: string): { bold: boolean; italic: boolean; colour: boolean } | undefined
	/** The exit code. */
	ended: Promise<number>
	kill(): void
}

/** The screen is checked after each write. */
export function openTerminal(
	command: string,
	args: string[],
	{ cwd, env, columns = 100, rows = 40 }: TerminalOptions,
): TerminalProgram {
	const screen = new xterm.Terminal({ cols: columns, rows, scrollback: 2_000, allowProposedApi: true })
	const pty = spawn(command, args, { name: 'xterm-256color', cols: columns, rows, cwd, env })
	const watch = openWatch()
	let written = ''
	let isOver = false
	// The terminal answers the program's queries.
	screen.onData((data) => pty.write(data))
	pty.onData((data) => {
		written += data
		screen.write(data, () => watch.check())
	})
	const ended = new Promise<number>((resolve) => {
		pty.onExit(({ exitCode }) => {
			screen.write('', () => {
				isOver = true
				watch.check()
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
		async shows(what) {
			await watch.until(
				() => {
					if (typeof what === 'string' ? text().includes(what) : what.test(text())) return true
					if (isOver) throw new Error(`the program ended before it showed ${String(what)}:\n${text()}`)
					return undefined
				},
				() => `the screen does not show ${String(what)}:\n${text()}`,
			)
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
