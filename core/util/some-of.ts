/** The first `most` of these names, for a message, and the number of the others. */
export function someOf(names: readonly string[], most: number, separator = ', '): string {
	const more = names.length > most ? ` and ${names.length - most} more` : ''
	return names.slice(0, most).join(separator) + more
}
