import { Fault } from '../../core/errors.ts'

/**
 * A request from a web page names the page's origin, which must be the gateway's own, or listed in `server.cors_origins`:
 * the protocol requires that for every caller (revision 2025-11-25, Streamable HTTP, security). Callers without a token have
 * passed the stricter rule of the auth plugin before.
 *
 * Throws `forbidden`.
 */
export function refuseForeignOrigin(
	{ origin, host }: { origin?: string | undefined; host?: string | undefined },
	allowed: readonly string[],
): void {
	if (origin === undefined || isSameHost(origin, host ?? '') || allowed.includes(origin)) return
	throw new Fault('forbidden', 'the Origin does not match; web pages of other hosts may not use this server')
}

function isSameHost(origin: string, host: string): boolean {
	const url = URL.parse(origin)
	if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false
	// A proxy before the gateway may use https, with its own default port.
	return URL.parse(`${url.protocol}//${host}`)?.host === url.host
}
