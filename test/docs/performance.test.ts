/** docs/performance.md and its chart, generated from invented figures, and the form of the committed page. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { chartOf } from '../bench/chart.ts'
import { documentOf } from '../bench/document.ts'
import { summaryOf } from '../bench/table.ts'
import type { Figure } from '../bench/table.ts'
import { root } from './pages.ts'

const figures: Figure[] = [
	{ metric: 'runs', unit: '1/s', ours: 900, bare: 1_000, goal: { of: 'ratio', least: 0.8 } },
	{ metric: 'memory', unit: 'MiB', ours: 120, bare: null, goal: { of: 'ours', most: 105 } },
	...[1, 16, 256].flatMap((clients): Figure[] => [
		{
			metric: `runs at ${clients}`,
			unit: '1/s',
			ours: 100 * clients,
			bare: 200 * clients,
			point: { of: 'throughput', clients },
		},
		{ metric: `one run at ${clients}`, unit: 'ms', ours: 4 + clients, bare: 2, point: { of: 'latency', clients } },
	]),
	{ metric: 'other', unit: 'ms', ours: 1, bare: 2 },
]
const generated = documentOf({
	machine: 'Node 24, Linux, 2 × Processor, 8 GiB',
	load: 0.25,
	isBusy: false,
	level: 'quick',
	version: '1.2.3',
	figures,
})
const committed = readFileSync(new URL('docs/performance.md', root), 'utf8')

interface Section {
	heading: string
	tables: string[][][]
}

/** The headings of a page, each with its tables: rows of cells, without the separator line. */
function sectionsOf(page: string): Section[] {
	return page
		.split(/^#+ /m)
		.slice(1)
		.map((text) => {
			const [heading = ''] = text.split('\n', 1)
			const tables = [...text.matchAll(/(?:^\|.*\|\n)+/gm)].map(([table]) =>
				table
					.trim()
					.split('\n')
					.filter((_, at) => at !== 1)
					.map((line) => line.slice(2, -2).split(' | ')),
			)
			return { heading, tables }
		})
}

function section(page: string, heading: string): Section {
	const found = sectionsOf(page).find((one) => one.heading === heading)
	if (!found) throw new Error(`the page has no heading "${heading}"`)
	return found
}

void t.test('the page states each figure with its goal and the outcome', (t) => {
	t.strictSame(section(generated, 'Goals').tables, [
		[
			['Figure', 'Gateway', 'Bare', 'Ratio', 'Goal', 'Outcome'],
			['runs (1/s)', '900', '1,000', '0.90', 'ratio ≥ 0.8', 'met'],
			['memory (MiB)', '120', '–', '–', '≤ 105', 'missed'],
		],
	])
	t.strictSame(section(generated, 'Other figures').tables[0]?.slice(1), [
		['other (ms)', '1.00', '2.00', '0.50', '–', '–'],
	])
	t.match(generated, '1 of 2 goals are met. Missed: memory.')
	t.notMatch(generated, 'busy')
	const busy = documentOf({ machine: '', load: 9, isBusy: true, level: 'quick', version: '', figures })
	t.match(busy, 'used the machine during the run')
	t.match(section(generated, 'Performance').tables[0]?.flat(), [
		'What',
		'Value',
		'Machine',
		/2 × Processor/,
		'Load before the run',
		/^0\.3 /,
		'Gateway',
		/1\.2\.3/,
	])
	t.end()
})

void t.test('the summary lists no figure if all goals are met, and is empty without goals', (t) => {
	t.equal(summaryOf(figures.slice(0, 1)), '1 of 1 goals are met.')
	t.equal(summaryOf(figures.slice(2)), '')
	t.end()
})

void t.test('the committed page has the form of a newly generated one', (t) => {
	const shapeOf = (page: string): unknown =>
		sectionsOf(page).map(({ heading, tables }) => ({ heading, heads: tables.map(([head]) => head) }))
	t.strictSame(shapeOf(committed), shapeOf(generated))
	for (const { tables } of sectionsOf(committed))
		for (const [head, ...rows] of tables) for (const row of rows) t.equal(row.length, head?.length, row.join(' | '))
	for (const [name = '', , , , goal = '', outcome = ''] of section(committed, 'Goals').tables[0]?.slice(1) ?? []) {
		t.match(goal, /^(ratio )?[≥≤] [\d.]+$/, name)
		t.match(outcome, /^(met|missed)$/, name)
	}
	const clients = section(committed, 'From 1 client to 256').tables[0]?.map(
		([name = '']) => /at (\d+) client/.exec(name)?.[1],
	)
	for (const count of ['1', '4', '16', '64', '256']) t.equal(clients?.filter((one) => one === count).length, 2, count)
	t.end()
})

void t.test('the chart has every point of both series, within its frame, in both colour schemes', (t) => {
	for (const [svg, counts] of [
		[chartOf(figures), [1, 16, 256]],
		[readFileSync(new URL('docs/images/performance.svg', root), 'utf8'), [1, 4, 16, 64, 256]],
	] as const) {
		const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)?.map(Number) ?? []
		const dots = [...svg.matchAll(/<circle class="(?:ours|bare)-dot" cx="([\d.]+)" cy="([\d.]+)"/g)]
		t.equal(dots.length, 4 * counts.length, 'dots')
		for (const [dot, x, y] of dots) t.ok(Number(x) < (width ?? 0) && Number(y) < (height ?? 0), dot)
		for (const count of counts) t.equal(svg.split(`text-anchor="middle">${count}<`).length - 1, 2, `${count} clients`)
		t.match(svg, 'prefers-color-scheme: dark')
		t.match(svg, /Runs a second<.*Time of one run, median \(ms\)</s)
		t.notMatch(svg, /NaN|Infinity|undefined/)
	}
	t.end()
})

void t.test('a larger value is drawn higher, and a chart without figures is refused', (t) => {
	const heights = [...chartOf(figures).matchAll(/<circle class="ours-dot" cx="[\d.]+" cy="([\d.]+)"/g)].map(([, y]) =>
		Number(y),
	)
	const throughput = heights.slice(0, 3)
	t.strictSame(
		throughput,
		throughput.toSorted((a, b) => b - a),
	)
	t.equal(new Set(throughput).size, 3)
	t.throws(() => chartOf(figures.slice(0, 2)), /measure "load"/)
	t.end()
})
