/** A number with its noun: `1 memory`, `2 memories`. */
export function pluralize(n: number, one: string, many = `${one}s`): string {
	return `${n} ${n === 1 ? one : many}`
}
