/**
 * The chart of docs/performance.md as SVG: throughput and latency by number of clients, for the gateway and its bare counterpart. The
 * colours follow the browser's colour scheme.
 */
import type { Figure } from './table.ts'

type Side = 'ours' | 'bare'
type Point = Figure & { point: NonNullable<Figure['point']> }

const WIDTH = 760
const PANEL = { left: 72, width: 620, height: 200 }
const PANELS = [
	{ of: 'throughput', top: 56, title: 'Runs a second' },
	{ of: 'latency', top: 336, title: 'Time of one run, median (ms)' },
] as const
const HEIGHT = 600
const sides: Record<Side, string> = { ours: 'gateway', bare: 'bare openai loop' }

const style = `
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5 }
.ours { stroke: #0969da } .ours-dot { fill: #0969da }
.bare { stroke: #bc4c00; stroke-dasharray: 6 4 } .bare-dot { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
	text { fill: #f0f6fc }
	.grid { stroke: #3d444d }
	.ours { stroke: #4493f8 } .ours-dot { fill: #4493f8 }
	.bare { stroke: #f0883e } .bare-dot { fill: #f0883e }
}`

/** Both axes are logarithmic. Throws unless there are points for both panels. */
export function chartOf(figures: readonly Figure[]): string {
	const points = figures.filter((figure): figure is Point => figure.point !== undefined)
	const panels = PANELS.map(({ of, top, title }) => {
		const own = points.filter(({ point }) => point.of === of).toSorted((a, b) => a.point.clients - b.point.clients)
		if (own.length === 0) throw new Error(`there are no figures of the ${of} to draw: measure "load"`)
		return panelOf(own, top, title)
	})
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Throughput and latency of runs by number of clients">
<style>${style}
</style>
${legend()}
${panels.join('\n')}
</svg>
`
}

function legend(): string {
	return (Object.keys(sides) as Side[])
		.map((side, at) => {
			const x = PANEL.left + at * 140
			return `<path class="line ${side}" d="M${x} 18h32"/><text x="${x + 40}" y="23">${sides[side]}</text>`
		})
		.join('\n')
}

function panelOf(points: readonly Point[], top: number, title: string): string {
	const clients = points.map(({ point }) => point.clients)
	const values = points.flatMap(({ ours, bare }) => (bare === null ? [ours] : [ours, bare]))
	const x = scale([Math.min(...clients), Math.max(...clients)], [PANEL.left, PANEL.left + PANEL.width])
	const ticks = ticksOf(Math.min(...values), Math.max(...values))
	const bottom = top + PANEL.height
	const y = scale([ticks[0] ?? 1, ticks.at(-1) ?? 10], [bottom, top])
	const rows = ticks.map((tick) => {
		const at = round(y(tick))
		return `<path class="grid" d="M${PANEL.left} ${at}h${PANEL.width}"/><text x="${PANEL.left - 8}" y="${at + 4}" text-anchor="end">${tick.toLocaleString('en-US')}</text>`
	})
	const columns = clients.map((count) => {
		const at = round(x(count))
		return `<path class="grid" d="M${at} ${top}v${PANEL.height}"/><text x="${at}" y="${bottom + 18}" text-anchor="middle">${count}</text>`
	})
	const lines = (Object.keys(sides) as Side[]).map((side) => {
		const drawn = points.flatMap((one) => {
			const value = one[side]
			return value === null ? [] : [`${round(x(one.point.clients))} ${round(y(value))}`]
		})
		const dots = drawn.map((at) => `<circle class="${side}-dot" cx="${at.replace(' ', '" cy="')}" r="4"/>`)
		return `<path class="line ${side}" d="M${drawn.join('L')}"/>${dots.join('')}`
	})
	return [
		`<text class="title" x="${PANEL.left}" y="${top - 12}">${title}</text>`,
		...rows,
		...columns,
		`<text x="${PANEL.left + PANEL.width / 2}" y="${bottom + 38}" text-anchor="middle">clients at the same time</text>`,
		...lines,
	].join('\n')
}

/** Maps a range of values logarithmically to a range of pixels. */
function scale([from, to]: [number, number], [start, end]: [number, number]): (value: number) => number {
	const span = Math.log(to / from) || 1
	return (value) => start + ((end - start) * Math.log(value / from)) / span
}

/** The numbers 1, 2 and 5 times a power of ten, from the last one below the values to the first one above. */
function ticksOf(least: number, most: number): number[] {
	const first = Math.floor(Math.log10(least))
	const all = Array.from({ length: Math.ceil(Math.log10(most)) - first + 1 }, (_, at) => first + at).flatMap((power) =>
		[1, 2, 5].map((digit) => Number((digit * 10 ** power).toPrecision(1))),
	)
	const from = all.findLastIndex((tick) => tick <= least)
	const to = all.findIndex((tick) => tick >= most)
	return all.slice(Math.max(0, from), to + 1)
}

function round(value: number): number {
	return Math.round(value * 10) / 10
}
