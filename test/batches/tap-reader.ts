/** Reads the output of a test process: its failures, and the number of assertions. */
import type { Readable } from 'node:stream'
import { Parser } from 'tap-parser'

const outcomes = ['pass', 'fail', 'skip', 'todo'] as const
/** Numbers of assertions, by tap's terms for their outcomes. */
export type Counts = Record<'total' | (typeof outcomes)[number], number>

export interface TapReader {
	/** Each with the names of the tests around it, and tap's details, such as the difference and the place. */
	readonly failures: readonly string[]
	/** Whether the output ends with a plan, the number of tests. */
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
			// Without any output, the parser invents a plan.
			return parser.planEnd !== -1 && !parser.syntheticPlan
		},
		get isGood() {
			return this.isComplete && parser.ok
		},
	}
}

/** The parser unescapes only the names of results, and would not see that a result and a test have the same name. */
function unescapeName(test: Parser): void {
	test.name = test.name.replaceAll(/\\([#\\])/g, '$1')
	test.on('child', unescapeName)
}
