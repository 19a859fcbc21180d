/** One measured figure. */
export interface Figure {
	metric: string
	unit: string
	ours: number
	/** Null if there is no counterpart. */
	bare: number | null
	/** Default: ours / bare. */
	ratio?: number
	goal?: Goal
	/** The point in the chart. */
	point?: { of: 'throughput' | 'latency'; clients: number }
}

export interface Goal {
	/** The column to which the goal applies. */
	of: 'ours' | 'ratio'
	least?: number
	most?: number
}

const heads = ['metric', 'ours', 'bare', 'ratio', 'goal', '']
const outcomes = { true: 'met', false: 'MISSED', null: '' }

export function ratioOf({ ours, bare, ratio }: Figure): number | null {
	return ratio ?? (bare === null ? null : ours / bare)
}

/** Null if there is no goal. */
export function isMet(figure: Figure): boolean | null {
	const { goal, ours } = figure
	if (!goal) return null
	const value = goal.of === 'ours' ? ours : ratioOf(figure)
	if (value === null) return null
	return value >= (goal.least ?? Number.NEGATIVE_INFINITY) && value <= (goal.most ?? Number.POSITIVE_INFINITY)
}

/** All figures as lines of text with aligned columns. */
export function tableOf(figures: readonly Figure[]): string {
	const rows = figures.map(rowOf)
	const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => (row[column] ?? '').length)))
	const line = (row: string[]): string =>
		row
			.map((cell, column) =>
				column === 0 || column > 3 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
			)
			.join('  ')
			.trimEnd()
	return [line(heads), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

/** The numbers of met and missed goals, in at most two sentences; empty without goals. */
export function summaryOf(figures: readonly Figure[]): string {
	const withGoal = figures.filter(({ goal }) => goal)
	const missed = withGoal.filter((figure) => isMet(figure) === false).map(({ metric }) => metric)
	if (withGoal.length === 0) return ''
	const met = `${withGoal.length - missed.length} of ${withGoal.length} goals are met.`
	return missed.length === 0 ? met : `${met} Missed: ${missed.join('; ')}.`
}

/** The cells of a figure: name and unit, ours, bare, ratio, goal, and whether it is met. */
export function rowOf(figure: Figure): string[] {
	return [
		`${figure.metric} (${figure.unit})`,
		number(figure.ours),
		number(figure.bare),
		number(ratioOf(figure)),
		goalText(figure.goal),
		outcomes[String(isMet(figure)) as keyof typeof outcomes],
	]
}

function goalText(goal: Goal | undefined): string {
	if (!goal) return ''
	const bound = goal.least === undefined ? `≤ ${goal.most}` : `≥ ${goal.least}`
	return goal.of === 'ratio' ? `ratio ${bound}` : bound
}

function number(value: number | null): string {
	if (value === null) return '–'
	if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
	return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}
