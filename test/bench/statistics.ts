export function median(values: readonly number[]): number {
	return quantile(values, 0.5)
}

/** `share`: from 0 to 1. Returns one of the values, without interpolation. */
export function quantile(values: readonly number[], share: number): number {
	const sorted = values.toSorted((a, b) => a - b)
	const value = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
	if (value === undefined) throw new Error('there are no values')
	return value
}

/** Least-squares slope of y over x. */
export function slope(points: readonly { x: number; y: number }[]): number {
	const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length
	const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length
	const above = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0)
	const below = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
	return above / below
}
