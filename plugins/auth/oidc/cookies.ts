/** The cookies of the sign-in. Except on loopback, they need https, and have a name that other hosts of the domain cannot set. */
import type { IncomingMessage } from 'node:http'
import { Fault } from '../../../core/errors.ts'
import { cookieOf } from '../../shared/cookie.ts'
import { isLoopback } from '../address.ts'
import { SESSION_S } from './sessions.ts'

const SEED_S = 600

export interface Cookies {
	/** The `set-cookie` header at the start of a sign-in. Throws `conflict` over http, except on this machine. */
	seed(value: string): string
	session(value: string): string
	/** The `set-cookie` header that deletes a cookie. */
	forget(what: 'seed' | 'session'): string
	of(request: Pick<IncomingMessage, 'headers'>, what: 'seed' | 'session'): string | undefined
}

/** `base`: the address of the gateway. */
export function cookiesFor(base: string): Cookies {
	const { protocol, hostname } = new URL(base)
	const secure = protocol === 'https:'
	const mustBeSafe = (): void => {
		if (!secure && hostname !== 'localhost' && !isLoopback(hostname.replaceAll(/[[\]]/g, '')))
			throw new Fault('conflict', 'a sign-in needs https; set server.public_url to the https address of the gateway')
	}
	const names = { seed: 'svc-sign-in', session: 'svc-session' }
	const nameOf = (what: 'seed' | 'session'): string => `${secure ? '__Host-' : ''}${names[what]}`
	// Lax for the seed, since the browser returns from another site.
	const make = (what: 'seed' | 'session', value: string, seconds: number): string =>
		`${nameOf(what)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${what === 'seed' ? 'Lax' : 'Strict'}${secure ? '; Secure' : ''}`
	return {
		seed(value) {
			mustBeSafe()
			return make('seed', value, SEED_S)
		},
		session: (value) => make('session', value, SESSION_S),
		forget: (what) => make(what, '', 0),
		of: (request, what) => cookieOf(request, nameOf(what)),
	}
}

/** Whether a browser states in its headers that a page of the gateway itself sent the request. */
export function isOfOwnPage({ headers }: Pick<IncomingMessage, 'headers'>, base: string): boolean {
	const site = headers['sec-fetch-site']
	if (site !== undefined) return site === 'same-origin'
	const { origin } = headers
	return origin !== undefined && (origin === new URL(base).origin || URL.parse(origin)?.host === headers.host)
}
