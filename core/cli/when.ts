/** A point in time as a person reads it, in UTC: `2030-01-31 12:00:05Z`. `-` where there is none. */
export function when(iso: string | null | undefined): string {
	return iso ? `${iso.slice(0, 19).replace('T', ' ')}Z` : '-'
}
