/** A cost for people: without an exponent, and with no more digits than it has. */
export function costText(cost: number): string {
	return cost.toFixed(9).replace(/\.?0+$/, '')
}
