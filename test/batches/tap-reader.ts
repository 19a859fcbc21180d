/** What the output of a test process says: its failures, and how many assertions there were. */
import type { Readable } from 'node:stream'
import { Parser } from 'tap-parser'

const outcomes = ['pass', 'fail', 'skip', 'todo'] as const
/** Of assertions, by tap's words. */
export type Counts = Record<'total' | (typeof outcomes)[number], number>

export interface TapReader {
	/** Each with the tests that it is in, and what tap tells of it, such as the difference and the place. */
	readonly failures: readonly string[]
	/** Whether the process said at its end how many tests it ran. */
	readonly isComplete: boolean
	/** Whether it is complete and nothing failed. */
	readonly isGood: boolean
}

/** Reads TAP, adds to the counts, and passes on what is not TAP. */
export function readTap(output: Readable, counts: Counts, onOther: (text: string) => void): TapReader {
	const failures: string[] = []
	const parser = new Parser()
	parser.on('child', unescapeName)
	for (const outcome of outcomes)
		parser.on(outcome, () => {
			counts.total++
			counts[outcome]++
		})
	parser.on('fail', (result) => {
		// Its line and the marks around the details are left out.
		const details = Parser.stringify([['assert', result]])
			.split('\n')
			.slice(2, -2)
		failures.push(`  ✖ ${result.fullname}\n${details.map((line) => `    ${line}\n`).join('')}\n`)
	})
	parser.on('extra', onOther)
	output.setEncoding('utf8').pipe(parser)
	return {
		failures,
		get isComplete() {
			// The parser makes up a plan for no output at all.
			return parser.planEnd !== -1 && !parser.syntheticPlan
		},
		get isGood() {
			return this.isComplete && parser.ok
		},
	}
}

/** The parser does so with names of results only, and would not see that the two are of the same test. */
function unescapeName(test: Parser): void {
	test.name = test.name.replaceAll(/\\([#\\])/g, '$1')
	test.on('child', unescapeName)
}
