/** What a caller may fetch: the rules for a URL and the addresses of its host. */
import { isIP } from 'node:net'
import { judge } from './addresses.ts'
import { Fault } from '../errors.ts'

/** Which addresses a caller may reach. With `protocols` alone: every host with public addresses. */
export interface FetchPolicy {
	protocols: readonly ('http:' | 'https:')[]
	/**
	 * The address that the caller named may be private: for a caller with the scope `*`, who can reach it anyway. Applies to
	 * the origin that was named, and never after a redirect.
	 */
	private_first?: boolean
	/** The operator's list of hosts that may be private, also after a redirect: `host` (any port) or `host:port`. */
	private_hosts?: readonly string[]
	/** If given, only these hosts are allowed: a skill's declaration, `host` (any port) or `host:port`. They must be public. */
	hosts?: readonly string[]
	/** Further lists that must contain the host: those to which grants bind the secrets in the request. */
	bound?: readonly (readonly string[])[]
	/** Ends the message about a private address, such as `an operator can list it in mcp.allowed_hosts`. */
	hint?: string
}

/** Throws `invalid_request` for a text that is not a URL. */
export function parseUrl(text: string | URL): URL {
	const url = URL.parse(String(text))
	if (!url) throw new Fault('invalid_request', `${JSON.stringify(String(text).slice(0, 200))} is not a URL`)
	return url
}

/**
 * Throws `address_refused` for a URL that is not allowed, whatever its host resolves to.
 * `named`: it has the origin that the caller named, and is not the target of a redirect.
 */
export function checkUrl(url: URL, policy: FetchPolicy, named: boolean): void {
	if (!(policy.protocols as readonly string[]).includes(url.protocol)) {
		const allowed = policy.protocols.map((protocol) => `${protocol}//`).join(' and ')
		throw new Fault('address_refused', `an address that begins with ${url.protocol} cannot be fetched, only ${allowed}`)
	}
	if (url.username !== '' || url.password !== '')
		throw new Fault('address_refused', 'an address with a user name or password (the part before @) is not fetched')
	if (policy.hosts && !lists(policy.hosts, url))
		throw new Fault('address_refused', `${url.host} is not among the declared hosts`)
	if (!(policy.bound ?? []).every((hosts) => lists(hosts, url)))
		throw new Fault(
			'address_refused',
			`a secret in this request has a grant for other hosts, and ${url.host} is not among them`,
		)
	if (isIP(hostOf(url)) !== 0) checkAddresses(url, [hostOf(url)], policy, named)
}

/**
 * Throws `address_refused` unless all addresses of the URL's host may be reached. The message contains an address only if the
 * URL does, so that a caller does not learn what an internal name resolves to; `cause` has it, for logs.
 */
export function checkAddresses(url: URL, addresses: readonly string[], policy: FetchPolicy, named: boolean): void {
	const privateToo = (named && policy.private_first === true) || lists(policy.private_hosts ?? [], url)
	const host = hostOf(url)
	for (const address of addresses) {
		const { kind, range } = judge(address)
		if (kind === 'public' || (kind === 'private' && privateToo)) continue
		const about =
			address === host ? `${host} is not a public address (${range})` : `${host} leads to an address that is not public`
		const hint = kind === 'private' && policy.hint !== undefined ? `; ${policy.hint}` : ''
		throw new Fault('address_refused', `${about} and is not fetched${hint}`, {
			cause: new Error(`${host} resolves to ${address} (${range})`),
		})
	}
}

/** The host of a URL without brackets and trailing dots. */
export function hostOf({ hostname }: URL): string {
	return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/(?<!\.)\.+$/, '')
}

/** Whether the list contains the URL's host. Entries are `host` (any port) or `host:port`. */
export function lists(entries: readonly string[], url: URL): boolean {
	const port = url.port || (url.protocol === 'https:' ? '443' : '80')
	return entries.some((entry) => {
		const [, host, wantedPort] = isIP(entry) === 6 ? [entry, `[${entry}]`] : (/^(.+?)(?::(\d+))?$/.exec(entry) ?? [])
		if (wantedPort !== undefined && Number(wantedPort) !== Number(port)) return false
		const listed = URL.parse(`http://${host}`)
		return listed !== null && hostOf(listed) === hostOf(url)
	})
}
