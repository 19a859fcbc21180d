/**
 * Decides whether a request counts as local.
 *
 * Web pages in a browser on this machine can send requests to loopback addresses, and so can every client of a proxy on this
 * machine. So the peer's address alone proves nothing: any sign of a foreign page, of DNS rebinding or of a proxy makes a request
 * not local. Such a request is not refused, but it needs a token.
 */
import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'
import { peerOf } from '../shared/peer.ts'
import type { Peer } from '../shared/peer.ts'
import { networkOf } from '../shared/network-counter.ts'
import { isLoopback } from './address.ts'

/** The parts of Node's requests that the rule needs. Node's parsed headers omit repeated ones. */
export type IncomingRequest = Pick<IncomingMessage, 'method' | 'rawHeaders' | 'url' | 'httpVersion'> & { socket: Peer }

export interface LocalRule {
	/** Additional names, besides localhost and loopback addresses (`server.allowed_hosts`), lower case. */
	allowedHosts: readonly string[]
	/** Origins that are never local, not even the gateway's own (`server.cors_origins`). */
	corsOrigins?: readonly string[]
	/** A GET that changes something, such as one that starts a run. Other methods change something anyway. */
	changes?: boolean | undefined
}

export interface NotLocal {
	/** A clause that follows "since". It contains no text of the request. */
	because: string
	/** The request comes from this machine, and a web page may have caused it. */
	mayBePage: boolean
}

/** Why a request does not count as local; null if it does. */
export function whyNotLocal(request: IncomingRequest, rule: LocalRule): NotLocal | null {
	const headers = headersOf(request)
	const elsewhere = whyRemote(request, headers)
	if (elsewhere !== null) return { because: elsewhere, mayBePage: false }
	const page = whyMaybePage(request, headers, rule)
	return page === null ? null : { because: page, mayBePage: true }
}

/** All values of each header, by its name in lower case. */
type Headers = ReadonlyMap<string, readonly string[]>

function whyRemote(request: IncomingRequest, headers: Headers): string | null {
	const { remoteAddress = '', localAddress = '' } = peerOf(request)
	if (!isLoopback(remoteAddress) || !isLoopback(localAddress)) return 'it comes from another machine'
	for (const name of headers.keys())
		if (isForwarding(name)) return 'its headers (such as X-Forwarded-For) show that it came through a proxy'
	// By default, nginx forwards requests over HTTP/1.0, without a forwarding header and with the gateway's address as Host.
	if (request.httpVersion === '1.0')
		return 'it came over HTTP/1.0, as through a proxy; a local client must use HTTP/1.1'
	return null
}

function whyMaybePage(
	request: IncomingRequest,
	headers: Headers,
	{ allowedHosts, corsOrigins = [], changes = false }: LocalRule,
): string | null {
	const valuesOf = (name: string): readonly string[] => headers.get(name) ?? []
	// A browser also prefetches pages that its user has not opened, at the request of a foreign page.
	if (headers.has('sec-purpose') || headers.has('purpose')) return 'a browser made it ahead of time (Sec-Purpose)'

	const host = parseHost(valuesOf('host')[0] ?? '')
	if (!host || !(isLocalName(host.name) || isAllowed(host.name, allowedHosts))) {
		return 'its Host is neither localhost nor a loopback address nor listed in server.allowed_hosts'
	}
	if (!targets(request.url ?? '/', host)) return 'its target names a different host than its Host header'
	const origins = valuesOf('origin')
	if (origins.some((origin) => corsOrigins.includes(origin.toLowerCase())))
		return 'its Origin is listed in server.cors_origins'
	if (!origins.every((origin) => isSameOrigin(origin, host))) return 'its Origin is not that of its Host header'

	const isSafe = (request.method === 'GET' || request.method === 'HEAD') && !changes
	const sites = valuesOf('sec-fetch-site')
	// A browser sends "none" for an address that its user typed, and for a link that another program opened.
	if (!isSafe && sites.includes('none')) return 'its Sec-Fetch-Site is none, and it would change something'
	if (!sites.every((site) => site === 'same-origin' || site === 'none')) return 'its Sec-Fetch-Site names another site'

	// Browsers send neither with a plain GET over http to a name other than localhost.
	if (origins.length > 0 || sites.length > 0) return null
	const pages = valuesOf('referer')
	if (!pages.every((page) => isSameOrigin(page, host))) return 'its Referer is a page of another origin'
	// A foreign page can suppress the Referer. A WebSocket (whose key no page can set) always has an Origin.
	const mayBeForeign = changes && !isLocalName(host.name) && !headers.has('sec-websocket-key')
	if (mayBeForeign && pages.length === 0) {
		return 'it would change something, and at a name of server.allowed_hosts no header (Sec-Fetch-Site, Origin or Referer) proves that no foreign page sent it'
	}
	return null
}

interface Host {
	/** Lower case, IPv6 without brackets. */
	name: string
	port: number
}

const HTTP_PORT = 80
const forwardingHeaders = new Set([
	'client-ip',
	'fastly-client-ip',
	'fly-client-ip',
	'forwarded',
	'forwarded-for',
	'true-client-ip',
	'via',
	'wl-proxy-client-ip',
	'x-appengine-user-ip',
	'x-azure-clientip',
	'x-client-ip',
	'x-cluster-client-ip',
	'x-proxyuser-ip',
	'x-real-ip',
	'x-remote-addr',
])
const forwardingPrefixes = ['x-forwarded', 'x-original-', 'x-envoy-', 'cf-', 'tailscale-']

/** Some proxies write underscores for hyphens. */
function isForwarding(header: string): boolean {
	const name = header.replaceAll('_', '-')
	return forwardingHeaders.has(name) || forwardingPrefixes.some((prefix) => name.startsWith(prefix))
}

/**
 * Names for which browsers send Sec-Fetch-Site with every request. They leave it out for an IPv4 address written as IPv6
 * (`[::ffff:7f00:1]`), which therefore does not count.
 */
function isLocalName(name: string): boolean {
	return name === 'localhost' || name === '127.0.0.1' || name === '::1' || (isIPv4(name) && isLoopback(name))
}

/** An IPv4 address written as IPv6 is never local, even if listed. */
function isAllowed(name: string, allowedHosts: readonly string[]): boolean {
	const isMapped = isIP(name) === 6 && networkOf(name).includes('.')
	return allowedHosts.includes(name) && !isMapped
}

/** `name`, `name:port`, `[v6]` or `[v6]:port`; undefined for anything else. */
function parseHost(text: string): Host | undefined {
	const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text.toLowerCase())
	if (!match) return undefined
	return { name: match[1] ?? match[2] ?? '', port: Number(match[3] ?? HTTP_PORT) }
}

/** A target may be a whole address (`GET http://host/path`), which has precedence over the Host header. */
function targets(target: string, host: Host): boolean {
	return target.startsWith('/') || isSameOrigin(target, host)
}

/** False for https addresses: the gateway itself serves plain HTTP only, so an https page came through a proxy. */
function isSameOrigin(address: string, host: Host): boolean {
	const match = /^http:\/\/([^/?#]+)/i.exec(address)
	const other = match?.[1] === undefined ? undefined : parseHost(match[1])
	return other !== undefined && other.name === host.name && other.port === host.port
}

function headersOf({ rawHeaders }: IncomingRequest): Headers {
	const headers = new Map<string, string[]>()
	for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
		const name = (rawHeaders[at] as string).toLowerCase()
		const value = rawHeaders[at + 1] as string
		const others = headers.get(name)
		if (others) others.push(value)
		else headers.set(name, [value])
	}
	return headers
}
