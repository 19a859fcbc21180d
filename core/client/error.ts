/** An answer of the gateway that is an error, or a stream that cannot continue. */
export class GatewayError extends Error {
	override name = 'GatewayError'
	/** As in the gateway's documentation, such as `not_found`. Also `stream_gap` and `stream_lost`, which only streams have. */
	readonly code: string
	/** Of HTTP; undefined for a stream that was lost. */
	readonly status: number | undefined

	constructor(code: string, message: string, options: ErrorOptions & { status?: number } = {}) {
		super(message, options)
		this.code = code
		this.status = options.status
	}
}

/** The error in the body of an answer. */
export async function errorOf(response: Response): Promise<GatewayError> {
	const { status, headers } = response
	// A browser does not show where to.
	if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
		const place = headers.get('location')
		const message = `the address redirects${place === null ? '' : ` to ${place.slice(0, 200)}`}; use the gateway's own`
		return new GatewayError('unexpected_answer', message, { status })
	}
	const text = await response.text().catch(() => '')
	try {
		const { code, message } = JSON.parse(text) as { code?: unknown; message?: unknown }
		if (typeof code === 'string' && typeof message === 'string') return new GatewayError(code, message, { status })
	} catch {
		// From a proxy.
	}
	return new GatewayError('unexpected_answer', `the answer was ${status} ${text.slice(0, 200)}`, { status })
}
