/** A line chart over days. */
import { html } from 'lit'
import type { TemplateResult } from 'lit'
import uPlot from 'uplot'
import { PlainElement } from './page.ts'

export interface Series {
	label: string
	/** A custom property of app.css. */
	color: `--${string}`
	/** One value per day; null for a day without a value. */
	values: (number | null)[]
}

const HEIGHT = 180

/**
 * Screen readers get only the chart's name, since a table beside it has the same values. `days`: such as `2026-11-02`. `format`:
 * formats a value for the axis and the legend.
 */
class Chart extends PlainElement {
	static override properties = {
		name: { attribute: false },
		days: { attribute: false },
		series: { attribute: false },
		format: { attribute: false },
	}
	declare name: string
	declare days: string[]
	declare series: Series[]
	declare format: (value: number) => string
	#plot: uPlot | undefined
	readonly #sizes = new ResizeObserver(() => this.#plot?.setSize({ width: this.clientWidth, height: HEIGHT }))
	readonly #dark = matchMedia('(prefers-color-scheme: dark)')
	readonly #onColorScheme = (): void => this.#draw()

	override connectedCallback(): void {
		super.connectedCallback()
		this.#sizes.observe(this)
		this.#dark.addEventListener('change', this.#onColorScheme)
	}

	override disconnectedCallback(): void {
		this.#sizes.disconnect()
		this.#dark.removeEventListener('change', this.#onColorScheme)
		this.#plot?.destroy()
		this.#plot = undefined
		super.disconnectedCallback()
	}

	protected override render(): TemplateResult {
		return html`<div role="img" aria-label=${this.name}></div>`
	}

	protected override updated(): void {
		this.#draw()
	}

	#draw(): void {
		const place = this.firstElementChild as HTMLElement | null
		if (!place) return
		this.#plot?.destroy()
		const axis = { stroke: colorOf('--quiet'), grid: { stroke: colorOf('--line'), width: 1 }, ticks: { show: false } }
		this.#plot = new uPlot(
			{
				width: Math.max(200, this.clientWidth),
				height: HEIGHT,
				// Days are in UTC, not in the reader's time zone.
				tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
				scales: { y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
				axes: [
					{
						...axis,
						space: 70,
						values: (_plot, times) => times.map((time) => dayOf(time)),
						incrs: [86_400, 7 * 86_400],
					},
					{ ...axis, size: 70, values: (_plot, values) => values.map((value) => this.format(value)) },
				],
				series: [
					{ label: 'Day', value: (_plot, time) => (time === null ? '–' : dayOf(time)) },
					...this.series.map(({ label, color }) => ({
						label,
						stroke: colorOf(color),
						width: 2,
						points: { show: this.days.length < 40, size: 5 },
						value: (_plot: uPlot, value: number | null) => (value === null ? '–' : this.format(value)),
					})),
				],
			},
			[this.days.map((day) => Date.parse(day) / 1000), ...this.series.map(({ values }) => values)],
			place,
		)
	}
}

function colorOf(variable: string): string {
	// A canvas does not support light-dark(), so an element resolves it.
	const probe = document.createElement('span')
	probe.style.color = `var(${variable})`
	document.body.append(probe)
	const { color } = getComputedStyle(probe)
	probe.remove()
	return color
}

function dayOf(seconds: number): string {
	return new Date(seconds * 1000).toISOString().slice(5, 10)
}

customElements.define('svc-chart', Chart)
