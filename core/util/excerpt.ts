/** The beginning of a text, with `…` if the rest was cut off. `limit`: in UTF-16 code units. */
export function excerpt(text: string, limit: number): string {
	return text.length > limit ? `${text.slice(0, limit).toWellFormed()}…` : text
}
