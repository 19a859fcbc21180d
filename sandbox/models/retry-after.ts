/**
 * The milliseconds that a server asks to wait: `retry-after-ms` (specific to OpenAI), or `Retry-After` in seconds or as a date
 * (RFC 9110, 10.2.3). Undefined without a valid header.
 */
export function retryAfter(headers: Pick<Headers, 'get'> | undefined, now: number): number | undefined {
	const exact = Number.parseFloat(headers?.get('retry-after-ms') ?? '')
	if (exact >= 0) return exact
	const text = headers?.get('retry-after')?.trim() ?? ''
	if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
	const date = Date.parse(text)
	return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
