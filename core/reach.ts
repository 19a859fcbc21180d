/** What somebody may fetch: the rules that a URL and the addresses behind it must keep. */
import { isIP } from 'node:net'
import { judge } from './addresses.ts'
import { Fault } from './errors.ts'

/** What a caller may reach. Where no more is said than `protocols`: every host at public addresses. */
export interface Reach {
	protocols: readonly ('http:' | 'https:')[]
	/**
	 * The address that the caller named may be private: for a caller with the scope `*`, who can reach it anyway. Holds for
	 * the origin that was named, and never behind a redirect.
	 */
	private_first?: boolean
	/** `host` (any port) or `host:port` that may be private, by the operator's list; behind a redirect too. */
	private_hosts?: readonly string[]
	/** Only these, `host` (any port) or `host:port`: a skill's declaration. It does not let them be private. */
	hosts?: readonly string[]
	/** Ends the message about a private address, such as `an operator can list it in mcp.allowed_hosts`. */
	hint?: string
}

/** Throws `invalid_request` for a text that is no URL. */
export function parseUrl(text: string | URL): URL {
	const url = URL.parse(String(text))
	if (!url) throw new Fault('invalid_request', `${JSON.stringify(String(text).slice(0, 200))} is not a URL`)
	return url
}

/**
 * Throws `address_refused` for a URL that is out of reach, whatever its host resolves to.
 * `named`: it has the origin that the caller named, and is not what a redirect led to.
 */
export function checkUrl(url: URL, reach: Reach, named: boolean): void {
	if (!(reach.protocols as readonly string[]).includes(url.protocol)) {
		const taken = reach.protocols.map((protocol) => `${protocol}//`).join(' and ')
		throw new Fault('address_refused', `an address that begins with ${url.protocol} is not fetched, only ${taken}`)
	}
	if (url.username !== '' || url.password !== '')
		throw new Fault('address_refused', 'an address with a user name or password (the part before @) is not fetched')
	if (reach.hosts && !lists(reach.hosts, url))
		throw new Fault('address_refused', `${url.host} is not among the declared hosts`)
	if (isIP(hostOf(url)) !== 0) checkAddresses(url, [hostOf(url)], reach, named)
}

/**
 * Throws `address_refused` unless all addresses that the URL's host leads to may be reached: a bad one among good ones
 * refuses them all. The message shows an address only where the URL itself does, so that nobody learns what an internal
 * name resolves to; `cause` has it, for logs.
 */
export function checkAddresses(url: URL, addresses: readonly string[], reach: Reach, named: boolean): void {
	const privateToo = (named && reach.private_first === true) || lists(reach.private_hosts ?? [], url)
	const host = hostOf(url)
	for (const address of addresses) {
		const { kind, range } = judge(address)
		if (kind === 'public' || (kind === 'private' && privateToo)) continue
		const about =
			address === host ? `${host} is not a public address (${range})` : `${host} leads to an address that is not public`
		const hint = kind === 'private' && reach.hint !== undefined ? `; ${reach.hint}` : ''
		throw new Fault('address_refused', `${about} and is not fetched${hint}`, {
			cause: new Error(`${host} resolves to ${address} (${range})`),
		})
	}
}

/** The host of a URL without brackets and without dots at its end. */
export function hostOf({ hostname }: URL): string {
	return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.+$/, '')
}

/** Is the URL's host, or its host and port, in the list? */
function lists(entries: readonly string[], url: URL): boolean {
	const port = url.port || (url.protocol === 'https:' ? '443' : '80')
	return entries.some((entry) => {
		const [, host, wantedPort] = isIP(entry) === 6 ? [entry, `[${entry}]`] : (/^(.+?)(?::(\d+))?$/.exec(entry) ?? [])
		if (wantedPort !== undefined && Number(wantedPort) !== Number(port)) return false
		const listed = URL.parse(`http://${host}`)
		return listed !== null && hostOf(listed) === hostOf(url)
	})
}
