/** What the output of a test process says: its failures, and how many assertions there were. */

export interface Failure {
	/** The tests that it is in, outermost first, and the assertion. */
	names: string[]
	/** What tap tells of it, such as the difference and the place. */
	details: string[]
}

/** Of assertions, by tap's words: `total`, `pass`, `fail`, `skip`, `todo`. */
export type Counts = Record<string, number>

export interface TapReader {
	/** Takes the next line; false if it is not tap's. */
	line(text: string): boolean
	readonly failures: readonly Failure[]
	/** Null until the process has ended in good order. */
	readonly counts: Counts | null
}

const INDENT = 4
const subtest = /^# Subtest: (.*)$/
const failed = /^not ok \d+(?: - (.*?))?(?: # time=\S+)?$/
const isExcused = /(?<!\\)# (?:TODO|SKIP)\b/i
const totals = /^# \{ (total: .*) \}$/
const rest = /^(?:ok \d|not ok \d|# |1\.\.\d|TAP version |Bail out!)/

/** Reads TAP 14 as tap writes it: the lines of a test are indented by four more than that of its result, which follows them. */
export function readTap(): TapReader {
	const failures: Failure[] = []
	let counts: Counts | null = null
	/** The test that was begun last at each depth. */
	const begun: string[] = []
	/** Whether something has failed in the test that was begun last at each depth. */
	const hasFailed: boolean[] = []
	/** Where details of the last result go, and whether they have begun. */
	let details: { lines: string[]; indent: number; isOpen: boolean } | undefined

	/** Returns where its details go. */
	const fail = (depth: number, name: string): string[] => {
		const failure: Failure = { names: [...begun.slice(0, depth), name], details: [] }
		// A test fails when something in it does, which was reported then.
		if (begun[depth] !== name || !hasFailed[depth]) failures.push(failure)
		hasFailed.fill(true, 0, depth)
		return failure.details
	}
	return {
		failures,
		get counts() {
			return counts
		},
		line(text) {
			const trimmed = text.trimStart()
			const indent = text.length - trimmed.length
			if (details?.isOpen) {
				if (trimmed === '...' && indent === details.indent) details = undefined
				else details.lines.push(text.slice(details.indent))
				return true
			}
			if (trimmed === '---') {
				details = { lines: details?.lines ?? [], indent, isOpen: true }
				return true
			}
			details = undefined
			const depth = indent / INDENT
			const name = subtest.exec(trimmed)?.[1]
			if (name !== undefined) {
				begun.splice(depth, Infinity, plain(name))
				hasFailed.splice(depth, Infinity, false)
				return true
			}
			const failure = isExcused.test(trimmed) ? null : failed.exec(trimmed)
			if (failure) details = { lines: fail(depth, plain(failure[1] ?? '')), indent, isOpen: false }
			const total = depth === 0 ? totals.exec(trimmed)?.[1] : undefined
			if (total !== undefined)
				counts = Object.fromEntries(
					Array.from(total.matchAll(/(\w+): (\d+)/g), ([, key, count]) => [key, Number(count)]),
				)
			return trimmed === '' || rest.test(trimmed)
		},
	}
}

function plain(name: string): string {
	return name.replaceAll(/\\([#\\])/g, '$1')
}
