const FORM = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2})(?::(\d{2})(\.\d{1,9})?)?(?:(Z)|([+-]\d{2}):?(\d{2})?)?)?$/i

/**
 * Converts an ISO 8601 text to the wire format (UTC, milliseconds); undefined if it is not a valid instant. A text without a
 * zone is UTC, not the zone of the machine: the same request must mean the same everywhere.
 */
export function instantOf(text: string): string | undefined {
	const match = FORM.exec(text)
	if (!match) return undefined
	const [, date = '', time = '00:00', seconds = '00', fraction = '', , hours, minutes = '00'] = match
	const zone = hours === undefined ? 'Z' : `${hours}:${minutes}`
	const instant = Date.parse(`${date}T${time}:${seconds}${fraction}${zone}`)
	// Date.parse reads 30 February as 2 March.
	const day = Date.parse(`${date}T00:00Z`)
	if (Number.isNaN(instant) || Number.isNaN(day) || !new Date(day).toISOString().startsWith(date)) return undefined
	return new Date(instant).toISOString()
}
