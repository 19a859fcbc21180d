/** An error response of the gateway, or a stream that cannot continue. */
export class GatewayError extends Error {
	override name = 'GatewayError'
	/** A code of the gateway, such as `not_found`. Streams also fail with `stream_gap` and `stream_lost`. */
	readonly code: string
	/** The HTTP status; undefined for `stream_gap` and `stream_lost`. */
	readonly status: number | undefined

	constructor(code: string, message: string, options: ErrorOptions & { status?: number } = {}) {
		super(message, options)
		this.code = code
		this.status = options.status
	}
}

/** The error in the body of a response. */
export async function errorOf(response: Response): Promise<GatewayError> {
	const { status, headers } = response
	// A browser hides the target of a redirect.
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
		// The response is not from the gateway, but from a proxy.
	}
	return new GatewayError('unexpected_answer', `the answer was ${status} ${text.slice(0, 200)}`, { status })
}
