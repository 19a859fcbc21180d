/** Reads the output of a test process: its failures, and the number of assertions. */
import type { Readable } from 'node:stream'
import { Parser } from 'tap-parser'

const outcomes = ['pass', 'fail', 'skip', 'todo'] as const
/** Numbers of assertions, by tap's terms for their outcomes. */
export type Counts = Record<'total' | (typeof outcomes)[number], number>

export interface TapReader {
	/** Each with the names of its parent tests and tap's details, such as the difference and the line. */
	readonly failures: readonly string[]
	/** Whether the output ends with a plan, the number of tests. */
	readonly isComplete: boolean
	/** Whether it is complete and nothing failed. */
	readonly isGood: boolean
}

/** Parses TAP and adds to the counts. `onOther` receives text that is not TAP. */
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
		// Without the result line and the marks around the details.
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
			// Without any output, the parser invents a plan.
			return parser.planEnd !== -1 && !parser.syntheticPlan
		},
		get isGood() {
			return this.isComplete && parser.ok
		},
	}
}

/** The parser unescapes only the names of results, and so does not recognize the result of a test whose name is escaped. */
function unescapeName(test: Parser): void {
	test.name = test.name.replaceAll(/\\([#\\])/g, '$1')
	test.on('child', unescapeName)
}
