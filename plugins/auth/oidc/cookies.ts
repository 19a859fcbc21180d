/** The cookies of the sign-in. Except on loopback, they need https, and have a name that other hosts of the domain cannot set. */
import type { IncomingMessage } from 'node:http'
import { Fault } from '../../../core/errors.ts'
import { cookieOf } from '../../shared/cookie.ts'
import { isLoopback } from '../address.ts'
import { SESSION_S } from './sessions.ts'

const SEED_S = 600

/** `base`: the address of the gateway. */
export function cookiesFor(base: string) {
	const { protocol, hostname } = new URL(base)
	const secure = protocol === 'https:'
	const names = { seed: 'svc-sign-in', session: 'svc-session' }
	type Name = keyof typeof names
	const nameOf = (what: Name): string => `${secure ? '__Host-' : ''}${names[what]}`
	// Lax for the seed, since the browser returns from another site.
	const make = (what: Name, value: string, seconds: number): string =>
		`${nameOf(what)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${what === 'seed' ? 'Lax' : 'Strict'}${secure ? '; Secure' : ''}`
	return {
		/** The `set-cookie` header at the start of a sign-in. Throws `conflict` over http, except on this machine. */
		seed(value: string): string {
			if (!secure && hostname !== 'localhost' && !isLoopback(hostname.replaceAll(/[[\]]/g, '')))
				throw new Fault('conflict', 'a sign-in needs https; set server.public_url to the https address of the gateway')
			return make('seed', value, SEED_S)
		},
		session: (value: string): string => make('session', value, SESSION_S),
		/** The `set-cookie` header that deletes a cookie. */
		forget: (what: Name): string => make(what, '', 0),
		of: (request: Pick<IncomingMessage, 'headers'>, what: Name): string | undefined => cookieOf(request, nameOf(what)),
	}
}

/** Whether a browser states in its headers that a page of the gateway itself sent the request. */
export function isOfOwnPage({ headers }: Pick<IncomingMessage, 'headers'>, base: string): boolean {
	const site = headers['sec-fetch-site']
	if (site !== undefined) return site === 'same-origin'
	const { origin } = headers
	return origin !== undefined && (origin === new URL(base).origin || URL.parse(origin)?.host === headers.host)
}
