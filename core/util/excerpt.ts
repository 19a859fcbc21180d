/** The beginning of a text, with `…` where the rest was cut off. */
export function excerpt(text: string, limit: number): string {
	return text.length > limit ? `${text.slice(0, limit).toWellFormed()}…` : text
}
