/** Formats a cost for people: without an exponent, at most nine decimals, no trailing zeros. */
export function costText(cost: number): string {
	return cost.toFixed(9).replace(/\.?0+$/, '')
}
