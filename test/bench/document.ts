/** Generates docs/performance.md from the figures of one run of the bench. */
import type { Level } from './effort.ts'
import { rowOf, summaryOf } from './table.ts'
import type { Figure } from './table.ts'

export interface Measured {
	/** One line: Node, kernel, processor, memory. */
	machine: string
	/** The load average of the minute before the run, and whether other programs caused too much load for good figures. */
	load: number
	isBusy: boolean
	level: Level
	/** The gateway's version. */
	version: string
	figures: readonly Figure[]
}

const BUSY =
	'Other programs used the machine during the run: on an idle one the absolute figures are better, and the ratios differ.'
const heads = ['Figure', 'Gateway', 'Bare', 'Ratio', 'Goal', 'Outcome']
const align = ['---', '--:', '--:', '--:', '---', '---']

/** Figures with a goal first, then those of the chart, then all others. */
export function documentOf({ machine, load, isBusy, level, version, figures }: Measured): string {
	const goals = figures.filter(({ goal }) => goal)
	const points = figures.filter(({ point }) => point)
	const others = figures.filter(({ goal, point }) => !goal && !point)
	return `# Performance

This page was written by \`npm run bench -- --write\`. Do not edit it; run the command again.

The gateway, compared with bare counterparts that were measured alternately with it in the same run. The counterpart of a run is a
loop of the \`openai\` package that makes the same model calls and stores nothing; of a request, a hapi route that
answers from memory; of a delivery, a hapi route that checks the HMAC and writes one durable record; of a search, usearch alone. The
model is a server with zero latency in a separate process: runs of a real model mostly wait for it, so nearly all of the
differences that are measured here become negligible.

| What | Value |
| --- | --- |
| Machine | ${machine} |
| Load before the run | ${load.toFixed(1)} (running processes, average of one minute) |
| Gateway | ${version}, data in LMDB on the local disk |
| Effort | ${level} (\`test/bench/effort.ts\`) |

Clients, models and both sides share the cores of that machine. Ratios carry over to other machines better than absolute figures.${isBusy ? `\n${BUSY}` : ''}

## Goals

${summaryOf(figures)}

${tableIn(goals)}

Ratios are medians of neighbouring rounds (of runs and deliveries: in several fresh processes), so they may differ a little from
the quotient of the two columns beside them.

## From 1 client to 256

![Throughput and latency of runs with 1 to 256 clients, of the gateway and of the bare loop](images/performance.svg)

Each client starts a run when its last one has ended. Every run is durable: its first events are on the disk before they are
shown, and so is its answer.

${tableIn(points)}

## Other figures

${tableIn(others)}

## Search in memory

Up to 4,095 memories of an agent, a search compares all of them; from 4,096 on it uses a graph ([Capacity](operating.md#capacity)).
`
}

function tableIn(figures: readonly Figure[]): string {
	if (figures.length === 0) return 'None was measured in this run.'
	return [heads, align, ...figures.map(cellsOf)].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function cellsOf(figure: Figure): string[] {
	const [name = '', ours = '', bare = '', ratio = '', goal = '', outcome = ''] = rowOf(figure)
	return [name, ours, bare, ratio, goal === '' ? '–' : goal, outcome === '' ? '–' : outcome.toLowerCase()]
}
